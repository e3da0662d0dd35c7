/* tools/live/top.c - `pk top`: what processes do, look after look */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "command.h"
#include "live/live.h"
#include "measure/figure.h"
#include "out/columns.h"
#include "out/json_write.h"
#include "stats/buckets.h"

#define TOP_KINDS (PK_WAIT + 1)

/* Since the look before, or, at the first one, since the beginning. */
typedef struct top_calls {
    uint32_t id; /* in its process */
    const live_name *name;
    uint64_t calls, self, sum; /* self and sum: ns */
} top_calls;

typedef struct top_process {
    view view;
    bool lost;                  /* its arena can no longer be read: the figures are the last ones */
    bool known;                 /* there was a look before */
    uint64_t steps, now_ns, ns; /* before; and how much time has passed since */
    uint64_t kinds[TOP_KINDS];
    uint64_t *buckets; /* of the steps */
    struct top_seen {
        uint64_t calls, self, sum;
    } * seen; /* by id */
    size_t seen_room;
    uint64_t *completed; /* by communicator */
    size_t completed_room;
    target_state state;

    double steps_per_second;
    uint64_t steps_made;
    double p50, p90, p99,
        p50_before;           /* ns; of the steps since the look before, else of all; 0: none */
    double shares[TOP_KINDS]; /* of the thread that makes the steps, of its self time */
    top_calls *calls;         /* what has been called since, and the same of streams */
    size_t call_count, call_room;
    top_calls *streams;
    size_t stream_count, stream_room;
    double *comm_rates; /* operations completed per second, by communicator */
    size_t comm_room;
    bool changed; /* the state, since the look before */
} top_process;

typedef enum top_order { TOP_BY_SELF, TOP_BY_CALLS, TOP_BY_NAME, TOP_ORDERS } top_order;

typedef struct top {
    top_process *all;
    size_t count;
    top_order order;
    unsigned views;
} top;

/* Waits at most so many milliseconds. The key that was pressed; 0: none; SCREEN_RESIZED;
 * SCREEN_END: the terminal is gone, or the user wants to end. */
#define SCREEN_RESIZED (-1)
#define SCREEN_END (-2)
static int screen_wait(int ms);

/* Regions of all processes, by name and kind; to be freed. NULL without memory. */
typedef struct top_region {
    const live_name *name;
    uint64_t calls, self, sum;
    size_t processes;
} top_region;
static top_region *top_regions(const top *t, bool streams, size_t *count);

/* A page of `width` columns and `height` lines at most (0: any number), in escape sequences if it
 * is to be styled. */
typedef struct top_page {
    FILE *to;
    size_t width, height;
    bool styled, paused, help;
} top_page;
static void top_text(const top *t, const top_page *page);
static void top_json(const top *t, FILE *to);

static bool top_open(top *t, targets *of);
static void top_close(top *t);
static bool top_update(top *t);

/* ---- a terminal as a page that is drawn over and over, and its keys ---- */

static struct termios screen_before;
static bool keys; /* standard input is a terminal, and set up */
static volatile sig_atomic_t resized, ended;

static void note_resize(int signal)
{
    (void)signal;
    resized = 1;
}

static void note_end(int signal)
{
    (void)signal;
    ended = 1;
}

static void put(const char *text, size_t n)
{
    while (n > 0) {
        ssize_t wrote = write(STDOUT_FILENO, text, n);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0) {
            ended = 1;
            return;
        }
        text += wrote;
        n -= (size_t)wrote;
    }
}

static void catch_signals(void)
{
    struct sigaction resize = {.sa_handler = note_resize}, end = {.sa_handler = note_end};
    sigaction(SIGWINCH, &resize, NULL);
    sigaction(SIGINT, &end, NULL);
    sigaction(SIGTERM, &end, NULL);
    sigaction(SIGHUP, &end, NULL);
}

/* False if standard output is no terminal: then nothing has happened. It is as it was before once
 * screen_close has been called, also after ^C and SIGTERM, which end the waiting. */
static bool screen_open(void)
{
    static const char begin[] = "\033[?1049h\033[?25l";
    if (!isatty(STDOUT_FILENO))
        return false;
    catch_signals();
    keys = tcgetattr(STDIN_FILENO, &screen_before) == 0;
    if (keys) {
        struct termios raw = screen_before;
        raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        raw.c_cc[VMIN] = 1;
        raw.c_cc[VTIME] = 0;
        raw.c_cc[VSUSP] = _POSIX_VDISABLE; /* nobody would put the page back */
        tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    }
    put(begin, sizeof begin - 1);
    return true;
}

static void screen_close(void)
{
    static const char end[] = "\033[?25h\033[?1049l";
    put(end, sizeof end - 1);
    if (keys)
        tcsetattr(STDIN_FILENO, TCSADRAIN, &screen_before);
}

/* As of now; 80 x 24 where it cannot be known. */
static void screen_size(size_t *width, size_t *height)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col && size.ws_row;
    *width = known ? size.ws_col : 80;
    *height = known ? size.ws_row : 24;
}

/* The page, in place of the one before. */
/* The last line has no newline behind it: it would scroll the page. */
static void screen_draw(const char *page, size_t bytes)
{
    static const char home[] = "\033[H", rest[] = "\033[J";
    while (bytes > 0 && page[bytes - 1] == '\n')
        bytes--;
    put(home, sizeof home - 1);
    put(page, bytes);
    put(rest, sizeof rest - 1);
}

static int screen_wait(int ms)
{
    char key;
    struct pollfd in = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
    int ready = poll(&in, 1, ms);
    if (ended)
        return SCREEN_END;
    if (resized) {
        resized = 0;
        return SCREEN_RESIZED;
    }
    if (ready <= 0)
        return 0;
    return read(STDIN_FILENO, &key, 1) == 1 ? key : SCREEN_END;
}

/* ---- pk top: a live view of processes ---- */

typedef struct wish {
    bool once, json;
    uint32_t seconds;
    operands targets;
} wish;

static const option all_options[] = {
    {"--once", NULL, "one page of what happens within --seconds, and end",
     .at = offsetof(wish, once)},
    {"--json", NULL, "a JSON document a line in place of a page", .at = offsetof(wish, json)},
    {"--seconds", "N", "look every N seconds (default {})", PKI_OPTION_WORD, option_number,
     offsetof(wish, seconds), .least = 1, .most = 3600, .shown = 1},
};

static const option_table command_options = {
    .command = "top",
    .usage = "TARGET... [--once] [--json] [--seconds N]",
    .about =
        "A live view of processes, updated every second: steps per second and how long they take,\n"
        "where the time goes by kind and by region, devices, communicators, the ranks side by side,\n"
        "and what has changed since the last update. TARGET is a pid, an arena or a folder of\n"
        "arenas. The processes need not cooperate, and are neither stopped nor touched.\n"
        "Keys: q quit, s another order of regions, p pause, h help.",
    .notes = "Exit status: 0; 2 if a TARGET cannot be read.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .files = "arena",
    .who = "top: ",
    .operands = offsetof(wish, targets),
};

#define PLAIN_WIDTH 140

static void show_plain(const top *t, bool json)
{
    if (json)
        top_json(t, stdout);
    else
        top_text(t, &(top_page){.to = stdout, .width = PLAIN_WIDTH});
    fflush(stdout);
}

/* False without memory. */
static bool draw(const top *t, bool paused, bool help)
{
    char *text = NULL;
    size_t bytes = 0;
    top_page page = {.styled = getenv("NO_COLOR") == NULL, .paused = paused, .help = help};
    screen_size(&page.width, &page.height);
    page.to = open_memstream(&text, &bytes);
    if (!page.to)
        return false;
    top_text(t, &page);
    fclose(page.to);
    screen_draw(text, bytes);
    free(text);
    return true;
}

static uint64_t now_ms(void)
{
    return pki_monotonic_ns() / 1000000;
}

/* On a terminal, until the user has had enough. False without memory. */
static bool watch(top *t, uint32_t seconds)
{
    bool paused = false, help = false, sound = true;
    uint64_t next = now_ms();
    for (int key = 0; sound && key != SCREEN_END && key != 'q';) {
        if (now_ms() >= next) {
            sound = paused || top_update(t);
            next = now_ms() + seconds * UINT64_C(1000);
        }
        sound = sound && draw(t, paused, help);
        key = screen_wait((int)(next > now_ms() ? next - now_ms() : 0));
        paused ^= key == 'p' || key == ' ';
        help ^= key == 'h' || key == '?';
        t->order = key == 's' ? (t->order + 1) % TOP_ORDERS : t->order;
    }
    return sound;
}

/* Into a pipe or a file: a page, or a line, after each look but the first, which only begins. */
static bool print(top *t, const wish *w)
{
    do {
        struct timespec pause = {w->seconds, 0};
        nanosleep(&pause, NULL);
        if (!top_update(t))
            return false;
        show_plain(t, w->json);
    } while (!w->once && !ferror(stdout));
    return true;
}

static bool run(top *t, const wish *w)
{
    if (!top_update(t))
        return false;
    if (w->once || w->json || !screen_open())
        return print(t, w);
    bool sound = watch(t, w->seconds);
    screen_close();
    return sound;
}

int command_top(int argc, char **argv)
{
    wish w = {.seconds = 1};
    targets of;
    top t = {0};
    complaint why = {""};
    int status = options_read(&command_options, &w, argc, argv);
    if (status != OPTIONS_READ)
        return status;
    if (!w.targets.count)
        return complain("top needs a TARGET (pk top --help)");
    if (!targets_open(&of, w.targets.all, w.targets.count, &why))
        status = complain("top: %s", why.text);
    else if (!top_open(&t, &of) || !run(&t, &w))
        status = complain("top: no memory");
    else
        status = EXIT_OK;
    top_close(&t);
    targets_close(&of);
    return status;
}

/* ---- from what is read at one look and the next to figures ---- */

/* False without memory. */
static bool top_open(top *t, targets *of)
{
    *t = (top){.all = calloc(of->count, sizeof *t->all), .count = of->count};
    for (size_t i = 0; t->all && i < of->count; i++) {
        t->all[i].view.t = &of->all[i];
        t->all[i].state = of->all[i].state;
        t->all[i].buckets = calloc(PK_STATS_BUCKETS, sizeof *t->all[i].buckets);
        if (!t->all[i].buckets)
            return false;
    }
    return t->all != NULL;
}

static void top_close(top *t)
{
    for (size_t i = 0; t->all && i < t->count; i++) {
        top_process *p = &t->all[i];
        snapshot_finish(&p->view.s);
        free(p->buckets);
        free(p->seen);
        free(p->completed);
        free(p->calls);
        free(p->streams);
        free(p->comm_rates);
    }
    free(t->all);
    *t = (top){0};
}

/* ---- steps ---- */

static double quantile(const uint64_t *counts, uint64_t total, double q)
{
    size_t bucket = pki_rank_bucket(counts, PK_STATS_BUCKETS, sizeof *counts, pki_rank(q, total));
    return total ? pki_bucket_middle((uint32_t)bucket) : 0;
}

static uint64_t sum_of(const uint64_t *counts)
{
    uint64_t total = 0;
    for (size_t i = 0; i < PK_STATS_BUCKETS; i++)
        total += counts[i];
    return total;
}

/* Of the steps since the look before; where there are none, as they were. */
static void update_steps(top_process *p)
{
    static pk_stats stats;
    static uint64_t since[PK_STATS_BUCKETS];
    const live_calls *row = snapshot_calls(&p->view.s, PKI_NAME_STEP);
    p->p50_before = p->p50;
    if (!row || !row->count || !snapshot_stats(p->view.t, row, &stats))
        return;
    for (size_t i = 0; i < PK_STATS_BUCKETS; i++)
        since[i] = stats.buckets[i] > p->buckets[i] ? stats.buckets[i] - p->buckets[i] : 0;
    memcpy(p->buckets, stats.buckets, sizeof stats.buckets);
    uint64_t total = sum_of(since);
    if (!total)
        return;
    p->p50 = quantile(since, total, 0.5);
    p->p90 = quantile(since, total, 0.9);
    p->p99 = quantile(since, total, 0.99);
}

static void update_rate(top_process *p)
{
    const snapshot *s = &p->view.s;
    p->ns = s->now_ns > p->now_ns ? s->now_ns - p->now_ns : 0;
    p->steps_made = s->steps > p->steps ? s->steps - p->steps : 0;
    p->steps_per_second = p->ns ? (double)p->steps_made * 1e9 / (double)p->ns : 0;
    p->steps = s->steps;
    p->now_ns = s->now_ns;
}

static void update_kinds(top_process *p)
{
    uint64_t since[TOP_KINDS] = {0}, total = 0;
    const live_thread *main = snapshot_main(&p->view.s);
    for (size_t k = 0; main && k < TOP_KINDS; k++) {
        since[k] = main->kinds[k] > p->kinds[k] ? main->kinds[k] - p->kinds[k] : 0;
        total += since[k];
        p->kinds[k] = main->kinds[k];
    }
    for (size_t k = 0; k < TOP_KINDS && total; k++)
        p->shares[k] = (double)since[k] / (double)total;
}

/* ---- regions and communicators ---- */

static uint64_t difference(uint64_t now, uint64_t *before)
{
    uint64_t d = now > *before ? now - *before : 0;
    *before = now;
    return d;
}

/* Spans on streams are counted in the upper half of the table. */
static bool update_call(top_process *p, const live_calls *row, bool stream)
{
    top_calls **calls = stream ? &p->streams : &p->calls;
    size_t *room = stream ? &p->stream_room : &p->call_room;
    size_t *count = stream ? &p->stream_count : &p->call_count;
    size_t at = row->id * (size_t)2 + stream;
    if (row->kind > PK_WAIT)
        return true;
    if (!pki_array_fit(&p->seen, &p->seen_room, at + 1, sizeof *p->seen) ||
        !pki_array_fit(calls, room, *count + 1, sizeof **calls))
        return false;
    top_calls since = {.id = row->id,
                       .name = live_name_of(&p->view.s.names, row->id),
                       .calls = difference(row->count, &p->seen[at].calls),
                       .self = difference(row->self, &p->seen[at].self),
                       .sum = difference(row->sum, &p->seen[at].sum)};
    if (since.calls || since.self)
        (*calls)[(*count)++] = since;
    return true;
}

static bool update_calls(top_process *p)
{
    const snapshot *s = &p->view.s;
    p->call_count = p->stream_count = 0;
    for (size_t i = 0; i < s->call_count; i++)
        if (!update_call(p, &s->calls[i], false))
            return false;
    for (size_t i = 0; i < s->stream_count; i++)
        if (!update_call(p, &s->streams[i], true))
            return false;
    return true;
}

static bool update_comms(top_process *p)
{
    const snapshot *s = &p->view.s;
    if (!pki_array_fit(&p->completed, &p->completed_room, s->comm_count + 1,
                       sizeof *p->completed) ||
        !pki_array_fit(&p->comm_rates, &p->comm_room, s->comm_count + 1, sizeof *p->comm_rates))
        return false;
    for (size_t i = 0; i < s->comm_count; i++) {
        uint64_t done = difference(s->comms[i].completed, &p->completed[i]);
        p->comm_rates[i] = p->ns ? (double)done * 1e9 / (double)p->ns : 0;
    }
    return true;
}

/* ---- all ---- */

static bool update(top_process *p)
{
    p->lost = !snapshot_take(&p->view.s, p->view.t);
    p->changed = p->known && p->view.t->state != p->state;
    p->state = p->view.t->state;
    if (p->lost)
        return true;
    update_rate(p);
    update_steps(p);
    update_kinds(p);
    p->known = true;
    return update_calls(p) && update_comms(p);
}

/* Reads all of them. False without memory. */
static bool top_update(top *t)
{
    for (size_t i = 0; i < t->count; i++)
        if (!update(&t->all[i]))
            return false;
    t->views++;
    return true;
}

/* ---- regions of all processes ---- */

static int by_name(const void *a, const void *b)
{
    const top_region *x = a, *y = b;
    int order = strcmp(x->name->text, y->name->text);
    return order ? order : (x->name->kind > y->name->kind) - (x->name->kind < y->name->kind);
}

static int by_self(const void *a, const void *b)
{
    const top_region *x = a, *y = b;
    return x->self == y->self ? by_name(a, b) : x->self < y->self ? 1 : -1;
}

static int by_calls(const void *a, const void *b)
{
    const top_region *x = a, *y = b;
    return x->calls == y->calls ? by_name(a, b) : x->calls < y->calls ? 1 : -1;
}

static size_t merge_same(top_region *all, size_t n)
{
    size_t kept = 0;
    qsort(all, n, sizeof *all, by_name);
    for (size_t i = 0; i < n; i++) {
        if (!kept || by_name(&all[kept - 1], &all[i]) != 0) {
            all[kept++] = all[i];
            continue;
        }
        all[kept - 1].calls += all[i].calls;
        all[kept - 1].self += all[i].self;
        all[kept - 1].sum += all[i].sum;
        all[kept - 1].processes += all[i].processes;
    }
    return kept;
}

static top_region *top_regions(const top *t, bool streams, size_t *count)
{
    static int (*const orders[])(const void *, const void *) = {by_self, by_calls, by_name};
    size_t n = 0, room = 1;
    for (size_t i = 0; i < t->count; i++)
        room += streams ? t->all[i].stream_count : t->all[i].call_count;
    top_region *all = calloc(room, sizeof *all);
    for (size_t i = 0; all && i < t->count; i++) {
        const top_process *p = &t->all[i];
        for (size_t k = 0; k < (streams ? p->stream_count : p->call_count); k++) {
            const top_calls *c = streams ? &p->streams[k] : &p->calls[k];
            all[n++] = (top_region){c->name, c->calls, c->self, c->sum, 1};
        }
    }
    *count = all ? merge_same(all, n) : 0;
    if (all)
        qsort(all, *count, sizeof *all, orders[t->order]);
    return all;
}

/* ---- a page of pk top ---- */

/* Lines that are cut to the terminal, never to half a character. */

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

static void top_text(const top *t, const top_page *page)
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

/* ---- top json ---- */

static const char *const top_json_kinds[] = {"other", "compute", "data", "comm", "io", "wait"};

static void top_json_put_comms(pki_json *j, const top_process *p)
{
    pki_json_open(j, "communicators", '[');
    for (size_t i = 0; i < p->view.s.comm_count; i++) {
        const live_comm *c = &p->view.s.comms[i];
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", live_name_of(&p->view.s.names, c->name)->text);
        pki_json_uint(j, "enqueued", c->enqueued);
        pki_json_uint(j, "completed", c->completed);
        pki_json_uint(j, "under_way", c->under_way);
        pki_json_real(j, "per_second", p->comm_rates[i]);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void top_json_put_devices(pki_json *j, const top_process *p)
{
    const snapshot *s = &p->view.s;
    pki_json_open(j, "counters", '[');
    for (size_t i = 0; i < s->call_count; i++) {
        const live_name *n = live_name_of(&s->names, s->calls[i].id);
        if (s->calls[i].kind != PKI_KIND_COUNTER)
            continue;
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", n->text);
        pki_json_text(j, "unit", n->key);
        pki_json_real(j, "last", s->calls[i].last);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
}

static void put_steps(pki_json *j, const top_process *p)
{
    pki_json_uint(j, "steps", p->steps);
    pki_json_uint(j, "steps_since", p->steps_made);
    pki_json_real(j, "steps_per_second", p->steps_per_second);
    pki_json_real(j, "p50_seconds", p->p50 / 1e9);
    pki_json_real(j, "p90_seconds", p->p90 / 1e9);
    pki_json_real(j, "p99_seconds", p->p99 / 1e9);
    pki_json_open(j, "shares", '{');
    for (size_t k = 0; k < TOP_KINDS; k++)
        pki_json_real(j, top_json_kinds[k], p->shares[k]);
    pki_json_close(j, '}');
}

static void top_json_put_process(pki_json *j, const top_process *p)
{
    const pki_arena_header *h = p->view.t->header;
    const live_region *in = view_innermost(&p->view);
    pki_json_open(j, NULL, '{');
    pki_json_int(j, "rank", h->world_size > 0 ? h->rank : -1);
    pki_json_uint(j, "pid", p->view.t->process.pid ? (unsigned)p->view.t->process.pid : h->pid);
    pki_json_text(j, "host", h->host);
    pki_json_text(j, "program", h->program);
    pki_json_text(j, "state", target_state_text(p->state));
    pki_json_bool(j, "hangs", h->hang.raised != 0);
    pki_json_uint(j, "stragglers", h->stragglers.count);
    pki_json_real(j, "seconds", (double)p->ns / 1e9);
    put_steps(j, p);
    pki_json_text(j, "in", in ? live_name_of(&p->view.s.names, in->id)->text : "");
    top_json_put_comms(j, p);
    top_json_put_devices(j, p);
    pki_json_close(j, '}');
}

static void top_json_put_regions(pki_json *j, const top *t, bool streams)
{
    size_t count;
    top_region *all = top_regions(t, streams, &count);
    pki_json_open(j, streams ? "streams" : "regions", '[');
    for (size_t i = 0; i < count; i++) {
        pki_json_open(j, NULL, '{');
        pki_json_text(j, "name", all[i].name->text);
        pki_json_text(j, "kind",
                      all[i].name->kind < TOP_KINDS ? top_json_kinds[all[i].name->kind] : "");
        pki_json_uint(j, "calls", all[i].calls);
        pki_json_real(j, "self_seconds", (double)all[i].self / 1e9);
        pki_json_real(j, "seconds", (double)all[i].sum / 1e9);
        pki_json_uint(j, "processes", all[i].processes);
        pki_json_close(j, '}');
    }
    pki_json_close(j, ']');
    free(all);
}

static void top_json(const top *t, FILE *to)
{
    pki_plain plain;
    pki_json j = {.file = to};
    bool entered = pki_plain_enter(&plain);
    pki_json_open(&j, NULL, '{');
    pki_json_open(&j, "processes", '[');
    for (size_t i = 0; i < t->count; i++)
        top_json_put_process(&j, &t->all[i]);
    pki_json_close(&j, ']');
    top_json_put_regions(&j, t, false);
    top_json_put_regions(&j, t, true);
    pki_json_close(&j, '}');
    fputc('\n', to);
    if (entered)
        pki_plain_leave(&plain);
}
