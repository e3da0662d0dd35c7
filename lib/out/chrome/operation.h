/* lib/out/chrome/operation.h - what an operation on a communicator says of itself in the trace: the
 * arguments that PyTorch's profiler gives a collective and HTA reads, the same for a record and for
 * what a backend has seen. */
#pragma once

#include "comm/model/operation.h"
#include "core/arena.h"
#include "out/chrome/chrome.h"

/* Appends the arguments, each with a comma before it. At most PKI_OPERATION_BYTES. */
#define PKI_OPERATION_BYTES 2200
char *pki_chrome_put_operation(char *p, const pki_chrome *chrome, const pki_operation *operation);

/* The same for a record, and the region around; `more` is its second slot, tag the message's
 * (PKI_TAGGED). */
char *pki_chrome_put_recorded(char *p, const pki_chrome *chrome, const pki_record *more,
                              uint64_t tag);

/* An operation of its own, which may overlap with others: a pair of asynchronous events, each
 * preceded by ",\n". Returns the length. */
size_t pki_chrome_operation(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint32_t tid,
                            const pki_record *record, const pki_record *more);

/* How far a communicator has come: an instant of the process, of category "perfkit", preceded by
 * ",\n". */
#define PKI_CHROME_PROGRESS "communicator"
size_t pki_chrome_progress(const pki_chrome *chrome, char out[PKI_EVENT_BYTES], uint64_t ns,
                           const pki_comms_entry *entry);
