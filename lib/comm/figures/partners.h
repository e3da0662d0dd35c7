/* lib/comm/figures/partners.h - with whom messages were exchanged: how many, of how many bytes.
 *
 * Of the first PKI_PARTNERS_MOST ranks exactly; what is exchanged with others is one row more. So a
 * rank's room is bounded, and the sums over all partners are exact.
 */
#pragma once

#include "comm/figures/figures.h"

#define PKI_PARTNERS_MOST 1024

typedef struct pki_comm_partners {
    size_t count, room;
    pki_partner_row *rows;
    uint16_t table[2 * PKI_PARTNERS_MOST]; /* hash of the rank to index + 1 */
    pki_partner_row others;
} pki_comm_partners;

/* False: there is no memory. What is no message, or with nobody known, is nothing. */
bool pki_comm_partners_add(pki_comm_partners *p, const pki_timed_operation *op);

/* In the order of ranks, those that were too many to be told apart last; in *count. NULL without
 * memory. */
pki_partner_row *pki_comm_partners_rows(const pki_comm_partners *p, size_t *count);

/* The rows of those with most bytes, then most messages; of what is left one row, the last, is the
 * sum. In place; how many there are then. */
size_t pki_partners_narrow(pki_partner_row *rows, size_t count, size_t most);
