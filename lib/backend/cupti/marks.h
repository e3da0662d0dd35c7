/* lib/backend/cupti/marks.h - from when till when CUPTI has recorded, on its way from who switches
 * it to who emits.
 *
 * Threads: one at a time puts, one at a time takes; nothing else is locked.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct pki_cupti_mark {
    uint64_t ns; /* of the session */
    bool on;
} pki_cupti_mark;

void pki_cupti_marks_forget(void);

/* False: so many have not been taken yet that nothing may be switched. */
bool pki_cupti_marks_have_room(void);
void pki_cupti_marks_put(uint64_t ns, bool on);

/* False: there is none. */
bool pki_cupti_marks_pop(pki_cupti_mark *mark);
