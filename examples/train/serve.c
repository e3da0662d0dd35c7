/* serve - requests through perfkit (pk/request.h): a server that generates text with the demo's
 * transformer, one batch for all, and a load generator that asks it, in one process.
 *
 *     serve --load 0.9 --requests 200        requests come at random moments (open loop, Poisson),
 *                                            0.9 times as fast as the server can answer
 *     serve --load 0.3,0.9,2                 one run after the other: where time goes as load rises
 *
 * The server's loop is continuous batching: in each step it takes in who waits, reads a piece of
 * each new prompt, and generates the next bytes of all others. Who finds no room in memory is put
 * out and comes again. The load generator notes, by its own clock, when each request was asked and
 * answered: what it found stands beside what perfkit says.
 */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pk/pk.h>
#include <pk/request.h>

#include "model.h"
#include "layers.h"

enum {
    SLOTS = 4,    /* requests in the batch */
    WINDOW = 16,  /* bytes that the next one is guessed from */
    PIECE = 64,   /* of a prompt, read in one step */
    MEMORY = 600, /* bytes of prompts and answers that the batch may have together */
    REQUESTS_MOST = 10000
};

typedef struct request {
    pk_request stages;
    unsigned prompt, wanted; /* bytes */
    unsigned read, written;
    uint8_t last[WINDOW];
    double asked, first, latest; /* as the client sees it, s */
    bool done;
} request;

static pk_region completion = PK_REGION("completion");
static pk_region read_region = PK_REGION_OF(PK_COMPUTE, "read prompt");
static pk_region write_region = PK_REGION_OF(PK_COMPUTE, "generate");
static pk_region idle_region = PK_REGION_OF(PK_WAIT, "idle");

static model *reader, *writer; /* of one piece, and of all slots' windows */
static request *requests;
static unsigned count = 60, draft = 1, over;
static request *waiting[2 * REQUESTS_MOST]; /* a queue: who was put out comes first */
static unsigned waiting_from = REQUESTS_MOST, waiting_to = REQUESTS_MOST;
static request *batch[SLOTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static random_source chance = {42};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double uniform(void)
{
    return ((double)(random_bits(&chance) >> 11) + 0.5) * 0x1p-53;
}

/* ---- the server ---- */

static unsigned held(void)
{
    unsigned bytes = 0;
    for (unsigned i = 0; i < SLOTS; i++)
        bytes += batch[i] ? batch[i]->prompt + batch[i]->written : 0;
    return bytes;
}

/* Under the lock: who has waited longest, as long as there is room. */
static void take_in(void)
{
    for (unsigned i = 0; i < SLOTS && waiting_from < waiting_to; i++) {
        request *r = waiting[waiting_from];
        if (batch[i] || held() + r->prompt + r->written + SLOTS > MEMORY)
            continue;
        waiting_from++;
        batch[i] = r;
        pk_request_schedule(&r->stages);
    }
}

/* Under the lock: no room for another byte of all, so who came last begins anew. */
static void put_out(void)
{
    unsigned last = SLOTS;
    for (unsigned i = 0; i < SLOTS; i++)
        if (batch[i] && (last == SLOTS || batch[i] > batch[last]))
            last = i;
    if (held() + SLOTS <= MEMORY || last == SLOTS)
        return;
    pk_request_preempt(&batch[last]->stages);
    batch[last]->read = 0;
    waiting[--waiting_from] = batch[last];
    batch[last] = NULL;
}

/* False when all have been answered. */
static bool next_batch(void)
{
    PK_REGION_SCOPE(idle_region);
    pthread_mutex_lock(&lock);
    put_out();
    take_in();
    while (held() == 0 && over < count) {
        pthread_cond_wait(&more, &lock);
        take_in();
    }
    pthread_mutex_unlock(&lock);
    return over < count;
}

static void read_prompt(request *r)
{
    uint8_t piece[PIECE];
    unsigned n = r->prompt - r->read < PIECE ? r->prompt - r->read : PIECE;
    PK_REGION_SCOPE(read_region);
    memset(piece, 'a' + (int)(r->read % 26), sizeof piece);
    model_forward(reader, piece, piece);
    r->read += n;
    memcpy(r->last, piece, WINDOW);
    pk_request_prefill(&r->stages, n);
}

static uint8_t likeliest(const real *logits)
{
    unsigned best = 0;
    for (unsigned i = 1; i < VOCABULARY; i++)
        if (logits[i] > logits[best])
            best = i;
    return (uint8_t)best;
}

/* The client has it. */
static void deliver(request *r, unsigned bytes)
{
    pk_request_tokens(&r->stages, bytes);
    r->latest = now();
    if (!r->written)
        r->first = r->latest;
    r->written += bytes;
}

static void finish(unsigned slot)
{
    request *r = batch[slot];
    pk_request_end(&r->stages, PK_REQUEST_FINISHED);
    r->done = true;
    batch[slot] = NULL;
    over++;
}

static void append(request *r, uint8_t byte)
{
    memmove(r->last, r->last + 1, WINDOW - 1);
    r->last[WINDOW - 1] = byte;
}

/* One byte for each, or more where guesses come true. */
static void generate(void)
{
    uint8_t input[SLOTS * WINDOW] = {0};
    PK_REGION_SCOPE(write_region);
    for (unsigned i = 0; i < SLOTS; i++)
        if (batch[i])
            memcpy(input + i * WINDOW, batch[i]->last, WINDOW);
    model_forward(writer, input, input);
    for (unsigned i = 0; i < SLOTS; i++) {
        request *r = batch[i];
        if (!r || r->read < r->prompt)
            continue;
        append(r, likeliest(writer->logits + ((i + 1) * WINDOW - 1) * VOCABULARY));
        unsigned bytes = 1 + (draft > 1 ? (unsigned)(random_bits(&chance) % draft) : 0);
        deliver(r, bytes < r->wanted - r->written ? bytes : r->wanted - r->written);
        if (r->written == r->wanted)
            finish(i);
    }
}

static void *serve(void *none)
{
    pk_thread_set_name("server");
    while (next_batch()) {
        uint64_t tokens = 0;
        for (unsigned i = 0; i < SLOTS; i++)
            if (batch[i] && batch[i]->read < batch[i]->prompt) {
                read_prompt(batch[i]);
                tokens += PIECE;
            }
        generate();
        pk_step(tokens + SLOTS);
    }
    return none;
}

/* ---- the load generator ---- */

static void ask(request *r)
{
    pthread_mutex_lock(&lock);
    r->asked = now();
    r->stages = pk_request_begin(&completion, (uint64_t)(r - requests));
    waiting[waiting_to++] = r;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
}

static void sleep_until(double moment)
{
    double left = moment - now();
    struct timespec t = {(time_t)left, (long)((left - floor(left)) * 1e9)};
    if (left > 0)
        nanosleep(&t, NULL);
}

/* Whoever asks does not wait for answers: the distances are exponential. */
static void ask_all(double per_second)
{
    double at = now();
    for (unsigned i = 0; i < count; i++) {
        sleep_until(at);
        ask(&requests[i]);
        at -= log(uniform()) / per_second;
    }
}

static void make_requests(void)
{
    for (unsigned i = 0; i < count; i++) {
        bool is_long = uniform() < 0.15; /* now and then a large prompt */
        requests[i] = (request){.prompt = is_long ? 400 : 16 + (unsigned)(uniform() * 48),
                                .wanted = 8 + (unsigned)(uniform() * 24)};
    }
}

/* How many requests the server answers in a second, if the batch is always full. */
static double capacity(void)
{
    uint8_t input[PIECE + SLOTS * WINDOW] = {0};
    double reading = 0, writing = 0;
    for (unsigned i = 0; i < 6; i++) {
        double start = now();
        model_forward(reader, input, input);
        double middle = now();
        model_forward(writer, input, input);
        reading = i == 1 || middle - start < reading ? middle - start : reading;
        writing = i == 1 || now() - middle < writing ? now() - middle : writing;
    }
    return 1 / (2 * reading + 20 * writing / SLOTS);
}

/* ---- what it found ---- */

static int by_value(const void *a, const void *b)
{
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* The mean and two percentiles of what clients saw, beside perfkit's. */
static int compare(const char *what, double *seen, unsigned n, pk_region *region)
{
    static pk_stats stats;
    double mean = 0;
    if (n == 0 || pk_region_stats(region, &stats) != PK_OK)
        return 1;
    for (unsigned i = 0; i < n; i++)
        mean += seen[i] / n;
    qsort(seen, n, sizeof *seen, by_value);
    double p99 = seen[(unsigned)ceil(0.99 * n) - 1], ours = (double)pk_stats_quantile(&stats, 0.99);
    printf("%-14s clients: mean %9.3f ms, p99 %9.3f; perfkit: mean %9.3f, p99 %9.3f; apart %.1f us"
           " and %.1f us\n",
           what, mean * 1e3, p99 * 1e3, stats.mean * 1e-6, ours * 1e-6,
           fabs(mean * 1e6 - stats.mean * 1e-3), fabs(p99 * 1e6 - ours * 1e-3));
    return stats.count != n;
}

static int compare_all(void)
{
    double *seen = calloc(count, sizeof *seen);
    unsigned n = 0;
    int wrong = !seen;
    for (unsigned i = 0; seen && i < count; i++)
        seen[i] = requests[i].first - requests[i].asked;
    wrong = wrong || compare("TTFT", seen, count, pk_region_named("time to first token"));
    for (unsigned i = 0; seen && i < count; i++)
        if (requests[i].written > 1)
            seen[n++] = (requests[i].latest - requests[i].first) / (requests[i].written - 1);
    wrong = wrong || compare("TPOT", seen, n, pk_region_named("time per output token"));
    for (unsigned i = 0; seen && i < count; i++)
        seen[i] = requests[i].latest - requests[i].asked;
    wrong = wrong || compare("end to end", seen, count, &completion);
    free(seen);
    return wrong;
}

static int run(double load)
{
    pthread_t server;
    over = 0;
    waiting_from = waiting_to = REQUESTS_MOST;
    make_requests();
    double per_second = load * capacity();
    if (pk_start(NULL) != PK_OK || pthread_create(&server, NULL, serve, NULL))
        return 1;
    ask_all(per_second);
    pthread_join(server, NULL);
    printf("load %.2f: %.1f requests a second\n", load, per_second);
    int wrong = compare_all();
    pk_stop();
    return wrong;
}

static double number(int argc, char **argv, const char *name, double standard)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return atof(argv[i + 1]);
    return standard;
}

int main(int argc, char **argv)
{
    const shape piece = {2, 64, 4, PIECE}, window = {2, 64, 4, WINDOW};
    const char *loads = "0.9";
    int failed = 0;
    for (int i = 1; i + 1 < argc; i++)
        loads = strcmp(argv[i], "--load") == 0 ? argv[i + 1] : loads;
    count = (unsigned)fmin(fmax(number(argc, argv, "--requests", count), 1), REQUESTS_MOST);
    draft = (unsigned)fmax(number(argc, argv, "--draft", 1), 1);
    reader = model_create(&piece, 1);
    writer = model_create(&window, SLOTS);
    requests = calloc(count, sizeof *requests);
    if (!reader || !writer || !requests)
        return 2;
    parameters_randomise(&reader->parameters, 1);
    parameters_randomise(&writer->parameters, 2);
    pk_request_set_limits(number(argc, argv, "--ttft", 0), number(argc, argv, "--tpot", 0));
    for (const char *load = loads; load && !failed; load = strchr(load, ','))
        failed = run(fmax(atof(load += *load == ','), 0.001));
    model_destroy(reader);
    model_destroy(writer);
    free(requests);
    return failed;
}
