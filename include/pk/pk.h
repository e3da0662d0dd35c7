/* pk/pk.h - what most programs need: a session, regions, steps, counters and their statistics.
 *
 *     #include <pk/pk.h>
 *
 *     int main(void)
 *     {
 *         pk_start(pk_options(.trace_path = "hello.json", .report_path = "-"));
 *         for (int i = 0; i < 100; i++) {
 *             PK_REGION_SCOPE_NAMED("work");
 *             work();
 *         }
 *         pk_stop();
 *         return 0;
 *     }
 *
 *     cc hello.c $(pkg-config --cflags --libs pk)
 *
 * By an include of their own: pk/gpu.h (streams of a GPU), pk/comm.h and pk/nccl.h (collectives),
 * pk/span.h and pk/request.h (what begins on one thread and ends on another), pk/goodput.h (a
 * training over its restarts), pk/bench.h (benchmarks), and for C++ pk/pk.hpp.
 *
 * Units:   times are in ns unless a name says something else (_seconds, _ms, _ticks), sizes in
 *          bytes.
 * Threads, failure and cost: see each header; they are the manual.
 */
#ifndef PK_PK_H
#define PK_PK_H

#include <pk/version.h>
#include <pk/status.h>
#include <pk/session.h>
#include <pk/region.h>
#include <pk/step.h>
#include <pk/counter.h>
#include <pk/stats.h>

#endif
