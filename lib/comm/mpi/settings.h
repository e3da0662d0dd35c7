/* lib/comm/mpi/settings.h - variables that libpk_mpi itself reads. */
#pragma once

#include <stdbool.h>

typedef struct pki_mpi_setting {
    const char *variable;
    long least, most, otherwise;
} pki_mpi_setting;

/* A number, or `otherwise` where the variable is not set or empty; also where it is none, or beyond
 * its bounds, which is logged (warning). */
long pki_mpi_setting_of(const pki_mpi_setting *setting);

/* NULL: not set, or empty. */
const char *pki_mpi_text_of(const char *variable);

/* "PK_X=VALUE is SENTENCE" through the log function. */
void pki_mpi_refuse(const char *variable, const char *value, const char *sentence);
