/* tools/load/parts.h - what the files that read the JSON report share. Nobody else includes it. */
#ifndef TOOLS_LOAD_PARTS_H
#define TOOLS_LOAD_PARTS_H

#include "read/json_read.h"
#include "measure/summary.h"

void load_dist(json_reader *j, json_t *row, const char *key, pki_dist *dist);
void load_comm(json_reader *j, json_t *from, pki_comm_summary *comm);

#endif
