/* pk/pk.h - all of perfkit but the C++ wrapper (pk/pk.hpp) and benchmarks (pk/bench.h).
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
 * Threads, failure and cost: see each header; they are the manual.
 */
#ifndef PK_PK_H
#define PK_PK_H

#include <pk/version.h>
#include <pk/status.h>
#include <pk/session.h>
#include <pk/region.h>
#include <pk/step.h>
#include <pk/goodput.h>
#include <pk/span.h>
#include <pk/request.h>
#include <pk/counter.h>
#include <pk/stats.h>
#include <pk/gpu.h>
#include <pk/comm.h>
#include <pk/nccl.h>
#include <pk/job.h>

#endif
