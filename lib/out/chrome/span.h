/* lib/out/chrome/span.h - pk_spans as asynchronous events: b, n and e of the category "span". */
#pragma once

#include "out/chrome/chrome.h"

#define PKI_CHROME_SPAN "span" /* the category */

/* Of a PKI_RECORD_SPAN_*. An end whose begin has no record is both events. */
size_t pki_chrome_span(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                       const pki_record *record, const pki_record *more);

/* The end of an event of a PKI_RECORD_REQUEST: what is known of it. */
char *pki_chrome_put_request(char *p, const pki_record *record, const pki_record *more);

/* The begin of one that is known to be open, or of an end. Its start in ticks. */
typedef struct pki_chrome_open {
    uint64_t start, id;
    uint32_t name, serial;
} pki_chrome_open;
size_t pki_chrome_span_begin(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                             const pki_chrome_open *span);

/* An end, marked, of one that has none: viewers draw what never ends in their own ways, or warn. */
size_t pki_chrome_span_unfinished(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                                  const pki_chrome_open *span, uint64_t ticks);
