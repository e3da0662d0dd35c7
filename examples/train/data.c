#include "data.h"

#include <pk/pk.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "layers.h"
#include "options.h"

/* ---- the text to learn from ---- */

/* -1 after complaining. */
static int open_text(const char *path, uint64_t *size)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) {
        complain("cannot read %s: %s", path, strerror(errno));
        return -1;
    }
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) {
        *size = (uint64_t)status.st_size;
        return descriptor;
    }
    complain("cannot learn from %s: not a regular file", path);
    close(descriptor);
    return -1;
}

static bool add_file(corpus *c, const char *path)
{
    uint64_t size = 0;
    int descriptor = open_text(path, &size);
    if (descriptor < 0)
        return false;
    c->files[c->file_count++] =
        (corpus_file){.path = path, .descriptor = descriptor, .first = c->windows};
    if (size <= c->seq) {
        complain("cannot learn from %s: %llu bytes; sequences of %zu need at least %zu", path,
                 (unsigned long long)size, c->seq, c->seq + 1);
        return false;
    }
    c->windows += (size - 1) / c->seq;
    return true;
}

bool corpus_init(corpus *c, char *const *paths, size_t count, size_t seq)
{
    *c = (corpus){.seq = seq, .files = calloc(count ? count : 1, sizeof(*c->files))};
    bool good = c->files != NULL;
    if (!good)
        complain("not enough memory for %zu files", count);
    for (size_t i = 0; good && i < count; i++)
        good = add_file(c, paths[i]);
    if (!good)
        corpus_finish(c);
    return good;
}

void corpus_finish(corpus *c)
{
    for (size_t i = 0; i < c->file_count; i++)
        close(c->files[i].descriptor);
    free(c->files);
    *c = (corpus){0};
}

static const corpus_file *find_file(const corpus *c, uint64_t window)
{
    size_t low = 0, high = c->file_count; /* the file is one of low .. high - 1 */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (c->files[middle].first <= window)
            low = middle;
        else
            high = middle;
    }
    return &c->files[low];
}

bool corpus_read(const corpus *c, uint64_t window, uint8_t *bytes)
{
    const corpus_file *file = find_file(c, window);
    uint64_t offset = (window - file->first) * c->seq;
    for (size_t done = 0; done <= c->seq;) {
        ssize_t got =
            pread(file->descriptor, bytes + done, c->seq + 1 - done, (off_t)(offset + done));
        if (got > 0) {
            done += (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            complain("cannot read %s: %s", file->path,
                     got == 0 ? "it has become shorter" : strerror(errno));
            return false;
        }
    }
    return true;
}

/* ---- something to read when no file is named ---- */

/* The build says where the sources are. */
#ifndef TRAIN_SOURCE_DIR
#define TRAIN_SOURCE_DIR "."
#endif

static const char *const places[] = {
    "/usr/share/common-licenses/*",
    TRAIN_SOURCE_DIR "/*.[ch]",
};

static bool suits(const char *path, size_t seq)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) && (uint64_t)status.st_size > seq;
}

/* Moves the suitable ones to the front; globfree() still finds them all. */
static void sort_out(text *t, size_t seq)
{
    t->paths = t->found.gl_pathv;
    for (size_t i = 0; i < t->found.gl_pathc; i++) {
        char *path = t->paths[i];
        if (!suits(path, seq))
            continue;
        t->paths[i] = t->paths[t->count];
        t->paths[t->count++] = path;
    }
}

bool text_find(text *t, size_t seq)
{
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        *t = (text){0};
        if (glob(places[i], 0, NULL, &t->found) == 0)
            sort_out(t, seq);
        if (t->count)
            return true;
        text_finish(t);
    }
    complain("no text to learn from: name a file of more than %zu bytes", seq);
    return false;
}

void text_finish(text *t)
{
    globfree(&t->found);
    *t = (text){0};
}

/* ---- batches on their way from the loader to the trainer ---- */

/* A counter is a line in the trace: a queue that keeps touching zero is a loader that cannot keep
 * up. */
static pk_counter length_counter = PK_COUNTER("loader.queue", "batches");

struct queue {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* there is room, or a batch, or the end */
    bool closed;
    size_t capacity;
    size_t full;      /* committed and not yet released */
    size_t next_full; /* the oldest of them */
    uint64_t taken;   /* when, by nanoseconds() */
    uint64_t kept, kept_in_all, released;
    batch *batches;
    uint8_t *memory;
};

/* Waits by the clock that no one sets. */
static bool init_waiting(queue *q)
{
    pthread_condattr_t attributes;
    if (pthread_mutex_init(&q->lock, NULL) != 0)
        return false;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool good = pthread_cond_init(&q->changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (!good)
        pthread_mutex_destroy(&q->lock);
    return good;
}

static uint64_t nanoseconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void free_memory(queue *q)
{
    free(q->batches);
    free(q->memory);
    free(q);
}

/* Room for `capacity` batches of so many bytes of input. NULL if there is no memory. */
static queue *queue_create(size_t capacity, size_t bytes)
{
    queue *q = calloc(1, sizeof(*q));
    if (!q)
        return NULL;
    q->capacity = capacity;
    q->batches = calloc(capacity, sizeof(*q->batches));
    q->memory = calloc(capacity, 2 * bytes);
    if (!q->batches || !q->memory || !init_waiting(q)) {
        free_memory(q);
        return NULL;
    }
    for (size_t i = 0; i < capacity; i++) {
        q->batches[i].input = q->memory + 2 * i * bytes;
        q->batches[i].target = q->batches[i].input + bytes;
    }
    return q;
}

/* NULL is fine */
static void queue_destroy(queue *q)
{
    if (!q)
        return;
    pthread_cond_destroy(&q->changed);
    pthread_mutex_destroy(&q->lock);
    free_memory(q);
}

/* The loader's side. claim waits for room; NULL once the queue is closed. */
static batch *queue_claim(queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->full == q->capacity)
        pthread_cond_wait(&q->changed, &q->lock);
    batch *empty = q->closed ? NULL : &q->batches[(q->next_full + q->full) % q->capacity];
    pthread_mutex_unlock(&q->lock);
    return empty;
}

static void queue_commit(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->full++;
    pk_counter_set(&length_counter, (double)q->full);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* The trainer's side. take waits for a batch; NULL once the queue is closed. */
static const batch *queue_take(queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->full == 0)
        pthread_cond_wait(&q->changed, &q->lock);
    batch *oldest = q->closed ? NULL : &q->batches[q->next_full];
    q->taken = nanoseconds();
    pthread_mutex_unlock(&q->lock);
    return oldest;
}

static void queue_release(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->next_full = (q->next_full + 1) % q->capacity;
    q->full--;
    q->kept = nanoseconds() - q->taken;
    q->kept_in_all += q->kept;
    q->released++;
    pk_counter_set(&length_counter, (double)q->full);
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* Either side: both stop waiting, for good. */
static void queue_close(queue *q)
{
    pthread_mutex_lock(&q->lock);
    q->closed = true;
    pthread_cond_broadcast(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* Waits so many nanoseconds; false at once when the queue is closed. */
static bool queue_sleep(queue *q, uint64_t duration)
{
    uint64_t end = nanoseconds() + duration;
    struct timespec until = {.tv_sec = (time_t)(end / 1000000000),
                             .tv_nsec = (long)(end % 1000000000)};
    int result = 0;
    pthread_mutex_lock(&q->lock);
    while (!q->closed && result == 0)
        result = pthread_cond_timedwait(&q->changed, &q->lock, &until);
    bool open = !q->closed;
    pthread_mutex_unlock(&q->lock);
    return open;
}

/* How long the trainer has kept its last batch, in nanoseconds; 0 before it has released one. */
static uint64_t queue_kept(queue *q)
{
    pthread_mutex_lock(&q->lock);
    uint64_t kept = q->kept;
    pthread_mutex_unlock(&q->lock);
    return kept;
}

/* The mean of that over all batches so far. */
static uint64_t queue_kept_mean(queue *q)
{
    pthread_mutex_lock(&q->lock);
    uint64_t mean = q->released ? q->kept_in_all / q->released : 0;
    pthread_mutex_unlock(&q->lock);
    return mean;
}

/* The loader's side: waits until the trainer has released all; false at once when the queue is
 * closed. */
static bool queue_drain(queue *q)
{
    pthread_mutex_lock(&q->lock);
    while (!q->closed && q->full > 0)
        pthread_cond_wait(&q->changed, &q->lock);
    bool open = !q->closed;
    pthread_mutex_unlock(&q->lock);
    return open;
}

/* ---- the thread that reads batches ahead of the trainer ---- */

/* The thread's own regions. They show in the trace what the loader does while the trainer computes.
 * They are not data time of the step: that is what the trainer waits, "batch.wait" in trainer.c. */
static pk_region read_region = PK_REGION_OF(PK_DATA, "loader.read");
static pk_region slow_region = PK_REGION_OF(PK_DATA, "loader.slow");
static pk_region stalled_region = PK_REGION_OF(PK_DATA, "loader.stalled");
static pk_region full_region = PK_REGION_OF(PK_WAIT, "loader.full");

struct loader {
    loader_options options;
    queue *queue;
    uint8_t *window; /* room for one */
    pthread_t thread;
};

static uint64_t choose_window(const loader_options *o, uint64_t place)
{
    uint64_t windows = o->corpus->windows, epoch = place / windows;
    return random_order(random_mix(o->seed ^ random_mix(epoch + 1)), place % windows, windows);
}

static bool fill(const loader *l, uint64_t number, batch *b)
{
    const loader_options *o = &l->options;
    size_t seq = o->corpus->seq;
    b->number = number;
    for (size_t i = 0; i < o->batch; i++) {
        if (!corpus_read(o->corpus, choose_window(o, number * o->batch + i), l->window))
            return false;
        memcpy(b->input + i * seq, l->window, seq);
        memcpy(b->target + i * seq, l->window + 1, seq);
    }
    pk_region_add(&read_region, o->batch * (seq + 1), 0);
    return true;
}

static uint64_t slowness(const loader *l)
{
    uint64_t wanted = l->options.slow_ms;
    return wanted == LOADER_TOO_SLOW ? 3 * queue_kept(l->queue) : wanted * 1000000;
}

/* Nothing is ahead any more, and then it takes as long as STALL_STEPS steps. A median is at most
 * twice the mean, so this is four times the median at least, on whatever machine. */
static bool stall(loader *l)
{
    enum { STALL_STEPS = 8, LEAST_MS = 50 };
    bool open = false;
    {
        PK_REGION_SCOPE(stalled_region);
        uint64_t wait = STALL_STEPS * queue_kept_mean(l->queue);
        open = queue_drain(l->queue) &&
               queue_sleep(l->queue, wait > LEAST_MS * 1000000u ? wait : LEAST_MS * 1000000u);
    }
    return open;
}

static bool load(loader *l, uint64_t number)
{
    batch *b = NULL;
    bool good = true;
    {
        PK_REGION_SCOPE(full_region);
        b = queue_claim(l->queue);
    }
    if (b && l->options.slow_ms) {
        PK_REGION_SCOPE(slow_region);
        good = queue_sleep(l->queue, slowness(l));
    }
    if (b && good && l->options.slow_step && number == l->options.slow_step)
        good = stall(l);
    if (!b || !good)
        return false;
    {
        PK_REGION_SCOPE(read_region);
        good = fill(l, number, b);
    }
    if (good)
        queue_commit(l->queue);
    return good;
}

static void *run(void *argument)
{
    loader *l = argument;
    pk_thread_set_name("loader");
    uint64_t number = l->options.first;
    while (load(l, number))
        number++;
    queue_close(l->queue);
    return NULL;
}

static void destroy(loader *l)
{
    queue_destroy(l->queue);
    free(l->window);
    free(l);
}

loader *loader_start(const loader_options *o)
{
    loader *l = calloc(1, sizeof(*l));
    if (!l) {
        complain("not enough memory for the loader");
        return NULL;
    }
    l->options = *o;
    l->queue = queue_create(o->queue, o->batch * o->corpus->seq);
    l->window = malloc(o->corpus->seq + 1);
    int error = l->queue && l->window ? pthread_create(&l->thread, NULL, run, l) : ENOMEM;
    if (error) {
        complain("cannot start the loader: %s", strerror(error));
        destroy(l);
        return NULL;
    }
    return l;
}

const batch *loader_next(loader *l)
{
    return queue_take(l->queue);
}

void loader_release(loader *l)
{
    queue_release(l->queue);
}

void loader_stop(loader *l)
{
    if (!l)
        return;
    queue_close(l->queue);
    pthread_join(l->thread, NULL);
    destroy(l);
}
