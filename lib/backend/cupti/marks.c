#include "backend/cupti/marks.h"

#include "base/atomic.h"

#define MARKS 16u

static pki_cupti_mark marks[MARKS];
static uint32_t put, taken; /* how many ever */

void pki_cupti_marks_forget(void)
{
    pki_store(&put, 0u);
    pki_store(&taken, 0u);
}

bool pki_cupti_marks_have_room(void)
{
    /* Pairs with the release in pki_cupti_marks_pop: the place has been read. */
    return pki_load(&put) - pki_load_acquire(&taken) < MARKS;
}

void pki_cupti_marks_put(uint64_t ns, bool on)
{
    uint32_t n = pki_load(&put);
    marks[n % MARKS] = (pki_cupti_mark){ns, on};
    pki_store_release(&put, n + 1); /* pairs with the acquire in pki_cupti_marks_pop */
}

bool pki_cupti_marks_pop(pki_cupti_mark *mark)
{
    uint32_t n = pki_load(&taken);
    if (n == pki_load_acquire(&put)) /* pairs with the release in pki_cupti_marks_put */
        return false;
    *mark = marks[n % MARKS];
    pki_store_release(&taken, n + 1); /* pairs with the acquire in pki_cupti_marks_have_room */
    return true;
}
