/* tools/bench/ab/one_process.c - each process run a process that loads both builds: see ab.h. The
 * side of it that starts process runs and listens to them. */
#include "bench/ab/ab.h"
#include "memory.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what can be loaded ---- */

/* A shared object has no interpreter; a program (position independent or not) has one, and the
 * loader refuses it. */
static bool check_headers(int fd, complaint *why)
{
    Elf64_Ehdr head;
    if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
        memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64)
        return complaint_set(why, "is no shared object");
    if (head.e_type != ET_DYN)
        return complaint_set(why, "is a program, not a shared object");
    for (int i = 0; i < head.e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(head.e_phoff + (uint64_t)i * head.e_phentsize);
        if (pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part)
            return complaint_set(why, "is cut off");
        if (part.p_type == PT_INTERP)
            return complaint_set(why, "is a program, not a shared object");
    }
    return true;
}

bool ab_is_loadable(const char *path, complaint *why)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return complaint_set(why, "%s", strerror(errno));
    bool loadable = check_headers(fd, why);
    close(fd);
    return loadable;
}

/* ---- listening ---- */

typedef struct listener {
    ab_session *s;
    ab_child child;
    double until;
    char **names; /* by number */
    uint32_t count;
    bool done;
    complaint *why;
} listener;

/* All of it, or false: the end, or why. */
static bool receive(listener *l, void *to, size_t size)
{
    char *at = to;
    while (size) {
        long got = ab_child_read(&l->child, at, size, l->until, l->why);
        if (got <= 0)
            return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

static void add_name(listener *l, const char *text)
{
    l->names = memory_resized(l->names, (l->count + 1) * sizeof *l->names);
    l->names[l->count++] = memory_copy(text);
}

static void add_sample(listener *l, const ab_record *r)
{
    char id[40];
    snprintf(id, sizeof id, "%032zx", l->s->runs + 1);
    bench_series *series = bench_file_series(&l->s->builds[r->side], l->names[r->number]);
    bench_run *run = bench_series_run(series, id);
    bench_run_add(run, r->sample, r->cpu_sample);
    run->pair = l->s->runs + 1;
}

static bool add_skip(listener *l, const ab_record *r, const char *text)
{
    if (r->number == AB_NO_NUMBER)
        return complaint_set(l->why, "%s", text);
    bench_series *series = bench_file_series(&l->s->builds[r->side], l->names[r->number]);
    bench_text_set(&series->error, text);
    series->skipped = true;
    return true;
}

static bool add_record(listener *l, const ab_record *r, const char *text)
{
    bool numbered = r->kind == AB_SAMPLE || (r->kind == AB_SKIP && r->number != AB_NO_NUMBER);
    if (r->side > 1 || (numbered && r->number >= l->count))
        return complaint_set(l->why, "said what cannot be");
    switch (r->kind) {
    case AB_NAME:
        add_name(l, text);
        return true;
    case AB_SAMPLE:
        add_sample(l, r);
        return true;
    case AB_SKIP:
        return add_skip(l, r, text);
    case AB_ALONE:
        bench_file_series(&l->s->builds[r->side], text);
        return true;
    default:
        l->done = true;
        return true;
    }
}

static bool listen_to(listener *l)
{
    ab_record r;
    char text[AB_TEXT_MOST + 1];
    while (!l->done) {
        if (!receive(l, &r, sizeof r) || r.length > AB_TEXT_MOST || !receive(l, text, r.length))
            return false;
        text[r.length] = '\0';
        if (!add_record(l, &r, text))
            return false;
    }
    return true;
}

/* ---- launching ---- */

static bool launch(ab_session *s, complaint *why)
{
    char seconds[32], log[100];
    complaint wrong = {""}, end = {""};
    const ab_wish *w = s->wish;
    char *arguments[] = {(char *)(uintptr_t) "/proc/self/exe",
                         (char *)(uintptr_t) "bench-ab",
                         (char *)(uintptr_t)AB_BOTH,
                         s->files[0],
                         s->files[1],
                         (char *)(uintptr_t)(ab_new_first(s->runs) ? "1" : "0"),
                         seconds,
                         (char *)(uintptr_t)w->filter,
                         NULL};
    snprintf(seconds, sizeof seconds, "%.6f", w->time / (double)s->wanted);
    snprintf(log, sizeof log, "%s/launch.log", s->folder);
    listener l = {.s = s, .until = ab_now() + w->timeout, .why = &wrong};
    if (!ab_child_start(&l.child, arguments, log, why))
        return false;
    bool heard = listen_to(&l);
    bool ended = ab_child_finish(&l.child, !heard && wrong.text[0], log, &end);
    for (uint32_t i = 0; i < l.count; i++)
        free(l.names[i]);
    free(l.names);
    if (heard && ended)
        return true;
    return complaint_set(why, "a process run of both builds %s",
                         wrong.text[0] ? wrong.text
                         : end.text[0] ? end.text
                                       : "ended early");
}

bool ab_run_in_one_process(ab_session *s, complaint *why)
{
    for (; s->runs < s->wanted && !ab_is_over(s); s->runs++) {
        ab_show_progress(s);
        if (!launch(s, why))
            return false;
    }
    return true;
}
