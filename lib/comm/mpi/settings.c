#include "comm/mpi/settings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <pk/job.h>

const char *pki_mpi_text_of(const char *variable)
{
    const char *text = secure_getenv(variable);
    return text && *text ? text : NULL;
}

void pki_mpi_refuse(const char *variable, const char *value, const char *sentence)
{
    char line[256];
    snprintf(line, sizeof line, "%.40s=%.60s is %.120s", variable, value, sentence);
    pk_log_(PK_LOG_WARNING, line);
}

long pki_mpi_setting_of(const pki_mpi_setting *s)
{
    const char *text = pki_mpi_text_of(s->variable);
    char *end = NULL, sentence[96];
    int saved = errno;
    if (!text)
        return s->otherwise;
    errno = 0;
    long value = strtol(text, &end, 10);
    bool valid = *text >= '0' && *text <= '9' && !*end && !errno;
    errno = saved;
    if (valid && value >= s->least && value <= s->most)
        return value;
    snprintf(sentence, sizeof sentence, "no number from %ld to %ld; it is %ld", s->least, s->most,
             s->otherwise);
    pki_mpi_refuse(s->variable, text, sentence);
    return s->otherwise;
}
