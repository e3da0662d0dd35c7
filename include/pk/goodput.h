/* pk/goodput.h - what a training's wall time was good for, over all its restarts.
 *
 *     pk_start(pk_options(.goodput_path = "run.goodput"));
 *     ...
 *     pk_phase_begin(PK_PHASE_RESTORE);
 *     uint64_t done = load_checkpoint();       // steps that the checkpoint has behind it
 *     pk_phase_end(PK_PHASE_RESTORE);
 *     pk_training_at(done);                    // 0: from the beginning
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
 * pk_options.goodput_path names a file to which every run of the job appends what its time went
 * into; `pk job run.goodput` adds the runs up (docs/production.md, "Goodput"). Each moment of a run
 * is in one part: a hang that the watchdog has found, else the phase that is announced here, else
 * what the step is. Of steps, those of the kinds "evaluation", "validation", "test", "checkpoint"
 * and "compile" (pk_step_kind) belong to those parts; all others take the training one step on.
 *
 * A phase is what the training waits for. What a thread of its own does meanwhile, a checkpoint
 * that is written in the background, is none.
 *
 * Threads: any; there is one training per process, and phases nest across its threads.
 * Signals: as pk/region.h; a call amid another one of perfkit's is dropped.
 * Failure: none visible. An end without its begin does nothing; more than 8 phases inside each
 *          other count as the eighth.
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
    PK_PHASE_STARTUP = 1, /* set-up, wherever it happens; before the first step all time is that */
    PK_PHASE_COMPILE = 2, /* of kernels, of graphs */
    PK_PHASE_CHECKPOINT = 3, /* saving one */
    PK_PHASE_RESTORE = 4,    /* loading one */
    PK_PHASE_EVALUATION = 5
} pk_phase;

/* From here on the training is in that phase. The one around it, if there is one, goes on at the
 * end, which also ends what was left open inside. */
PK_API PK_INLINE void pk_phase_begin(pk_phase phase);
PK_API PK_INLINE void pk_phase_end(pk_phase phase);

/* A checkpoint is complete that has `step` steps of the training behind it. bytes: its size; 0:
 * unknown. From here on a restart loses nothing that was done before it. */
PK_API PK_INLINE void pk_checkpoint_done(uint64_t step, uint64_t bytes);

/* The training has `step` steps behind it, and the step that runs is the next one. Without this
 * call nobody knows which steps have been made before, and none counts as recomputed. */
PK_API PK_INLINE void pk_training_at(uint64_t step);

/* ---- below: how it is done ---- */

#ifndef PK_DISABLE

PK_API void pk_phase_begin_on_(pk_phase phase);
PK_API void pk_phase_end_on_(pk_phase phase);
PK_API void pk_checkpoint_done_on_(uint64_t step, uint64_t bytes);
PK_API void pk_training_at_on_(uint64_t step);

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

PK_INLINE void pk_training_at(uint64_t step)
{
    if (PK_ON_)
        pk_training_at_on_(step);
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
