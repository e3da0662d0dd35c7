/* pk/goodput.h - what a training's wall time was good for, over all its restarts.
 *
 *     pk_start(pk_options(.goodput_path = "run.goodput"));
 *     ...
 *     pk_phase_begin(PK_PHASE_RESTORE);
 *     uint64_t done = load_checkpoint();       // steps that the checkpoint has behind it
 *     pk_phase_end(PK_PHASE_RESTORE);
 *     pk_training_set_step(done);                    // 0: from the beginning
 *     for (;;) {
 *         ... a step ...
 *         if (++done % 1000 == 0) {
 *             pk_phase_begin(PK_PHASE_CHECKPOINT);
 *             uint64_t bytes = save_checkpoint();
 *             pk_phase_end(PK_PHASE_CHECKPOINT);
 *             pk_checkpoint_done(done, bytes);
 *         }
 *         pk_step(samples);
 *     }
 *
 * pk_options.goodput_path names a file to which every run of the job appends how it spent its time;
 * `pk job run.goodput` adds the runs up (docs/production.md, "Goodput"). Each moment of a run
 * counts towards one part: a hang that the watchdog has detected, else the phase announced here,
 * else what the step is. Of steps, those of the kinds "evaluation", "validation", "test",
 * "checkpoint" and "compile" (pk_step_kind) belong to those parts; all others advance the training
 * by one step.
 *
 * A phase is time for which the training waits. Work on another thread meanwhile, such as a
 * checkpoint written in the background, is not a phase.
 *
 * Threads: any; there is one training per process, and phases nest across its threads.
 * Signals: as pk/region.h; a call amid another one of perfkit's is dropped.
 * Failure: none visible. An end without a begin does nothing; phases nested deeper than 8 count as
 *          the eighth.
 * Cost:    off: a load and a branch. On: a clock read and some twenty instructions under a lock
 *          that the collector takes for as long, 4 to 10 times a second.
 */
#ifndef PK_GOODPUT_H
#define PK_GOODPUT_H

#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pk_phase {
    PK_PHASE_STARTUP = 1,    /* set-up, all time before the first step counts as this */
    PK_PHASE_COMPILE = 2,    /* of kernels, of graphs */
    PK_PHASE_CHECKPOINT = 3, /* saving one */
    PK_PHASE_RESTORE = 4,    /* loading one */
    PK_PHASE_EVALUATION = 5
} pk_phase;

/* From begin to end the training is in that phase. Phases nest: after the end the one around it
 * goes on. An end also ends phases that were left open inside. */
PK_API PK_INLINE void pk_phase_begin(pk_phase phase);
PK_API PK_INLINE void pk_phase_end(pk_phase phase);

/* A checkpoint of the training after `step` steps is complete. bytes: its size; 0: unknown. From
 * here on a restart loses nothing of these steps. */
PK_API PK_INLINE void pk_checkpoint_done(uint64_t step, uint64_t bytes);

/* The training has completed `step` steps, and the step that runs is the next one. Without this
 * call it is unknown which steps were done before, so none counts as recomputed. */
PK_API PK_INLINE void pk_training_set_step(uint64_t step);

/* ---- below: how it is done ---- */

#ifndef PK_DISABLE

PK_API void pk_phase_begin_on_(pk_phase phase);
PK_API void pk_phase_end_on_(pk_phase phase);
PK_API void pk_checkpoint_done_on_(uint64_t step, uint64_t bytes);
PK_API void pk_training_set_step_on_(uint64_t step);

PK_INLINE void pk_phase_begin(pk_phase phase)
{
    if (PK_ON_)
        pk_phase_begin_on_(phase);
}

PK_INLINE void pk_phase_end(pk_phase phase)
{
    if (PK_ON_)
        pk_phase_end_on_(phase);
}

PK_INLINE void pk_checkpoint_done(uint64_t step, uint64_t bytes)
{
    if (PK_ON_)
        pk_checkpoint_done_on_(step, bytes);
}

PK_INLINE void pk_training_set_step(uint64_t step)
{
    if (PK_ON_)
        pk_training_set_step_on_(step);
}

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_GOODPUT_
#include <pk/disable.h>
#endif
#endif
