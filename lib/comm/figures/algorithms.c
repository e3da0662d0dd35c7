/* lib/comm/figures/algorithms.c - by which algorithm and protocol operations of a size were done.
 */
#include "comm/figures/cells.h"

#include <stdio.h>
#include <string.h>

static bool is_same(const pki_operation_algorithm *a, const char *algorithm, const char *protocol)
{
    return strncmp(a->algorithm, algorithm, sizeof a->algorithm - 1) == 0 &&
           strncmp(a->protocol, protocol, sizeof a->protocol - 1) == 0;
}

static pki_operation_algorithm *algorithm_of(pki_operation_cell *cell, const char *algorithm,
                                             const char *protocol)
{
    for (size_t i = 0; i < cell->algorithm_count; i++)
        if (is_same(&cell->algorithms[i], algorithm, protocol))
            return &cell->algorithms[i];
    if (cell->algorithm_count == PKI_COMM_ALGORITHMS)
        return &cell->algorithms[PKI_COMM_ALGORITHMS - 1];
    pki_operation_algorithm *a = &cell->algorithms[cell->algorithm_count++];
    if (cell->algorithm_count == PKI_COMM_ALGORITHMS)
        algorithm = "(others)", protocol = "";
    snprintf(a->algorithm, sizeof a->algorithm, "%s", algorithm);
    snprintf(a->protocol, sizeof a->protocol, "%s", protocol);
    return a;
}

void pki_comm_figures_count_algorithm(pki_operation_cell *cell, const pki_timed_operation *op)
{
    if (!cell || !op->algorithm || !*op->algorithm)
        return;
    pki_operation_algorithm *a =
        algorithm_of(cell, op->algorithm, op->protocol ? op->protocol : "");
    a->calls++;
    a->channels += op->channels;
}
