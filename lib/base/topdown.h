/* lib/base/topdown.h - which events tell what became of a thread's pipeline slots.
 *
 * In each cycle a processor's core can take so many operations further; each of these places is a
 * slot. Level 1 of the top-down method (Yasin, "A Top-Down Method for Performance Analysis and
 * Counters Architecture", ISPASS 2014) says what became of them: what was in it retired; it was
 * thrown away; the front end had nothing for it; the back end could not take it.
 *
 * Intel, from Ice Lake on: the kernel describes one event for each of the four, in slots
 * (/sys/bus/event_source/devices/cpu/events; cpu_core/ where there are two sorts of cores). They
 * have to be in a group that `slots` leads, and are read with it by read(2): what rdpmc gives of
 * them are shares that only together with the slots are a count (linux, tools/perf/Documentation/
 * topdown.txt).
 *
 * AMD, Zen 4 and Zen 5: slots in which nothing was dispatched are counted, by reason, and so are
 * the operations that were dispatched and those that retired (linux, tools/perf/pmu-events/arch/
 * x86/amdzen4 and amdzen5, "PipelineL1"; AMD's Processor Programming References). Of 6 or 8 slots a
 * cycle those without a dispatch since it was the other thread's turn (SMT contention) are left
 * out: what is left is dispatched + front-end bound + back-end bound, the slots that this thread
 * had, which is what `slots` is on Intel's. So neither cycles nor a processor's width are needed.
 */
#pragma once

#include "base/perf.h"

/* In this order, in slots: retiring, bad speculation, front-end bound, back-end bound. */
enum { PKI_SLOTS_RETIRING, PKI_SLOTS_BAD_SPECULATION, PKI_SLOTS_FRONTEND, PKI_SLOTS_BACKEND };

typedef struct pki_topdown {
    pki_perf_event event[PKI_PERF_MOST]; /* as pki_perf_open wants them */
    unsigned count;                      /* 0: there are none */
    bool counts_dispatched;              /* the second are all that were dispatched: those that
                                            retired are to be subtracted */
} pki_topdown;

/* False: in one sentence without its full stop, why there are none. */
bool pki_topdown_find(pki_topdown *out, char *why_not, size_t size);

/* The kernel's description of an event, "event=0x00,umask=0x4", as perf_event_attr.config. False:
 * it says more, or less. */
bool pki_topdown_config(const char *text, uint64_t *config);

/* For tests: the folder that stands for /. */
extern const char *pki_topdown_root;
