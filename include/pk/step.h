/* pk/step.h - the training loop: one call per step.
 *
 *     while (next_batch(&batch)) {
 *         ... regions ...
 *         pk_step(batch.samples);              // this step is over, the next one begins
 *     }
 *
 * Each step has its duration, its throughput, and a breakdown: the self time (without the regions
 * inside) of the calling thread's regions during the step, added up by kind. The kinds are data,
 * compute, comm, io, wait and other, and untracked for time outside every region. Only the calling
 * thread counts: data that another thread loads is data time only while this thread waits for it,
 * in a PK_DATA or PK_WAIT region.
 *
 * A step begins where the one before has ended, unless the program says that it begins later: what
 * a loop does between its steps (a validation, a checkpoint) then belongs to none.
 *
 *     pk_step_begin();                         // after the validation
 *     ... a training step ...
 *     pk_step(batch.samples);
 *
 * Steps that do something other than most are given a kind, pk_step_kind("evaluation"). Each kind
 * has its own figures and is left out of those of the usual steps: of their warm-up, slowest steps
 * and verdicts, too.
 *
 * If the program states how many floating-point operations a step takes, the report gives the share
 * of the hardware's peak that it reaches:
 *
 *     double per_token = pk_transformer_flops(parameters, layers, heads, head_size, sequence);
 *     ... in the loop ...
 *     pk_step_add_flops(per_token * tokens, 0);    // before pk_step(tokens)
 *
 * Threads: one loop per process. Any thread may call; a call made while another is in progress is
 *          dropped and counted. A step whose predecessor ended on another thread has a duration but
 *          no breakdown.
 * Failure: none visible. If the ring has no room, the step is missing from the trace, has no
 *          breakdown, and is counted; its duration is still in the distribution.
 * Cost:    off: a load and a branch. On: one clock read and 64 bytes into the ring, and 32 more for
 *          each region that is open across the step's end.
 */
#ifndef PK_STEP_H
#define PK_STEP_H

#include <pk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Ends the current step and begins the next. items: samples or tokens in the step that ends; 0:
 * unknown. The first step begins with pk_start, so it includes the program's set-up; the report
 * shows warm-up separately. Time after the last call belongs to no step. In the trace steps are
 * slices named ProfilerStep#0, #1, ... on a track of their own. */
PK_API PK_INLINE void pk_step(uint64_t items);

/* The next step starts here, not where the last one ended. The time from there to here is shown as
 * "between steps": in the trace as a slice of that name on the steps' track, in the report with
 * what the calling thread did meanwhile, by kind. A second call in a row, or one before the first
 * step, ends the time until then in the same way. Cost and threads as pk_step. */
PK_API PK_INLINE void pk_step_begin(void);

/* The kind of the step that runs (or is about to begin), such as "evaluation". It holds until the
 * next pk_step; the step after that is a usual one again. NULL or "": the usual kind. The name is
 * copied; up to 16 kinds are kept apart; all others are summed as "(other kinds)". Any thread; a
 * look-up of the name, some 50 ns. */
PK_API PK_INLINE void pk_step_kind(const char *kind);

/* Floating-point operations of the step that runs, of this process alone, a multiplication and an
 * addition being two. Calls within a step add up (one for each micro-batch, say).
 *   model:    what the model needs, however it is computed: pk_transformer_flops(...) x tokens.
 *   hardware: what was executed, recomputed activations included; 0: as many as the model needs.
 *             With full activation recomputation it is 4/3 of the model's, since the forward pass
 *             is two sixths of each token's operations.
 * The report gives both as a share of the peak, over the usual steps after the warm-up for which
 * this was called: MFU (model FLOPs utilisation; A. Chowdhery and others, "PaLM: Scaling Language
 * Modeling with Pathways", 2022, appendix B) and HFU (hardware FLOPs utilisation). The option
 * `peak` (pk/options.h) says which peak. Each number is kept with 24 bits, to within 6e-8 of it.
 * Values that are not finite or below 0 are ignored. Any thread; some 20 ns. */
PK_API PK_INLINE void pk_step_add_flops(double model, double hardware);

/* Operations that training of a dense transformer needs for one token, forward and backward: 6 N +
 * 12 L H Q T, with N parameters, L layers, H heads of size Q, and sequences of T tokens (PaLM,
 * appendix B, as above: 2 + 4 operations for each parameter, and attention's two products of
 * matrices, of which a causal mask saves nothing there). N excludes the embedding table, which is
 * looked up rather than multiplied, and includes the output layer. For a mixture of experts N is
 * the parameters that one token activates. No state, no cost. */
PK_API double pk_transformer_flops(uint64_t parameters, uint64_t layers, uint64_t heads,
                                   uint64_t head_size, uint64_t sequence);

/* ---- below: how it is done ---- */

#ifndef PK_DISABLE

PK_API void pk_step_add_flops_on_(double model, double hardware);
PK_API void pk_step_on_(uint64_t items);
PK_API void pk_step_begin_on_(void);
PK_API void pk_step_kind_on_(const char *kind);

PK_INLINE void pk_step(uint64_t items)
{
    if (PK_ON_)
        pk_step_on_(items);
}

PK_INLINE void pk_step_begin(void)
{
    if (PK_ON_)
        pk_step_begin_on_();
}

PK_INLINE void pk_step_kind(const char *kind)
{
    if (PK_ON_)
        pk_step_kind_on_(kind);
}

PK_INLINE void pk_step_add_flops(double model, double hardware)
{
    if (PK_ON_)
        pk_step_add_flops_on_(model, hardware);
}

#endif /* PK_DISABLE */

#ifdef __cplusplus
}
#endif

#ifdef PK_DISABLE
#define PK_DISABLE_STEP_
#include <pk/disable.h>
#endif
#endif
