#include "trainer.h"

#include <pk/goodput.h>
#include <pk/pk.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "model.h"
#include "options.h"

/* ---- checkpoints ---- */

/* The state of a training in a file, from which it goes on bit by bit as if never
 * stopped. */

/* What a run must have in common with the one that it continues, and how far that had come. */
typedef struct checkpoint_state {
    shape shape;
    uint64_t batch, seed;
    uint64_t step; /* steps done */
} checkpoint_state;

typedef enum checkpoint_result {
    CHECKPOINT_LOADED,
    CHECKPOINT_NONE,
    CHECKPOINT_BAD
} checkpoint_result;

/* PK_IO: the report sets this time apart from the computing, and "slowest steps" will name it. */
static pk_region save_region = PK_REGION_OF(PK_IO, "checkpoint");

/* The file: this, and then values, first and second moments. Bytes in the order of the machine,
 * which `order` tells apart. */
typedef struct header {
    char magic[8];
    uint32_t order, real_bytes;
    uint64_t layers, dim, heads, seq, batch, seed, step;
    uint64_t count; /* of numbers in each array */
    uint64_t checksum;
} header;

static const char magic[8] = "pktrain";

static uint64_t checksum_of(uint64_t sum, const real *array, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)array;
    for (size_t i = 0; i < count * sizeof(real); i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
    return sum;
}

static uint64_t checksum(const parameters *p)
{
    uint64_t sum = checksum_of(0xcbf29ce484222325u, p->values, p->count);
    sum = checksum_of(sum, p->first_moment, p->count);
    return checksum_of(sum, p->second_moment, p->count);
}

static header describe(const checkpoint_state *s, const parameters *p)
{
    header h = {.order = 0x01020304,
                .real_bytes = sizeof(real),
                .layers = s->shape.layers,
                .dim = s->shape.dim,
                .heads = s->shape.heads,
                .seq = s->shape.seq,
                .batch = s->batch,
                .seed = s->seed,
                .step = s->step,
                .count = p->count};
    memcpy(h.magic, magic, sizeof(magic));
    return h;
}

static bool write_all(FILE *file, const header *h, const parameters *p)
{
    return fwrite(h, sizeof(*h), 1, file) == 1 &&
           fwrite(p->values, sizeof(real), p->count, file) == p->count &&
           fwrite(p->first_moment, sizeof(real), p->count, file) == p->count &&
           fwrite(p->second_moment, sizeof(real), p->count, file) == p->count &&
           fflush(file) == 0 && fsync(fileno(file)) == 0;
}

/* "FILE.part": in the same directory, since a rename does not reach further. */
static bool name_part(char *part, size_t size, const char *path)
{
    if ((size_t)snprintf(part, size, "%s.part", path) < size)
        return true;
    complain("the name of the checkpoint is too long");
    return false;
}

static bool write_file(const char *path, const header *h, const parameters *p)
{
    FILE *file = fopen(path, "wbe");
    if (!file)
        return false;
    bool good = write_all(file, h, p);
    int error = errno;
    if (fclose(file) != 0 && good) {
        good = false;
        error = errno;
    }
    errno = error;
    return good;
}

/* Replaces the file as a whole or not at all. False after complaining. */
static bool checkpoint_save(const char *path, const checkpoint_state *state, const parameters *p)
{
    char part[4096];
    bool good = false;
    if (!name_part(part, sizeof(part), path))
        return false;
    {
        PK_REGION_SCOPE(save_region);
        header h = describe(state, p);
        h.checksum = checksum(p);
        good = write_file(part, &h, p) && rename(part, path) == 0;
        pk_region_add(&save_region, sizeof(h) + 3 * p->count * sizeof(real), 0);
    }
    if (!good) {
        complain("cannot write checkpoint %s: %s", path, strerror(errno));
        unlink(part);
    }
    return good;
}

static bool refuse(const char *path, const char *why)
{
    complain("cannot resume from %s: %s", path, why);
    return false;
}

static bool matches(const char *path, const char *name, uint64_t theirs, uint64_t ours)
{
    if (theirs != ours)
        complain("cannot resume from %s: it was made with --%s %" PRIu64 ", not %" PRIu64, path,
                 name, theirs, ours);
    return theirs == ours;
}

static bool same_run(const char *path, const header *theirs, const header *ours)
{
    if (memcmp(theirs->magic, ours->magic, sizeof(ours->magic)) != 0)
        return refuse(path, "it is not a checkpoint of pk-train");
    if (theirs->order != ours->order || theirs->real_bytes != ours->real_bytes)
        return refuse(path, "it comes from another kind of machine");
    return matches(path, "layers", theirs->layers, ours->layers) &&
           matches(path, "dim", theirs->dim, ours->dim) &&
           matches(path, "heads", theirs->heads, ours->heads) &&
           matches(path, "seq", theirs->seq, ours->seq) &&
           matches(path, "batch", theirs->batch, ours->batch) &&
           matches(path, "seed", theirs->seed, ours->seed);
}

static bool read_all(FILE *file, const char *path, header *h, const header *ours, parameters *p)
{
    if (fread(h, sizeof(*h), 1, file) != 1)
        return refuse(path, ferror(file) ? strerror(errno) : "it is too short");
    if (!same_run(path, h, ours))
        return false;
    if (h->count != p->count || fread(p->values, sizeof(real), p->count, file) != p->count ||
        fread(p->first_moment, sizeof(real), p->count, file) != p->count ||
        fread(p->second_moment, sizeof(real), p->count, file) != p->count)
        return refuse(path, "it is cut off");
    return h->checksum == checksum(p) || refuse(path, "it is damaged");
}

/* `state` says what is expected and gets the step. NONE: there is no such file. BAD: after
 * complaining; the parameters may then have changed. */
static checkpoint_result checkpoint_load(const char *path, checkpoint_state *state, parameters *p)
{
    header h = {0}, ours = describe(state, p);
    FILE *file = fopen(path, "rbe");
    if (!file && errno == ENOENT)
        return CHECKPOINT_NONE;
    if (!file) {
        refuse(path, strerror(errno));
        return CHECKPOINT_BAD;
    }
    bool good = read_all(file, path, &h, &ours, p);
    fclose(file);
    state->step = h.step;
    return good ? CHECKPOINT_LOADED : CHECKPOINT_BAD;
}

/* Whether a file can be made there; better to know before the training. False after complaining. */
static bool checkpoint_try(const char *path)
{
    char part[4096];
    if (!name_part(part, sizeof(part), path))
        return false;
    FILE *file = fopen(part, "abe");
    if (!file) {
        complain("cannot write checkpoint %s: %s", path, strerror(errno));
        return false;
    }
    fclose(file);
    unlink(part);
    return true;
}

/* ---- a training under way, one step at a time ---- */

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
    pk_training_set_step(t->step);
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
    {
        PK_REGION_SCOPE(wait_region);
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
    PK_REGION_SCOPE_NAMED("progress");
    double now = seconds_now(), steps = (double)(t->step - last->step);
    double rate = steps * (double)tokens_per_step(t) / (now - last->since);
    printf("step %5" PRIu64 " of %" PRIu64 "  loss %.4f  %6.0f tokens/s\n", t->step,
           t->options->steps, last->loss / steps, rate);
    *last = (progress){.step = t->step, .since = now};
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
        pk_step_add_flops(operations, 0);
        pk_step(tokens_per_step(t));
    }
    return true;
}
