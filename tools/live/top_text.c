/* tools/live/top_text.c - a page of pk top: lines that are cut to the terminal, never to half a
 * character. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "live/top.h"
#include "measure/figure.h"
#include "out/columns.h"

/* A page under way: lines are numbered, those below the end are left out. */
typedef struct lines {
    const top_page *page;
    size_t used;
} lines;

static void put_line(lines *l, const char *style, const char *format, ...) PKI_PRINTF(3, 4);

static void put_line(lines *l, const char *style, const char *format, ...)
{
    char text[2000];
    const top_page *p = l->page;
    va_list args;
    if (p->height && l->used >= p->height)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t width = pki_width(text);
    if (p->styled && style[0])
        fprintf(p->to, "\033[%sm", style);
    if (width > p->width && p->width < 4) /* no room for the mark that it is cut */
        pki_put_times(p->to, '.', p->width);
    else
        pki_put_left(p->to, text, PKI_MIN(width, p->width));
    fputs(!p->styled ? "\n" : style[0] ? "\033[0m\033[K\n" : "\033[K\n", p->to);
    l->used++;
}

/* A text of exactly so many columns. */
static const char *cell(char out[400], const char *text, size_t width)
{
    FILE *to = fmemopen(out, 400, "w");
    if (!to)
        return "";
    pki_put_left(to, text, width);
    fputc(0, to);
    fclose(to);
    return out;
}

static size_t room_left(const lines *l)
{
    return l->page->height ? l->page->height - PKI_MIN(l->used, l->page->height) : SIZE_MAX;
}

/* ---- the parts ---- */

static void put_head(lines *l, const top *t)
{
    char now[32];
    time_t seconds = time(NULL);
    struct tm local;
    size_t states[4] = {0};
    for (size_t i = 0; i < t->count; i++)
        states[t->all[i].state]++;
    strftime(now, sizeof now, "%H:%M:%S", localtime_r(&seconds, &local));
    put_line(l, "1", "pk top %s  %zu process%s: %zu running, %zu stopped, %zu gone, %zu ended%s",
             now, t->count, t->count == 1 ? "" : "es", states[TARGET_RUNNING],
             states[TARGET_STOPPED], states[TARGET_GONE], states[TARGET_ENDED],
             l->page->paused ? "  (paused)" : "");
}

/* All ranks of a job say the same: the first that knows speaks for them. */
static void put_stragglers(lines *l, const top *t)
{
    for (size_t i = 0; i < t->count; i++) {
        const pki_stragglers *late = &t->all[i].view.t->header->stragglers;
        for (const char *line = late->words; late->count && *line;) {
            int n = (int)strcspn(line, "\n");
            put_line(l, "1;33", "%.*s", n, line);
            line += n + (line[n] != 0);
        }
        if (late->count)
            return;
    }
}

static void put_changes(lines *l, const top *t)
{
    char name[VIEW_NAME];
    for (size_t i = 0; i < t->count; i++) {
        const top_process *p = &t->all[i];
        view_name(&p->view, name);
        if (p->changed)
            put_line(l, "1;31", "%s is now %s", name, target_state_text(p->state));
        if (p->view.t->header->hang.raised)
            put_line(l, "1;31", "%s hangs, its watchdog says (pk where has more)", name);
    }
}

static const char *change_of(const top_process *p, char text[16])
{
    double change = p->p50_before > 0 ? (p->p50 / p->p50_before - 1) * 100 : 0;
    text[0] = 0;
    if (change >= 5 || change <= -5)
        snprintf(text, 16, "%+.0f%%", PKI_MIN(change, 9999.0));
    return text;
}

static void put_process(lines *l, const top_process *p)
{
    char name[VIEW_NAME], a[400], b[400], change[16], shares[80] = "";
    const live_region *in = view_innermost(&p->view);
    view_name(&p->view, name);
    for (size_t k = 1; k <= TOP_KINDS; k++) { /* what was not said comes last */
        size_t n = strlen(shares);
        snprintf(shares + n, sizeof shares - n, " %4.0f", p->shares[k % TOP_KINDS] * 100);
    }
    put_line(
        l, p->state == TARGET_RUNNING ? "" : "31", "%s %-8s %8llu %8s %8s %8s %8s %6s%s  %s %s",
        cell(a, name, 10), target_state_text(p->state), (unsigned long long)p->steps,
        pki_figure_scaled(p->steps_per_second, "").text, pki_figure_time_tight(p->p50).text,
        pki_figure_time_tight(p->p90).text, pki_figure_time_tight(p->p99).text,
        change_of(p, change), shares,
        cell(b, in ? live_name_of(&p->view.s.names, in->id)->text : "-", 20),
        in ? pki_figure_time_tight(
                 (double)(p->view.s.now_ns > in->since_ns ? p->view.s.now_ns - in->since_ns : 0))
                 .text
           : "");
}

static void put_processes(lines *l, const top *t)
{
    size_t most = room_left(l) / 2;
    put_line(l, "7", "%-10s %-8s %8s %8s %8s %8s %8s %6s %4s %4s %4s %4s %4s %4s  %-20s since",
             "who", "state", "steps", "steps/s", "p50", "p90", "p99", "change", "comp", "data",
             "comm", "io", "wait", "else", "in");
    for (size_t i = 0; i < t->count && i < most; i++)
        put_process(l, &t->all[i]);
    if (t->count > most)
        put_line(l, "", "... and %zu more", t->count - most);
}

static double seconds_of(const top *t)
{
    double most = 0;
    for (size_t i = 0; i < t->count; i++)
        most = PKI_MAX(most, (double)t->all[i].ns / 1e9);
    return most;
}

static void put_regions(lines *l, const top *t, bool streams)
{
    static const char *const kinds[] = {"other", "compute", "data", "comm", "io", "wait"};
    size_t count;
    top_region *all = top_regions(t, streams, &count);
    double seconds = seconds_of(t), total = 0;
    for (size_t i = 0; i < count; i++)
        total += (double)(streams ? all[i].sum : all[i].self);
    if (count)
        put_line(l, "7", "%-30s %-8s %10s %8s %7s %9s",
                 streams ? "on streams of devices" : "region", "kind", "calls/s",
                 streams ? "time" : "self", "share", "mean");
    for (size_t i = 0; i < count && room_left(l) > 0; i++) {
        char name[400];
        double ns = (double)(streams ? all[i].sum : all[i].self);
        put_line(l, "", "%s %-8s %10s %8s %7s %9s", cell(name, all[i].name->text, 30),
                 all[i].name->kind < TOP_KINDS ? kinds[all[i].name->kind] : "-",
                 pki_figure_scaled(seconds > 0 ? (double)all[i].calls / seconds : 0, "").text,
                 pki_figure_time_tight(ns).text,
                 pki_figure_percent(total > 0 ? ns / total : 0).text,
                 pki_figure_time_tight(all[i].calls ? (double)all[i].sum / (double)all[i].calls : 0)
                     .text);
    }
    free(all);
}

static void put_comms(lines *l, const top *t)
{
    bool first = true;
    for (size_t i = 0; i < t->count; i++) {
        const top_process *p = &t->all[i];
        for (size_t k = 0; k < p->view.s.comm_count; k++) {
            char who[VIEW_NAME], a[400], b[400];
            const live_comm *c = &p->view.s.comms[k];
            if (first)
                put_line(l, "7", "%-10s %-24s %10s %12s %12s %9s", "who", "communicator", "ops/s",
                         "enqueued", "completed", "under way");
            first = false;
            view_name(&p->view, who);
            put_line(l, "", "%s %s %10s %12llu %12llu %9u", cell(a, who, 10),
                     cell(b, live_name_of(&p->view.s.names, c->name)->text, 24),
                     pki_figure_scaled(p->comm_rates[k], "").text, (unsigned long long)c->enqueued,
                     (unsigned long long)c->completed, c->under_way);
        }
    }
}

/* Counters of devices: what NVML reports, and what the program calls so. */
static void put_devices(lines *l, const top *t)
{
    bool first = true;
    for (size_t i = 0; i < t->count; i++) {
        const snapshot *s = &t->all[i].view.s;
        for (size_t k = 0; k < s->call_count; k++) {
            char who[VIEW_NAME], a[400], b[400];
            const live_name *n = live_name_of(&s->names, s->calls[k].id);
            if (s->calls[k].kind != PKI_KIND_COUNTER || strncmp(n->text, "gpu", 3) != 0)
                continue;
            if (first)
                put_line(l, "7", "%-10s %-30s %14s", "who", "device", "now");
            first = false;
            view_name(&t->all[i].view, who);
            put_line(l, "", "%s %s %14s", cell(a, who, 10), cell(b, n->text, 30),
                     pki_figure_scaled(s->calls[k].last, n->key).text);
        }
    }
}

static void put_help(lines *l)
{
    put_line(l, "",
             "q quit   s sort regions by self time, calls, name   p or blank pause   h help");
    put_line(l, "",
             "steps/s, percentiles and shares: since the look before; of the thread that makes");
    put_line(l, "",
             "the steps. change: of p50, from the look before. in: its innermost open region.");
    put_line(l, "", "A TARGET that others wait for: pk where.");
}

void top_text(const top *t, const top_page *page)
{
    lines l = {page, 0};
    put_head(&l, t);
    if (page->help)
        put_help(&l);
    put_changes(&l, t);
    put_stragglers(&l, t);
    put_processes(&l, t);
    put_devices(&l, t);
    put_comms(&l, t);
    put_regions(&l, t, true);
    put_regions(&l, t, false);
}
