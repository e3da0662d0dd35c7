/* lib/attach/ompt.c - what OpenMP's runtime tells: parallel regions, barriers, how even threads are
 *
 * The interface is OMPT of the OpenMP specification (5.0 and later, chapter "OMPT Interface"): a
 * runtime looks for ompt_start_tool among the process's symbols as it starts. LLVM's and Intel's
 * runtimes have it. GCC's has none, but its ABI is published ("The libgomp ABI", in its manual):
 * we stand in front of the functions that its compiler calls, and call on.
 *
 * A parallel region is a region on the thread that meets it, and another one on each of the team's
 * other threads, by the place in the program. What threads do at its end differs: the first one
 * waits there for the others; the others' wait is over when the next parallel region begins, which
 * says nothing, so their region ends as they arrive. How uneven the arrivals are is a counter.
 */
#include "attach/attach.h"

#include <pk/counter.h>
#include <pk/region.h>

#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the interface, as far as it is used ---- */

typedef union data {
    uint64_t value;
    void *pointer;
} data;

typedef void (*function)(void);
typedef function (*look_up)(const char *name);

typedef struct start_result {
    int (*begin)(look_up find, int device, data *ours);
    void (*end)(data *ours);
    data ours;
} start_result;

enum { PARALLEL_BEGIN = 3, PARALLEL_END = 4, IMPLICIT_TASK = 7, SYNC_REGION_WAIT = 16 };
enum { BEGINS = 1, ENDS = 2 };
/* Kinds of what is waited for; the first two are older runtimes' word for several. */
enum {
    BARRIER = 1,
    BARRIER_IMPLICIT,
    BARRIER_EXPLICIT,
    BARRIER_IMPLEMENTATION,
    TASKWAIT,
    TASKGROUP,
    REDUCTION,
    BARRIER_WORKSHARE,
    BARRIER_PARALLEL
};
enum { INITIAL_TASK = 1 };

/* ---- places of parallel regions ---- */

/* Functions of GCC's runtime: the one that makes the team, and those in which its threads wait. */
enum { GOMP_MEETS, GOMP_BARRIER, GOMP_LOOP_END, GOMP_SECTIONS_END, GCC_FUNCTIONS };

#define PLACES 1024 /* a power of two */

typedef struct place {
    const void *code; /* where the parallel region is; NULL: free */
    pk_region *first, *others;
    pk_counter *uneven;
    function gcc[GCC_FUNCTIONS]; /* what the code there calls; [GOMP_MEETS]: for the team itself */
    int ready;
} place;

static place places[PLACES], waits[PLACES]; /* waits: outside of teams, without names */

/* Whom the code would call if it were not us: its libraries may have a runtime of their own, which
 * nobody else sees. A thread of the team must not look for it: the one that met it may be in a
 * library's constructor, and hold the loader's lock. NULL: nobody. */
static void find_gcc(const char *meets, const void *code, function found[GCC_FUNCTIONS])
{
    const char *const names[] = {meets, "GOMP_barrier", "GOMP_loop_end", "GOMP_sections_end"};
    Dl_info info;
    int before = errno;
    bool known = dladdr(code, &info) && info.dli_fname;
    void *file = known ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    for (int i = 0; i < GCC_FUNCTIONS; i++) {
        void *symbol = file ? dlsym(file, names[i]) : NULL;
        if (!symbol)
            symbol = dlsym(RTLD_NEXT, names[i]);
        memcpy(&found[i], &symbol, sizeof symbol);
    }
    if (file)
        dlclose(file);
    errno = before;
}

static void name_team(place *p)
{
    char where[160], name[224];
    pki_attach_place(p->code, where, sizeof where);
    snprintf(name, sizeof name, "omp parallel %.140s", where);
    p->first = pk_region_named_of(PK_COMPUTE, name);
    snprintf(name, sizeof name, "omp parallel %.140s, other threads", where);
    p->others = pk_region_named_of(PK_COMPUTE, name);
    snprintf(name, sizeof name, "omp uneven %.140s", where);
    p->uneven = pk_counter_named(name, "%");
}

/* meets: the function of GCC's that is called there, or NULL. NULL: the table is full. */
static place *place_of(place table[PLACES], const void *code, const char *meets)
{
    uintptr_t hash = (uintptr_t)code * (uintptr_t)0x9E3779B97F4A7C15u >> 20;
    for (size_t i = 0; i < PLACES; i++) {
        place *p = &table[(hash + i) % PLACES];
        const void *none = NULL;
        if (__atomic_load_n(&p->code, __ATOMIC_RELAXED) != code &&
            !__atomic_compare_exchange_n(&p->code, &none, code, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED) &&
            none != code)
            continue;
        if (!none && !__atomic_load_n(&p->ready, __ATOMIC_ACQUIRE)) {
            if (meets)
                find_gcc(meets, code, p->gcc);
            if (table == places)
                name_team(p);
            __atomic_store_n(&p->ready, 1, __ATOMIC_RELEASE); /* pairs with the acquire below */
        }
        while (!__atomic_load_n(&p->ready, __ATOMIC_ACQUIRE))
            ; /* another thread is at it */
        return p;
    }
    return NULL;
}

/* ---- a parallel region that runs ---- */

/* On the stack of teams of the thread that met it, whose next one at that depth comes when all of
 * this one's threads have arrived. */
typedef struct team {
    place *at;
    uint64_t begun, sum, latest; /* ns of arrivals, since begun */
    unsigned arrived;
} team;

#define DEEPEST 8

static _Thread_local team teams[DEEPEST];
static _Thread_local unsigned depth;
static _Thread_local team *work;   /* of which this thread is another one */
static _Thread_local bool waiting; /* in a region of kind PK_WAIT that is ours */
static pk_region barrier = PK_REGION_OF(PK_WAIT, "omp barrier");
static pk_region tasks = PK_REGION_OF(PK_WAIT, "omp taskwait");

static uint64_t now_ns(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* NULL: nothing is told of it. */
static team *team_begins(place *at, const void *code)
{
    team *t = depth < DEEPEST ? &teams[depth] : NULL;
    depth++;
    if (t)
        t->at = at;
    if (!t || !at)
        return NULL;
    *t = (team){.at = at, .begun = now_ns()};
    pki_attach_begin(at->first, code);
    return t;
}

static void team_ends(void)
{
    if (depth == 0 || --depth >= DEEPEST || !teams[depth].at)
        return;
    team *t = &teams[depth];
    unsigned arrived = __atomic_load_n(&t->arrived, __ATOMIC_ACQUIRE);
    uint64_t latest = __atomic_load_n(&t->latest, __ATOMIC_RELAXED);
    if (arrived > 1 && latest > 0) {
        double mean = (double)__atomic_load_n(&t->sum, __ATOMIC_RELAXED) / arrived;
        pk_counter_set(t->at->uneven, 100 * (1 - mean / (double)latest));
    }
    pk_region_end(t->at->first);
}

static void parallel_begin(data *task, const void *frame, data *parallel, unsigned threads,
                           int flags, const void *code)
{
    (void)task, (void)frame, (void)threads, (void)flags;
    parallel->pointer = team_begins(code ? place_of(places, code, NULL) : NULL, code);
}

static void parallel_end(data *parallel, data *task, int flags, const void *code)
{
    (void)parallel, (void)task, (void)flags, (void)code;
    team_ends();
}

/* At the barrier behind which the team is no more. */
static void arrive(team *t)
{
    uint64_t took = now_ns() - t->begun, latest = __atomic_load_n(&t->latest, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->sum, took, __ATOMIC_RELAXED);
    while (took > latest && !__atomic_compare_exchange_n(&t->latest, &latest, took, true,
                                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    __atomic_fetch_add(&t->arrived, 1, __ATOMIC_RELEASE); /* pairs with the acquire above */
}

/* ---- its other threads ---- */

static void implicit_task(int what, data *parallel, data *task, unsigned threads, unsigned number,
                          int flags)
{
    (void)task, (void)threads;
    if ((flags & INITIAL_TASK) || number == 0)
        return;
    if (what == BEGINS && parallel && parallel->pointer) {
        work = parallel->pointer;
        pk_region_begin(work->at->others);
    } else if (what == ENDS && work) { /* it has not passed the barrier of the team's end */
        pk_region_end(work->at->others);
        work = NULL;
    }
}

/* ---- waiting ---- */

static team *own_team(void)
{
    return depth > 0 && depth <= DEEPEST && teams[depth - 1].at ? &teams[depth - 1] : NULL;
}

/* Is it the barrier of the team's end? Runtimes before 5.1 have one word for all that the program
 * does not write itself: then the first thread is told the place of the parallel region, the others
 * none. */
static bool is_last(int kind, const void *code)
{
    const team *t = own_team();
    if (kind != BARRIER && kind != BARRIER_IMPLICIT)
        return kind == BARRIER_PARALLEL;
    return work ? !code : t && code == t->at->code;
}

static void wait_begin(int kind, const void *code)
{
    bool last = is_last(kind, code);
    if (last && work) {
        team *t = work;
        work = NULL;
        pk_region_end(t->at->others);
        arrive(t);
        return;
    }
    if (last && own_team())
        arrive(own_team());
    pk_region_begin(kind == TASKWAIT || kind == TASKGROUP ? &tasks : &barrier);
    waiting = true;
}

static void sync_wait(int kind, int what, data *parallel, data *task, const void *code)
{
    (void)parallel, (void)task;
    if (kind == REDUCTION || kind == BARRIER_IMPLEMENTATION)
        return;
    if (what == BEGINS && !waiting)
        wait_begin(kind, code);
    else if (what == ENDS && waiting) {
        pk_region_end(kind == TASKWAIT || kind == TASKGROUP ? &tasks : &barrier);
        waiting = false;
    }
}

/* ---- GCC's runtime ---- */

/* What a team's threads are to do, as the compiler has it. */
typedef void (*body_of_team)(void *given);
typedef struct parallel {
    team *of; /* NULL: nothing is told of it */
    body_of_team body;
    void *given;
    const function *gcc;
} parallel;

static _Thread_local const parallel *within;
static bool ompt_tells; /* a runtime that has both; any thread reads it */

static void member(void *given)
{
    const parallel *p = given, *before = within;
    bool first = p->of && own_team() == p->of, other = p->of && !first;
    within = p;
    if (other)
        pk_region_begin(p->of->at->others);
    p->body(p->given);
    if (other)
        pk_region_end(p->of->at->others);
    if (p->of)
        arrive(p->of);
    if (first)
        pk_region_begin(&barrier);
    within = before;
}

static bool tells_gcc(void)
{
    static int listens = -1; /* each finds the same */
    int known = __atomic_load_n(&listens, __ATOMIC_RELAXED);
    if (known < 0) {
        known = pki_attach_listens("ompt");
        __atomic_store_n(&listens, known, __ATOMIC_RELAXED);
    }
    return known && !__atomic_load_n(&ompt_tells, __ATOMIC_RELAXED);
}

/* The functions' parameters are numbers and addresses: words, which pass as they came. */
typedef uintptr_t word;
typedef word (*meeting)(body_of_team body, void *given, word c, word d, word e, word f, word g,
                        word h);

static word meet(const char *name, const void *code, parallel p, const word *w)
{
    function found[GCC_FUNCTIONS];
    meeting real;
    place *at = place_of(places, code, name);
    if (!at)
        find_gcc(name, code, found);
    p.gcc = at ? at->gcc : found;
    memcpy(&real, &p.gcc[GOMP_MEETS], sizeof real);
    if (!real)
        return p.body(p.given), 0;
    bool told = tells_gcc();
    p.of = told ? team_begins(at, code) : NULL;
    word result = real(member, &p, w[0], w[1], w[2], w[3], w[4], w[5]);
    if (p.of)
        pk_region_end(&barrier);
    if (told)
        team_ends();
    return result;
}

#define MEETS(NAME)                                                                                \
    PK_API word NAME(body_of_team body, void *given, word c, word d, word e, word f, word g,       \
                     word h);                                                                      \
    word NAME(body_of_team body, void *given, word c, word d, word e, word f, word g, word h)      \
    {                                                                                              \
        const word more[] = {c, d, e, f, g, h};                                                    \
        parallel p = {NULL, body, given, NULL};                                                    \
        return meet(#NAME, __builtin_return_address(0), p, more);                                  \
    }

MEETS(GOMP_parallel)
MEETS(GOMP_parallel_reductions)
MEETS(GOMP_parallel_sections)
MEETS(GOMP_parallel_loop_static)
MEETS(GOMP_parallel_loop_dynamic)
MEETS(GOMP_parallel_loop_guided)
MEETS(GOMP_parallel_loop_runtime)
MEETS(GOMP_parallel_loop_nonmonotonic_dynamic)
MEETS(GOMP_parallel_loop_nonmonotonic_guided)
MEETS(GOMP_parallel_loop_nonmonotonic_runtime)
MEETS(GOMP_parallel_loop_maybe_nonmonotonic_runtime)

/* In no team that we know of nobody else is waited for. */
static void wait_in(int which, const void *code)
{
    const parallel *p = within;
    const place *at = p ? NULL : place_of(waits, code, "GOMP_parallel");
    function found[GCC_FUNCTIONS];
    const function *gcc = p ? p->gcc : at ? at->gcc : found;
    if (gcc == found)
        find_gcc("GOMP_parallel", code, found);
    function real = gcc[which];
    if (p && p->of)
        pk_region_begin(&barrier);
    if (real)
        real();
    if (p && p->of)
        pk_region_end(&barrier);
}

#define WAITS(NAME, WHICH)                                                                         \
    PK_API void NAME(void);                                                                        \
    void NAME(void)                                                                                \
    {                                                                                              \
        wait_in(WHICH, __builtin_return_address(0));                                               \
    }

WAITS(GOMP_barrier, GOMP_BARRIER)
WAITS(GOMP_loop_end, GOMP_LOOP_END)
WAITS(GOMP_sections_end, GOMP_SECTIONS_END)

/* ---- beginning ---- */

static int begin(look_up find, int device, data *ours)
{
    (void)device, (void)ours;
    int (*set)(int what, function call);
    function found = find("ompt_set_callback");
    if (!found)
        return 0;
    memcpy(&set, &found, sizeof set);
    __atomic_store_n(&ompt_tells, true, __ATOMIC_RELAXED);
    set(PARALLEL_BEGIN, (function)parallel_begin);
    set(PARALLEL_END, (function)parallel_end);
    set(IMPLICIT_TASK, (function)implicit_task);
    set(SYNC_REGION_WAIT, (function)sync_wait);
    return 1;
}

static void end(data *ours)
{
    (void)ours;
}

PK_API start_result *ompt_start_tool(unsigned version, const char *runtime);

/* A tool that the user names is the user's wish. */
start_result *ompt_start_tool(unsigned version, const char *runtime)
{
    static start_result result = {begin, end, {0}};
    (void)version, (void)runtime;
    return pki_attach_listens("ompt") && !getenv("OMP_TOOL_LIBRARIES") ? &result : NULL;
}
