/* lib/capture/budget.h - how many captures, and how many bytes of them, an hour may leave.
 *
 * Of the captures made within the last hour there are never more than so many, nor of more bytes,
 * at any moment. When the hour is full, one of more worth takes the place of the one of least: that
 * file is removed. Nothing else ever is. Of two of the same worth the earlier one stays.
 *
 * Threads: one at a time (whoever writes captures).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PKI_BUDGET_HOUR_NS 3600000000000u
#define PKI_BUDGET_LEAST 65536u /* bytes: with less left a capture is not begun */

typedef struct pki_kept {
    char *path;
    uint64_t device, inode; /* of the file that was made */
    uint64_t ns, bytes;
    double worth;
} pki_kept;

typedef struct pki_budget {
    uint32_t captures; /* per hour */
    uint64_t bytes;
    pki_kept *kept; /* of the last hour */
    size_t count, room;
    uint64_t removed; /* for others of more worth */
} pki_budget;

void pki_budget_finish(pki_budget *budget);

/* How many bytes one of that worth may take now; 0: it may not be made. */
uint64_t pki_budget_allows(pki_budget *budget, uint64_t now_ns, double worth);

/* One of so many bytes, as allowed, is about to get its name: removes what has to make room. */
void pki_budget_make_room(pki_budget *budget, uint64_t now_ns, double worth, uint64_t bytes);

/* It has it. Without memory it is counted as one that cannot be removed. */
void pki_budget_enter(pki_budget *budget, uint64_t now_ns, double worth, uint64_t bytes,
                      const char *path);

/* Was this path given to a capture of the last hour? */
bool pki_budget_has(const pki_budget *budget, const char *path);
