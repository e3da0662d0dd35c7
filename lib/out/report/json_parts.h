/* lib/out/report/json_parts.h - what the files that write the JSON report share. Nobody else
 * includes it. */
#ifndef PKI_OUT_REPORT_JSON_PARTS_H
#define PKI_OUT_REPORT_JSON_PARTS_H

#include "out/json_write.h"
#include "out/report/report.h"

void pki_report_json_dist(pki_json *j, const char *key, const pki_dist *dist);

#define PKI_REPORT_ROWS(j, name, rows, count, put)                                                 \
    do {                                                                                           \
        pki_json_row(j);                                                                           \
        pki_json_open(j, name, '[');                                                               \
        for (size_t i_ = 0; i_ < (count); i_++)                                                    \
            put(j, &(rows)[i_]);                                                                   \
        pki_json_close(j, ']');                                                                    \
    } while (0)

void pki_report_json_comm(pki_json *j, const pki_comm_summary *comm);

#endif
