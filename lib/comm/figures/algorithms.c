/* lib/comm/figures/algorithms.c - by which algorithm and protocol operations of a size were done. */
#include "comm/figures/cells.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"

static bool is_that(const pki_collective_way *way, const char *algorithm, const char *protocol)
{
    return strncmp(way->algorithm, algorithm, sizeof way->algorithm - 1) == 0 &&
           strncmp(way->protocol, protocol, sizeof way->protocol - 1) == 0;
}

static pki_collective_way *way_of(pki_collective_cell *cell, const char *algorithm, const char *protocol)
{
    for (size_t i = 0; i < cell->way_count; i++)
        if (is_that(&cell->ways[i], algorithm, protocol))
            return &cell->ways[i];
    if (cell->way_count == PKI_COMM_WAYS)
        return &cell->ways[PKI_COMM_WAYS - 1];
    pki_collective_way *way = &cell->ways[cell->way_count++];
    if (cell->way_count == PKI_COMM_WAYS)
        algorithm = "(others)", protocol = "";
    snprintf(way->algorithm, sizeof way->algorithm, "%s", algorithm);
    snprintf(way->protocol, sizeof way->protocol, "%s", protocol);
    return way;
}

void pki_collectives_count_way(pki_collective_cell *cell, const pki_collective *op)
{
    if (!cell || !op->algorithm || !*op->algorithm)
        return;
    pki_collective_way *way = way_of(cell, op->algorithm, op->protocol ? op->protocol : "");
    way->calls++;
    way->channels += op->channels;
}
