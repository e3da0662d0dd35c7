#include "capture/median.h"

#include <string.h>

pki_like_steps *pki_like_of(pki_medians_by_kind *all, uint32_t kind)
{
    for (uint32_t i = 0; i < all->kinds; i++)
        if (all->of[i].kind == kind)
            return &all->of[i];
    if (all->kinds == PKI_LIKE_KINDS)
        return &all->of[PKI_LIKE_KINDS - 1];
    all->of[all->kinds].kind = kind;
    return &all->of[all->kinds++];
}

uint64_t pki_like_median(const pki_like_steps *like)
{
    return like->count < PKI_LIKE_LEAST ? 0 : like->sorted[like->count / 2];
}

/* Where the value stands, or belongs. */
static uint32_t lower_bound(const pki_like_steps *like, uint64_t ns)
{
    uint32_t low = 0, high = like->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (like->sorted[middle] < ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void drop_oldest(pki_like_steps *like)
{
    uint32_t at = lower_bound(like, like->turns[like->oldest]);
    like->count--;
    memmove(&like->sorted[at], &like->sorted[at + 1], (like->count - at) * sizeof *like->sorted);
}

void pki_like_add(pki_like_steps *like, uint64_t ns)
{
    if (like->count == PKI_LIKE_STEPS)
        drop_oldest(like);
    uint32_t at = lower_bound(like, ns);
    memmove(&like->sorted[at + 1], &like->sorted[at], (like->count - at) * sizeof *like->sorted);
    like->sorted[at] = ns;
    like->count++;
    like->turns[like->oldest] = ns;
    like->oldest = (like->oldest + 1) % PKI_LIKE_STEPS;
}
