/* lib/out/chrome/text.h - names as events have them, each escaped once. */
#pragma once

#include "out/chrome/chrome.h"

#define PKI_CHROME_BLOCK 32 /* lines are copied in whole blocks of so many bytes */

/* A name, ready to be copied. */
typedef struct pki_chrome_text {
    uint32_t before_length, args_length;
    bool counter;
    const char *args;          /* of a variant or counter: what goes inside "args":{...} */
    uint32_t tid, line_length; /* 0: there is no line yet */
    char *line;                /* what an event of thread `tid` has up to its time */
    char before[];             /* from ",\n{" to "tid": */
} pki_chrome_text;

/* NULL: there is no memory for it. */
pki_chrome_text *pki_chrome_text_of(pki_chrome *chrome, uint32_t id);

/* The line, for that thread. */
void pki_chrome_text_line(pki_chrome_text *text, uint32_t tid);

char *pki_chrome_put_escaped(char *p, const char *s, size_t n);
