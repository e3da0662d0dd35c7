/* lib/attach/itt.c - what programs tell through ITT, Intel's Instrumentation and Tracing Technology
 *
 * The interface is that of ittnotify.h (github.com/intel/ittapi, "ITT API"), whose part in the
 * program opens the library that INTEL_LIBITTNOTIFY64 names at its first call. One that has
 * __itt_api_version is asked for each function by its name; what it has not keeps doing what it
 * does without a listener, so domains and strings are made by the program's part, and lie in
 * structures that the header lays out.
 *
 * Tasks and frames are regions of their thread; regions of ITT's, which may end on another thread,
 * are left out. A frame is named by its domain.
 */
#include "attach/attach.h"

#include <pk/region.h>
#include <pk/session.h>

#include <stdint.h>
#include <stdio.h>

typedef struct itt_domain {
    volatile int enabled;
    const char *name;
    void *wide_name;
    int extra;
    void *ours; /* for whoever listens: the region of its frames */
    struct itt_domain *next;
} itt_domain;

typedef struct itt_string {
    const char *text;
    void *wide_text;
    int extra;
    void *ours; /* the region */
    struct itt_string *next;
} itt_string;

typedef struct itt_id {
    unsigned long long words[3];
} itt_id;

static pk_region *region_of(itt_string *name)
{
    pk_region *region = name ? __atomic_load_n((pk_region **)&name->ours, __ATOMIC_ACQUIRE) : NULL;
    if (region)
        return region;
    region = pk_region_named(name ? name->text : NULL);
    if (name) /* pairs with the acquire above; whoever else comes stores the same */
        __atomic_store_n((pk_region **)&name->ours, region, __ATOMIC_RELEASE);
    return region;
}

static pk_region *frame_of(itt_domain *domain)
{
    char name[160];
    pk_region *region = __atomic_load_n((pk_region **)&domain->ours, __ATOMIC_ACQUIRE);
    if (region)
        return region;
    snprintf(name, sizeof name, "frame of %.140s", domain->name ? domain->name : "ITT");
    region = pk_region_named(name);
    __atomic_store_n((pk_region **)&domain->ours, region, __ATOMIC_RELEASE); /* as above */
    return region;
}

/* ---- what is open on each thread: an end does not say of what ---- */

#define DEEPEST 64

static _Thread_local pk_region *open[DEEPEST];
static _Thread_local unsigned depth;

static void begin(pk_region *region)
{
    if (depth < DEEPEST) {
        open[depth] = region;
        pki_attach_begin(region, NULL);
    }
    depth++;
}

static void end(void)
{
    if (depth > 0 && --depth < DEEPEST)
        pk_region_end(open[depth]);
}

/* ---- the functions ---- */

PK_API const char *__itt_api_version(void);
PK_API void __itt_task_begin(itt_domain *domain, itt_id task, itt_id parent, itt_string *name);
PK_API void __itt_task_begin_fn(itt_domain *domain, itt_id task, itt_id parent, void *function);
PK_API void __itt_task_end(itt_domain *domain);
PK_API void __itt_frame_begin_v3(itt_domain *domain, itt_id *id);
PK_API void __itt_frame_end_v3(itt_domain *domain, itt_id *id);
PK_API void __itt_marker(itt_domain *domain, itt_id id, itt_string *name, int scope);
PK_API int __itt_event_create(const char *name, int bytes);
PK_API int __itt_event_start(int event);
PK_API int __itt_event_end(int event);
PK_API void __itt_thread_set_name(const char *name);

const char *__itt_api_version(void)
{
    return "3.0";
}

void __itt_task_begin(itt_domain *domain, itt_id task, itt_id parent, itt_string *name)
{
    (void)domain, (void)task, (void)parent;
    begin(region_of(name));
}

void __itt_task_begin_fn(itt_domain *domain, itt_id task, itt_id parent, void *function)
{
    char name[160];
    (void)domain, (void)task, (void)parent;
    begin(pk_region_named(pki_attach_place(function, name, sizeof name)));
}

void __itt_task_end(itt_domain *domain)
{
    (void)domain;
    end();
}

void __itt_frame_begin_v3(itt_domain *domain, itt_id *id)
{
    (void)id;
    begin(frame_of(domain));
}

void __itt_frame_end_v3(itt_domain *domain, itt_id *id)
{
    (void)domain, (void)id;
    end();
}

void __itt_marker(itt_domain *domain, itt_id id, itt_string *name, int scope)
{
    (void)domain, (void)id, (void)scope;
    pk_region_mark(region_of(name));
}

/* ---- events: numbers that stand for names ---- */

#define EVENTS 1024

static pk_region *events[EVENTS];
static int event_count;

int __itt_event_create(const char *name, int bytes)
{
    char text[160];
    int number = __atomic_fetch_add(&event_count, 1, __ATOMIC_RELAXED);
    if (number >= EVENTS)
        return -1;
    snprintf(text, sizeof text, "%.*s", bytes, name);
    __atomic_store_n(&events[number], pk_region_named(text), __ATOMIC_RELEASE);
    return number + 1;
}

/* Pairs with the release above. */
static pk_region *event_of(int event)
{
    return event < 1 || event > EVENTS ? NULL
                                       : __atomic_load_n(&events[event - 1], __ATOMIC_ACQUIRE);
}

int __itt_event_start(int event)
{
    pk_region *region = event_of(event);
    if (region)
        pki_attach_begin(region, NULL);
    return 0;
}

int __itt_event_end(int event)
{
    pk_region *region = event_of(event);
    if (region)
        pk_region_end(region);
    return 0;
}

void __itt_thread_set_name(const char *name)
{
    pk_thread_set_name(name);
}
