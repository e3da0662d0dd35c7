#include "trainer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "checkpoint.h"
#include "say.h"

/* The phases of a step. Each has a kind, since "where does the step go" is answered by kind first:
 * waiting for a batch here is PK_DATA, however busy or idle the loader's own thread is. */
static pk_region wait_region = PK_REGION_OF(PK_DATA, "batch.wait");
static pk_region forward_region = PK_REGION_OF(PK_COMPUTE, "forward");
static pk_region backward_region = PK_REGION_OF(PK_COMPUTE, "backward");
static pk_region optimizer_region = PK_REGION_OF(PK_COMPUTE, "optimizer");

/* Values over time, drawn as lines above the slices. */
static pk_counter loss_counter = PK_COUNTER("loss", "nats/byte");
static pk_counter norm_counter = PK_COUNTER("gradient.norm", NULL);

static shape shape_of(const options *o)
{
    return (shape){.layers = (size_t)o->layers,
                   .dim = (size_t)o->dim,
                   .heads = (size_t)o->heads,
                   .seq = (size_t)o->seq};
}

static checkpoint_state state_of(const trainer *t)
{
    return (checkpoint_state){.shape = shape_of(t->options),
                              .batch = t->options->batch,
                              .seed = t->options->seed,
                              .step = t->step};
}

static bool open_corpus(trainer *t)
{
    const options *o = t->options;
    if (o->file_count)
        return corpus_init(&t->corpus, o->files, (size_t)o->file_count, (size_t)o->seq);
    return text_find(&t->text, (size_t)o->seq) &&
           corpus_init(&t->corpus, t->text.paths, t->text.count, (size_t)o->seq);
}

static bool create_model(trainer *t)
{
    shape s = shape_of(t->options);
    t->model = model_create(&s, (size_t)t->options->batch);
    if (!t->model) {
        complain("not enough memory for this model");
        return false;
    }
    parameters_randomise(&t->model->parameters, t->options->seed);
    return true;
}

static bool resume(trainer *t)
{
    const options *o = t->options;
    checkpoint_state state = state_of(t);
    pk_phase_begin(PK_PHASE_RESTORE);
    checkpoint_result result = checkpoint_load(o->checkpoint, &state, &t->model->parameters);
    pk_phase_end(PK_PHASE_RESTORE);
    if (result == CHECKPOINT_LOADED)
        t->step = state.step;
    if (!o->quiet && result == CHECKPOINT_LOADED)
        printf("going on after step %" PRIu64 "\n", t->step);
    if (!o->quiet && result == CHECKPOINT_NONE)
        printf("no checkpoint yet at %s: beginning anew\n", o->checkpoint);
    return result != CHECKPOINT_BAD;
}

static bool start_loader(trainer *t)
{
    const options *o = t->options;
    t->loader = loader_start(&(loader_options){.corpus = &t->corpus,
                                               .batch = (size_t)o->batch,
                                               .queue = (size_t)o->queue,
                                               .seed = o->seed + 1000003 * o->shard,
                                               .first = t->step,
                                               .slow_ms = o->slow_ms,
                                               .slow_step = o->slow_step});
    return t->loader != NULL;
}

bool trainer_init(trainer *t, const options *o)
{
    *t = (trainer){.options = o};
    bool ready = open_corpus(t) && (!o->checkpoint || checkpoint_try(o->checkpoint)) &&
                 create_model(t) && (!o->resume || resume(t)) && start_loader(t);
    /* What has been done before is known now: steps that an earlier run had made beyond it, and
     * lost, are told apart from new ones. */
    pk_training_at(t->step);
    return ready;
}

void trainer_finish(trainer *t)
{
    loader_stop(t->loader);
    model_destroy(t->model);
    corpus_finish(&t->corpus);
    text_finish(&t->text);
}

static const batch *wait_for_batch(trainer *t)
{
    const batch *b = NULL;
    PK_SCOPE(wait_region) {
        b = loader_next(t->loader);
    }
    return b;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Computes on, for that part of the time since then. */
static void be_slow(double since, uint64_t percent)
{
    double now = seconds_now(), until = now + (now - since) * (double)percent / 100;
    while (percent && seconds_now() < until)
        ;
}

static void learn(trainer *t, const batch *b, step_result *result)
{
    const options *o = t->options;
    const adamw optimizer = {
        .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .decay = o->decay, .clip = o->clip};
    result->rate = learning_rate_at(o->rate, o->warmup, o->steps, t->step);

    /* Phases that follow each other: where one ends and the next begins, one clock read does for
     * both. */
    double since = o->slow_compute ? seconds_now() : 0;
    pk_region_begin(&forward_region);
    result->loss = model_forward(t->model, b->input, b->target);
    pk_region_next(&forward_region, &backward_region);
    parameters_clear_gradients(&t->model->parameters);
    model_backward(t->model, b->input);
    be_slow(since, o->slow_compute);
    if (t->communicate) {
        pk_region_end(&backward_region);
        t->communicate(&t->model->parameters, result->loss);
        pk_region_begin(&optimizer_region);
    } else {
        pk_region_next(&backward_region, &optimizer_region);
    }
    result->gradient_norm = adamw_update(&optimizer, &t->model->parameters, result->rate, t->step);
    pk_region_end(&optimizer_region);
}

bool trainer_step(trainer *t, step_result *result)
{
    const batch *b = wait_for_batch(t);
    if (!b)
        return false;
    learn(t, b, result);
    loader_release(t->loader);
    t->step++;
    if (!isfinite(result->loss)) {
        complain("the loss is not a number any more at step %" PRIu64 "; try a smaller --lr",
                 t->step);
        return false;
    }
    pk_counter_set(&loss_counter, result->loss);
    pk_counter_set(&norm_counter, result->gradient_norm);
    return true;
}

bool trainer_save(const trainer *t)
{
    checkpoint_state state = state_of(t);
    pk_phase_begin(PK_PHASE_CHECKPOINT);
    bool saved = checkpoint_save(t->options->checkpoint, &state, &t->model->parameters);
    pk_phase_end(PK_PHASE_CHECKPOINT);
    if (saved)
        pk_checkpoint_done(t->step, 3 * t->model->parameters.count * sizeof(real));
    return saved;
}

static uint64_t tokens_per_step(const trainer *t)
{
    return t->options->batch * t->options->seq;
}

/* The model's floating-point operations, for its FLOPs utilisation in the report. Embeddings are
 * looked up, not multiplied. */
static double operations_per_step(const trainer *t)
{
    const options *o = t->options;
    uint64_t looked_up = (VOCABULARY + o->seq) * o->dim;
    double token = pk_transformer_flops(t->model->parameters.count - looked_up, o->layers, o->heads,
                                        o->dim / o->heads, o->seq);
    return token * (double)tokens_per_step(t);
}

static void introduce(const trainer *t)
{
    printf("%zu files, %.1f KiB of text; %.2f M parameters; %" PRIu64 " bytes per step\n",
           t->corpus.file_count, (double)(t->corpus.windows * t->corpus.seq) / 1024,
           (double)t->model->parameters.count * 1e-6, tokens_per_step(t));
    if (t->options->slow_step)
        printf("on purpose: nothing can be read for a while before step %" PRIu64
               ", counted from 0 (--slow-step)\n",
               t->options->slow_step);
}

/* Since the last line. */
typedef struct progress {
    uint64_t step;
    double since, loss; /* the sum of the losses */
} progress;

static void print_progress(const trainer *t, progress *last)
{
    /* A region that is used in one place needs no declaration. */
    PK_SCOPE_NAMED("progress") {
        double now = seconds_now(), steps = (double)(t->step - last->step);
        double rate = steps * (double)tokens_per_step(t) / (now - last->since);
        printf("step %5" PRIu64 " of %" PRIu64 "  loss %.4f  %6.0f tokens/s\n", t->step,
               t->options->steps, last->loss / steps, rate);
        *last = (progress){.step = t->step, .since = now};
    }
}

static bool finish_step(const trainer *t, const step_result *result, progress *last, bool final)
{
    const options *o = t->options;
    last->loss += result->loss;
    if (!o->quiet && (final || t->step == 1 || t->step % o->print_every == 0))
        print_progress(t, last);
    return !o->checkpoint || (!final && t->step % o->checkpoint_every != 0) || trainer_save(t);
}

bool trainer_run(trainer *t, const volatile sig_atomic_t *stop)
{
    progress last = {.step = t->step, .since = seconds_now()};
    const double operations = operations_per_step(t);
    if (!t->options->quiet)
        introduce(t);
    for (bool final = t->step >= t->options->steps; !final;) {
        step_result result = {0};
        if (!trainer_step(t, &result))
            return false;
        final = t->step >= t->options->steps || (stop && *stop);
        if (!finish_step(t, &result, &last, final))
            return false;
        /* All that belongs to the step is done, the checkpoint included: the next one begins here.
         * The number of tokens gives the report its throughput. */
        pk_step_flops(operations, 0);
        pk_step(tokens_per_step(t));
    }
    return true;
}
