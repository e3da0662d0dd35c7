/* causes NAME MS --capture-folder DIR [perf|proc|cgroups] - steps of some 20 ms, one of which takes
 * MS longer for the reason NAME; `causes list` says which there are. The last word: of that the
 * worker's kernel tells nothing.
 *
 * DIR gets what perfkit captures (NAME-FIRST.json). One line of JSON says what is true: how many
 * ms, by clocks of the program's own and beside the three steps before, and what a report on the
 * capture should say. Exit 77, with the reason: this machine cannot make it. */
#include "causes.h"

#include <pk/pk.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STEPS = 48, SLOW = 40, BESIDE = 3, SAMPLES = 4 };

cause_shared *cause_both;
double cause_ms;
const char *cause_folder;
double cause_decodes, cause_fetches, cause_in_normalise;
unsigned cause_more_samples;
bool cause_other_kind;

static const cause *made;
static const char *without = "";

/* ---- time ---- */

double cause_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

double cause_cpu(void)
{
    return cause_clock(CLOCK_THREAD_CPUTIME_ID);
}

double cause_wall(void)
{
    return cause_clock(CLOCK_MONOTONIC);
}

void cause_sleep(double ms)
{
    struct timespec t = {(time_t)(ms / 1e3), (long)(ms * 1e6) % 1000000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR)
        ;
}

static _Thread_local int schedstat = -1; /* of this thread */

static int proc = -1; /* for us alone, where the worker sees none */

static void watch(void)
{
    schedstat = openat(proc, "thread-self/schedstat", O_RDONLY | O_CLOEXEC);
}

static double delay(void)
{
    char text[100] = "";
    unsigned long long running, ready = 0;
    if (schedstat >= 0 && pread(schedstat, text, sizeof text - 1, 0) > 0 &&
        sscanf(text, "%llu %llu", &running, &ready) != 2)
        ready = 0;
    return (double)ready * 1e-6;
}

cause_span cause_begin(void)
{
    return (cause_span){cause_wall(), cause_cpu(), delay()};
}

cause_span cause_since(cause_span s)
{
    return (cause_span){cause_wall() - s.wall, cause_cpu() - s.cpu, delay() - s.delay};
}

double cause_waited(cause_span s)
{
    return s.wall - s.cpu - s.delay;
}

/* ---- what each step took ---- */

typedef struct took {
    cause_span step, act, loaded; /* loaded: it took a batch from the loader */
} took;

static took steps[STEPS], *now = steps;
static double figure(const took *t, cause_truth which)
{
    switch (which) {
    case TRUTH_WAITED:
        return cause_waited(t->act);
    case TRUTH_COMPUTED:
        return t->act.cpu;
    case TRUTH_TOOK:
        return t->act.wall - t->act.delay;
    case TRUTH_OFF:
        return t->step.wall - t->step.cpu - cause_waited(t->loaded);
    case TRUTH_LOADED:
        return cause_waited(t->loaded);
    case TRUTH_STEP:
        return t->step.cpu;
    default:
        return 0;
    }
}

static double took_of(const took *t)
{
    return t->step.wall;
}

static double delay_of(const took *t)
{
    return t->step.delay;
}

static double middle(double a, double b, double c)
{
    double least = a < b ? a : b, most = a < b ? b : a;
    return c < least ? least : c > most ? most : c;
}

/* Beside the steps that are in the capture as well. */
static double more(cause_truth which)
{
    const took *t = steps + SLOW - BESIDE;
    return figure(steps + SLOW, which) -
           middle(figure(t, which), figure(t + 1, which), figure(t + 2, which));
}

static double usually(double (*of)(const took *t))
{
    const took *t = steps + SLOW - BESIDE;
    return middle(of(t), of(t + 1), of(t + 2));
}

/* ---- the loader, a batch or two ahead ---- */

static pk_region load = PK_REGION_OF(PK_DATA, "load"), decode = PK_REGION_OF(PK_DATA, "decode"),
                 fetch = PK_REGION_OF(PK_DATA, "fetch"), full = PK_REGION_OF(PK_WAIT, "full");

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int made, taken;
    bool over;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static double loader_delay[STEPS + 2]; /* of each batch, ms */

static bool wait_for_room(void)
{
    PK_REGION_SCOPE(full);
    pthread_mutex_lock(&queue.lock);
    while (!queue.over && queue.made - queue.taken >= 1)
        pthread_cond_wait(&queue.changed, &queue.lock);
    bool open = !queue.over;
    pthread_mutex_unlock(&queue.lock);
    return open;
}

static void *run_loader(void *nothing)
{
    pk_thread_set_name("loader");
    prctl(PR_SET_NAME, "loader");
    watch();
    for (int batch = 0; wait_for_room(); batch++) {
        cause_span begun = cause_begin();
        pk_region_begin(&fetch);
        if (batch == SLOW && cause_fetches > 0)
            cause_fetch();
        pk_region_next(&fetch, &decode);
        cause_compute(2 + (batch == SLOW ? cause_decodes : 0));
        pk_region_end(&decode);
        loader_delay[batch] = cause_since(begun).delay;
        pthread_mutex_lock(&queue.lock);
        queue.made++;
        pthread_cond_broadcast(&queue.changed);
        pthread_mutex_unlock(&queue.lock);
    }
    return nothing;
}

static void take_batch(void)
{
    PK_REGION_SCOPE(load);
    cause_span all = cause_begin();
    pthread_mutex_lock(&queue.lock);
    while (queue.made == queue.taken)
        pthread_cond_wait(&queue.changed, &queue.lock);
    queue.taken++;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    now->loaded = cause_since(all);
}

static void end_loader(pthread_t loader)
{
    pthread_mutex_lock(&queue.lock);
    queue.over = true;
    pthread_cond_broadcast(&queue.changed);
    pthread_mutex_unlock(&queue.lock);
    pthread_join(loader, NULL);
}

/* ---- a region of ten functions ---- */

/* Each has something of its own, or the compiler would make one function of them. */
#define FUNCTION(name)                                                                             \
    static volatile unsigned name##_calls;                                                         \
    __attribute__((noinline)) static void name(double ms)                                          \
    {                                                                                              \
        name##_calls++;                                                                            \
        cause_compute(ms);                                                                         \
    }

FUNCTION(gather)
FUNCTION(scale)
FUNCTION(rotate)
FUNCTION(project)
FUNCTION(normalise)
FUNCTION(activate)
FUNCTION(mix)
FUNCTION(scatter)
FUNCTION(reorder)
FUNCTION(store)

static void all_ten(bool slow)
{
    static void (*const ten[])(double) = {gather,   scale, rotate,  project, normalise,
                                          activate, mix,   scatter, reorder, store};
    for (size_t i = 0; i < sizeof ten / sizeof *ten; i++)
        ten[i](0.3 + (slow && ten[i] == normalise ? cause_in_normalise : 0));
}

/* ---- a step ---- */

static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward"),
                 embed = PK_REGION_OF(PK_COMPUTE, "embed"),
                 sample = PK_REGION_OF(PK_COMPUTE, "sample"),
                 attention = PK_REGION_OF(PK_COMPUTE, "attention"),
                 mlp = PK_REGION_OF(PK_COMPUTE, "mlp"),
                 backward = PK_REGION_OF(PK_COMPUTE, "backward"),
                 mlp_back = PK_REGION_OF(PK_COMPUTE, "mlp_back"),
                 attention_back = PK_REGION_OF(PK_COMPUTE, "attention_back"),
                 update = PK_REGION_OF(PK_COMPUTE, "update"),
                 reduce = PK_REGION_OF(PK_COMM, "reduce"),
                 apply = PK_REGION_OF(PK_COMPUTE, "apply"), log_lines = PK_REGION_OF(PK_IO, "log"),
                 evaluate = PK_REGION_OF(PK_COMPUTE, "evaluate"),
                 metrics = PK_REGION_OF(PK_COMPUTE, "metrics");

static const char *const where[] = {
    [PLACE_EMBED] = "forward > embed",    [PLACE_MLP] = "forward > mlp",
    [PLACE_BACK] = "backward > mlp_back", [PLACE_APPLY] = "update > apply",
    [PLACE_REDUCE] = "update > reduce",   [PLACE_LOG] = "log"};

static void act_at(cause_place place, bool slow)
{
    if (!made->act || made->place != place)
        return;
    cause_span act = cause_begin();
    made->act(slow);
    now->act = cause_since(act);
}

static void part(pk_region *region, double ms, cause_place place, bool slow)
{
    pk_region_begin(region);
    cause_compute(ms);
    act_at(place, slow);
    pk_region_end(region);
}

static unsigned embed_samples(bool slow)
{
    unsigned samples = SAMPLES + (slow ? cause_more_samples : 0);
    PK_REGION_SCOPE(embed);
    cause_span act = cause_begin();
    for (unsigned i = 0; i < samples; i++) {
        PK_REGION_SCOPE(sample);
        cause_compute(0.5);
    }
    if (made->place == PLACE_EMBED && !made->act)
        now->act = cause_since(act);
    return samples;
}

static void go_forward(bool slow, unsigned *samples)
{
    PK_REGION_SCOPE(forward);
    *samples = embed_samples(slow);
    part(&attention, 2, PLACE_NONE, slow);
    pk_region_begin(&mlp);
    cause_span act = cause_begin();
    all_ten(slow);
    if (made->place == PLACE_MLP && !made->act)
        now->act = cause_since(act);
    act_at(PLACE_MLP, slow);
    pk_region_end(&mlp);
}

static unsigned train(bool slow)
{
    unsigned samples;
    go_forward(slow, &samples);
    pk_region_begin(&backward);
    part(&mlp_back, 3, PLACE_BACK, slow);
    part(&attention_back, 3, PLACE_NONE, slow);
    pk_region_next(&backward, &update);
    part(&reduce, 0.2, PLACE_REDUCE, slow);
    part(&apply, 3, PLACE_APPLY, slow);
    pk_region_end(&update);
    return samples;
}

static void evaluate_all(void)
{
    cause_span act = cause_begin();
    pk_region_begin(&evaluate);
    cause_compute(10);
    pk_region_begin(&metrics);
    cause_compute(cause_ms + 6);
    pk_region_end(&metrics);
    pk_region_end(&evaluate);
    now->act = cause_since(act);
}

static void one_step(bool slow)
{
    cause_span step = cause_begin();
    unsigned samples = 0;
    take_batch();
    if (slow && cause_other_kind)
        evaluate_all();
    else
        samples = train(slow);
    part(&log_lines, 0.5, PLACE_LOG, slow);
    now->step = cause_since(step);
    pk_step(samples);
}

/* ---- a kernel that does not tell all of it ---- */

/* As the profiles of container runtimes do. */
static void forbid_perf(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    cause_need(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
                   prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0,
               "a filter of calls");
}

static void hide(const char *folder)
{
    cause_need(unshare(CLONE_NEWNS) == 0 &&
                   mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                   mount("none", folder, "tmpfs", 0, "size=4k") == 0,
               folder);
}

static void do_without(void)
{
    if (strcmp(without, "perf") == 0)
        forbid_perf();
    else if (strcmp(without, "proc") == 0)
        hide("/proc");
    else if (strcmp(without, "cgroups") == 0)
        hide("/sys/fs/cgroup");
}

/* ---- the worker ---- */

static void put_words(const char *key, const char *words)
{
    char all[200], *rest, *word;
    snprintf(all, sizeof all, "%s", words);
    printf("\"%s\": [", key);
    for (word = strtok_r(all, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        printf("%s\"%s\"", word == all ? "" : ", ", word);
    printf("], ");
}

static void tell(void)
{
    double truth = made->truth == TRUTH_TOLD ? cause_both->told : more(made->truth), whole = truth;
    double delayed = steps[SLOW].step.delay - usually(delay_of);
    if (made->truth == TRUTH_WAITED)
        whole = more(TRUTH_TOOK);
    if (made->truth == TRUTH_STEP)
        whole = steps[SLOW].act.cpu;
    if (made->truth == TRUTH_LOADED) {
        truth -= loader_delay[SLOW];
        delayed += loader_delay[SLOW];
    }
    const char *region = made->truth == TRUTH_LOADED ? "load"
                         : made->truth == TRUTH_STEP ? "evaluate"
                                                     : where[made->place];
    printf("{\"cause\": \"%s\", \"step\": %d, \"truth_ms\": %.3f, \"whole_ms\": %.3f, ", made->name,
           SLOW, truth, whole);
    put_words("expected", made->expected);
    printf("\"who\": \"%s\", \"region\": \"%s\", \"outside\": %s, ", made->who ? made->who : "",
           region, made->outside ? "true" : "false");
    printf("\"delay_ms\": %.3f, \"took_ms\": %.3f, \"usual_ms\": %.3f}\n", delayed,
           steps[SLOW].step.wall, usually(took_of));
}

static int work(void)
{
    char wish[64], path[512];
    pthread_t loader;
    if (made->join)
        made->join();
    do_without();
    snprintf(wish, sizeof wish, "slow=1.5,floor:%.0f", cause_ms * 1e3 / 4);
    snprintf(path, sizeof path, "%s/%s-%%s.json", cause_folder, made->name);
    int size = made->place == PLACE_REDUCE ? 2 : 1;
    if (pk_start(pk_options(.capture = wish, .capture_path = path, .world_size = size)) != PK_OK) {
        fprintf(stderr, "causes: %s\n", pk_error_message());
        return 1;
    }
    if (pthread_create(&loader, NULL, run_loader, NULL) != 0)
        return 1;
    if (made->begin)
        made->begin();
    watch();
    for (int i = 0; i < STEPS; i++) {
        now = steps + i;
        one_step(i == SLOW);
    }
    end_loader(loader);
    if (pk_stop() != PK_OK)
        fprintf(stderr, "causes: %s\n", pk_error_message());
    tell();
    return 0;
}

/* ---- the helper ---- */

static int bell[2];

void cause_ring(void)
{
    cause_both->done = cause_both->heard = 0;
    if (write(bell[1], "", 1) != 1)
        abort();
}

void cause_ring_until(const _Atomic int *set)
{
    cause_ring();
    while (!*set)
        ;
}

static volatile sig_atomic_t ended;

static void end(int signal)
{
    ended = signal;
}

/* Until the worker has gone, which closes the bell. */
static int help(pid_t worker)
{
    int status = 0;
    char byte;
    close(bell[1]);
    cause_both->worker = worker;
    if (made->help)
        while (!ended && read(bell[0], &byte, 1) == 1)
            made->help();
    if (ended)
        kill(worker, SIGKILL);
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR)
        if (ended)
            kill(worker, SIGKILL);
    if (made->finish)
        made->finish();
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

void cause_skip(const char *why, ...)
{
    va_list list;
    va_start(list, why);
    vprintf(why, list);
    va_end(list);
    putchar('\n');
    fflush(stdout);
    _exit(77);
}

void cause_need(bool good, const char *what)
{
    if (!good)
        cause_skip("%s: %s", what, strerror(errno));
}

static const cause *find(const char *name)
{
    const cause *const lists[] = {causes_outside, causes_inside};
    for (int i = 0; i < 2; i++)
        for (const cause *c = lists[i]; c->name; c++)
            if (!name)
                puts(c->name);
            else if (strcmp(c->name, name) == 0)
                return c;
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "list") == 0) {
        find(NULL);
        return 0;
    }
    made =
        argc >= 5 && argc <= 6 && strcmp(argv[3], "--capture-folder") == 0 ? find(argv[1]) : NULL;
    cause_ms = made ? strtod(argv[2], NULL) : 0;
    if (!made || !(cause_ms >= 1 && cause_ms <= 10000)) {
        fprintf(stderr,
                "causes NAME MS --capture-folder DIR [perf|proc|cgroups], or causes list\n");
        return 2;
    }
    cause_folder = argv[4];
    without = argc == 6 ? argv[5] : "";
    proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cause_both =
        mmap(NULL, sizeof *cause_both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (cause_both == MAP_FAILED || pipe(bell) != 0)
        return 1;
    if (made->prepare)
        made->prepare();
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    pid_t worker = fork();
    if (worker == 0) {
        signal(SIGTERM, SIG_DFL);
        signal(SIGINT, SIG_DFL);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(bell[0]);
        exit(work());
    }
    return worker < 0 ? 1 : help(worker);
}
