#include "merge/merge.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/text.h"
#include "comm/model/communicator.h"
#include "files.h"
#include "memory.h"
#include "out/columns.h"

static bool tar_put_text(FILE *to, const char *name, const char *text, size_t n);
static bool tar_put_file(FILE *to, const char *name, const char *path, complaint *why);
static bool tar_end(FILE *to);

/* ---- operations on communicators, from the events of a trace ---- */

#define OPERATION "\"Collective name\""

void collector_open(collector *c, pki_joints *into)
{
    *c = (collector){.into = into};
    event_reader_open(&c->reader);
}

void collector_close(collector *c)
{
    event_reader_close(&c->reader);
    alike_free(&c->known);
    free(c->copy);
}

void collector_new_file(collector *c)
{
    memset(c->recent, 0, sizeof c->recent);
    c->is_open = false;
}

void collector_note(collector *c, const fields *f)
{
    c->recent[c->next++ % COLLECTOR_RECENT] = (recent){.tid = f->thread, .start = f->start};
}

bool collector_wants(const collector *c, line l, const fields *f)
{
    if (f->phase == 'e')
        return c->is_open;
    return (f->phase == 'X' || f->phase == 'b') && f->args.length > sizeof OPERATION &&
           memmem(l.text + f->args.at, f->args.length, OPERATION, sizeof OPERATION - 1) != NULL;
}

static uint64_t mixed(uint64_t key, uint64_t more)
{
    key = (key ^ more) * UINT64_C(0x9E3779B97F4A7C15);
    return key ^ key >> 29;
}

static uint64_t mixed_text(uint64_t key, const char *text)
{
    for (const char *s = text; *s; s++)
        key = (key ^ (unsigned char)*s) * UINT64_C(0x100000001B3);
    return mixed(key, 0);
}

/* The same on all ranks of a communicator. By its number, where there is one: of several that have
 * one name each rank calls the second one "name #2" that it has used second. */
static uint64_t communicator_of(const event *e)
{
    const char *id = object_text(e->args, "Comms Id");
    uint64_t key = mixed_text(UINT64_C(0xCBF29CE484222325), e->comm.library);
    key = mixed_text(key, *id ? id : e->comm.name);
    return mixed(key, e->comm.ranks);
}

/* Messages of one sender, receiver and tag do not overtake each other, so the n-th that was sent is
 * the n-th that was received: all of a channel have one key. */
static uint64_t channel_of(const event *e, const pki_joint *o)
{
    bool is_send = o->kind == PKI_JOINT_SEND;
    uint64_t key = mixed(communicator_of(e), 1);
    key = mixed(key, (uint64_t)(is_send ? o->rank : o->peer));
    key = mixed(key, (uint64_t)(is_send ? o->peer : o->rank));
    return mixed(key, (uint64_t)(uint32_t)e->comm.tag);
}

static bool is_message(const pki_joint *o)
{
    return o->kind == PKI_JOINT_SEND || o->kind == PKI_JOINT_RECEIVE;
}

static void set_key(pki_joint *o, uint64_t channel, uint64_t sequence)
{
    o->key = is_message(o) ? channel : mixed(channel, sequence);
}

/* False: it says too little to find the other ranks' by. Several that were timed as one are none.
 */
static bool fill(pki_joint *o, const event *e, uint64_t *channel)
{
    const event_comm *c = &e->comm;
    if (!c->op || c->rank < 0 || c->ranks < 2 || c->sequence == 0 || c->calls > 1 ||
        c->sharers > 1 || c->unfinished)
        return false;
    *o = (pki_joint){.start = e->start, .end = e->end, .tid = e->tid, .rank = c->rank};
    o->op = (uint8_t)pki_comm_op_named(c->op);
    o->kind = (uint8_t)pki_joint_kind_of(o->op);
    o->peer = c->peer;
    o->ranks = c->ranks;
    *channel = is_message(o) ? channel_of(e, o) : mixed(communicator_of(e), 2);
    set_key(o, *channel, c->sequence);
    return !is_message(o) || o->peer >= 0;
}

static const event *read_event(collector *c, line l)
{
    const event *e;
    if (c->room < l.length) {
        c->room = 2 * l.length;
        c->copy = memory_resized(c->copy, c->room);
    }
    memcpy(c->copy, l.text, l.length);
    return event_reader_read(&c->reader, (line){c->copy, l.length}, &e) == READ_EVENT ? e : NULL;
}

#define CALL_BEGINS 10000 /* ns after its operation, at most */

/* Arrows begin at slices, and a pair of events is none. That of the call has ended before the pair
 * was written, and is the first one on its thread that begins after the operation. */
static bool move_to_call(const collector *c, pki_joint *o)
{
    uint64_t first = o->start + CALL_BEGINS;
    bool found = false;
    for (size_t i = 0; i < COLLECTOR_RECENT; i++) {
        const recent *r = &c->recent[i];
        if (r->tid != o->tid || r->start < o->start || r->start >= first)
            continue;
        first = r->start;
        found = true;
    }
    if (found)
        o->start = first;
    return found;
}

bool joints_stored(bool stored, complaint *why)
{
    return stored ||
           complaint_set(why, "operations between ranks could not be stored: %s", strerror(errno));
}

static void open_pair(collector *c, const event *e, const pki_joint *o)
{
    c->open = *o;
    bool at_call = move_to_call(c, &c->open);
    c->open.written &= at_call || o->kind == PKI_JOINT_RECEIVE; /* arrows go to its end */
    c->open_id = e->comm.id;
    c->is_open = true;
}

static bool close_pair(collector *c, const event *e, complaint *why)
{
    if (!c->is_open || e->comm.id != c->open_id)
        return true;
    c->is_open = false;
    c->open.end = e->start;
    return joints_stored(pki_joints_add(c->into, &c->open), why);
}

static bool add_operation(collector *c, pki_joint o, const pki_joint *where, complaint *why)
{
    o.source = where->source;
    o.pid = where->pid;
    o.written = where->written;
    return joints_stored(pki_joints_add(c->into, &o), why);
}

/* Not like an earlier one, or a pair. */
static bool add_event(collector *c, line l, const fields *f, const pki_joint *where, complaint *why)
{
    const event *e = read_event(c, l);
    pki_joint o;
    uint64_t channel = 0;
    if (!e)
        return true;
    if (e->type == EVENT_COMM_END)
        return close_pair(c, e, why);
    if (!fill(&o, e, &channel))
        return true;
    if (e->type == EVENT_COMM_BEGIN) {
        o.source = where->source;
        o.pid = where->pid;
        o.written = where->written;
        open_pair(c, e, &o);
    } else if (e->type == EVENT_REGION || e->type == EVENT_COMM) {
        alike_add(&c->known, l, f, &o, channel, e->comm.sequence);
        return add_operation(c, o, where, why);
    }
    return true;
}

bool collector_add(collector *c, uint32_t of, line l, const fields *f, uint32_t pid, bool written,
                   complaint *why)
{
    const pki_joint where = {.source = of, .pid = pid, .written = written};
    pki_joint o;
    uint64_t channel, sequence;
    if (!alike_find(&c->known, l, f, &o, &channel, &sequence))
        return add_event(c, l, f, &where, why);
    set_key(&o, channel, sequence);
    return add_operation(c, o, &where, why);
}

/* ---- what Perfetto needs to open several traces together, as they are ---- */

/* Which machine each is of, and what its 0 is on the axis of all.
 * https://perfetto.dev/docs/reference/perfetto-manifest, version 1. */

#define NAME "perfetto_manifest.json"

static void set(json_t *to, const char *key, json_t *value)
{
    memory_needed(json_object_set_new(to, key, value) == 0);
}

/* In an archive, unique whatever folders they came from; short enough for its head. Beside a
 * manifest alone: as it has to be called in the archive that somebody makes of them. */
static void name_of(char *name, size_t room, const merge_source *s, size_t place, bool archive)
{
    const char *path = s->path, *last = pki_base_name(s->path);
    if (!archive) {
        while (*path == '/' || strncmp(path, "./", 2) == 0)
            path += *path == '/' ? 1 : 2;
        snprintf(name, room, "%s", path);
        return;
    }
    size_t n = strlen(last);
    snprintf(name, room, "%06zu-%s", place, last + (n > 90 ? n - 90 : 0));
}

/* Processes of one machine with the same number would become one. */
static bool meets_another(const merge_sources *s, size_t place)
{
    const merge_source *it = &s->all[place];
    for (size_t i = 0; i < place; i++)
        if (s->all[i].when.clock == it->when.clock && s->all[i].pid == it->pid &&
            s->all[i].process != it->process)
            return true;
    return false;
}

static json_t *machine_of(const merge_sources *s, size_t place)
{
    char name[160];
    const merge_source *it = &s->all[place];
    const char *host = *it->host ? it->host : "unknown";
    bool alone = !meets_another(s, place);
    snprintf(name, sizeof name, alone ? "%.64s" : "%.64s, process of %zu", host, place);
    json_t *o = json_object();
    memory_needed(o != NULL);
    set(o, "name", json_string(name));
    return o;
}

/* Perfetto shifts a file as a whole: drift is evened out over its length. */
static json_t *file_entry(const merge_sources *s, const pki_clocks *c, size_t place, bool archive)
{
    char name[4096];
    const merge_source *it = &s->all[place];
    uint64_t middle = it->when.last_ns / 2, at = pki_clocks_axis(c, &it->when, middle);
    json_t *o = json_object(), *clocks = json_object();
    memory_needed(o && clocks);
    name_of(name, sizeof name, it, place, archive);
    set(o, "path", json_string(name));
    set(o, "machine", machine_of(s, place));
    set(clocks, "offset_ns", json_integer((json_int_t)(at - middle)));
    set(o, "clocks", clocks);
    return o;
}

static char *manifest_text(const merge_sources *s, const pki_clocks *c, bool archive)
{
    json_t *o = json_object(), *inside = json_object(), *files = json_array();
    memory_needed(o && inside && files);
    for (size_t i = 0; i < s->count; i++)
        memory_needed(json_array_append_new(files, file_entry(s, c, i, archive)) == 0);
    set(inside, "version", json_integer(1));
    set(inside, "files", files);
    set(o, "perfetto_manifest", inside);
    char *text = json_dumps(o, JSON_INDENT(1));
    memory_needed(text != NULL);
    json_decref(o);
    return text;
}

static bool put_archive(FILE *to, const merge_sources *s, const char *text, complaint *why)
{
    bool put = tar_put_text(to, NAME, text, strlen(text));
    for (size_t i = 0; put && i < s->count; i++) {
        char name[128];
        name_of(name, sizeof name, &s->all[i], i, true);
        put = tar_put_file(to, name, s->all[i].path, why);
    }
    return put && tar_end(to);
}

/* A name that ends in .tar: an archive with the files in it, which Perfetto opens. */
static bool manifest_write(const char *out, const merge_sources *s, const pki_clocks *c,
                           complaint *why)
{
    output o;
    bool archive = pki_ends_with(out, ".tar");
    if (!output_open(&o, out, OUTPUT_FILE, why))
        return false;
    char *text = manifest_text(s, c, archive);
    bool put = archive ? put_archive(o.to, s, text, why) : fprintf(o.to, "%s\n", text) > 0;
    free(text);
    return output_close(&o, put, why);
}

/* ---- files as one: POSIX ustar, uncompressed ---- */

#define BLOCK 512
#define PIECE ((size_t)1 << 20)
#define OCTAL_MOST ((uint64_t)1 << 33) /* eleven digits */

static const char zeros[2 * BLOCK];

/* Beyond the eleven digits, GNU's and POSIX' way: a binary number behind a set highest bit. */
static void put_size(char *digits, uint64_t size)
{
    if (size < OCTAL_MOST) {
        snprintf(digits, 12, "%011llo", (unsigned long long)size);
        return;
    }
    memset(digits, 0, 12);
    digits[0] = (char)0x80;
    for (int i = 11; size; i--, size >>= 8)
        digits[i] = (char)(size & 0xFF);
}

static bool put_header(FILE *to, const char *name, uint64_t size)
{
    char h[BLOCK] = {0};
    unsigned sum = 0;
    snprintf(h, 100, "%s", name);
    memcpy(h + 100, "0000644", 7);
    memcpy(h + 108, "0000000", 7);
    memcpy(h + 116, "0000000", 7);
    put_size(h + 124, size);
    memcpy(h + 136, "00000000000", 11);
    memset(h + 148, ' ', 8);
    h[156] = '0';
    memcpy(h + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++)
        sum += (unsigned char)h[i];
    snprintf(h + 148, 8, "%06o", sum);
    h[155] = ' ';
    return fwrite(h, BLOCK, 1, to) == 1;
}

static bool put_padding(FILE *to, uint64_t size)
{
    size_t more = (size_t)((BLOCK - size % BLOCK) % BLOCK);
    return fwrite(zeros, 1, more, to) == more;
}

/* Names of up to 99 bytes. False and errno. */
static bool tar_put_text(FILE *to, const char *name, const char *text, size_t n)
{
    return put_header(to, name, n) && fwrite(text, 1, n, to) == n && put_padding(to, n);
}

static bool copy(FILE *to, int from, uint64_t size)
{
    char *piece = memory_resized(NULL, PIECE);
    bool copied = true;
    for (uint64_t left = size; copied && left;) {
        size_t wanted = left < PIECE ? (size_t)left : PIECE;
        ssize_t got = read(from, piece, wanted);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) { /* it has become shorter */
            memset(piece, 0, wanted);
            got = (ssize_t)wanted;
        }
        copied = fwrite(piece, 1, (size_t)got, to) == (size_t)got;
        left -= (uint64_t)got;
    }
    free(piece);
    return copied && put_padding(to, size);
}

/* As long as it is now: what is added meanwhile is not in it. False, and why. */
static bool tar_put_file(FILE *to, const char *name, const char *path, complaint *why)
{
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &is) != 0) {
        complaint_set(why, "%s: %s", path, strerror(errno));
        if (fd >= 0)
            close(fd);
        return false;
    }
    uint64_t size = (uint64_t)is.st_size;
    bool put = put_header(to, name, size) && copy(to, fd, size);
    close(fd);
    return put; /* what went wrong with `to`, its owner says */
}

static bool tar_end(FILE *to)
{
    return fwrite(zeros, 1, sizeof zeros, to) == sizeof zeros;
}

/* ---- what was merged, in words ---- */

typedef struct merge_outcome {
    const char *out;
    const merge_copy *copy;
    arrows arrows;
} merge_outcome;

typedef unsigned long long number;

static const char *ending(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* ---- ranks ---- */

/* "0-3, 7" of sorted ranks; `present`: those that are there, else those that are not. */
static void print_ranks(const merge_sources *s, int32_t size, bool present)
{
    const char *between = "";
    size_t i = 0;
    while (i < s->count && s->all[i].rank < 0)
        i++;
    for (int32_t rank = 0, first = -1; rank <= size; rank++) {
        while (i < s->count && s->all[i].rank < rank)
            i++;
        bool there = i < s->count && s->all[i].rank == rank;
        bool counts = rank < size && there == present;
        if (counts && first < 0)
            first = rank;
        if (counts || first < 0)
            continue;
        printf(rank - first > 1 ? "%s%d-%d" : "%s%d", between, first, rank - 1);
        between = ", ";
        first = -1;
    }
}

static void print_rank_counts(const merge_sources *s)
{
    int32_t size = 0, there = 0, before = -1;
    for (size_t i = 0; i < s->count; i++) {
        const merge_source *it = &s->all[i];
        int32_t least = it->rank + 1 > it->ranks ? it->rank + 1 : it->ranks;
        size = least > size ? least : size;
        there += it->rank >= 0 && it->rank != before;
        before = it->rank;
    }
    if (there == 0)
        return;
    printf("  ranks: ");
    print_ranks(s, size, true);
    printf(" (%d of %d)", there, size);
    if (there < size) {
        printf("; missing: ");
        print_ranks(s, size, false);
    }
    printf("\n");
}

/* ---- clocks ---- */

/* So that it can be read: 12.3 us. */
static void print_time(double ns)
{
    double size = ns < 0 ? -ns : ns;
    if (size >= 1e9)
        printf("%.3f s", ns / 1e9);
    else if (size >= 1e6)
        printf("%.3f ms", ns / 1e6);
    else if (size >= 1e3)
        printf("%.3f us", ns / 1e3);
    else
        printf("%.0f ns", ns);
}

static void print_clock(const pki_clock *c)
{
    printf("  clock of ");
    pki_put_text(stdout, *c->host ? c->host : c->name);
    printf(": ");
    if (c->method == PKI_CLOCK_SAME) {
        printf("that of the time axis\n");
        return;
    }
    if (c->broken)
        printf("broken: what ranks did together contradicts itself; ");
    if (c->method == PKI_CLOCK_REAL_TIME) {
        printf("by the nodes' real times, which nothing here bounds\n");
        return;
    }
    printf("within ");
    print_time((double)pki_clock_doubt(c));
    printf(", by %llu messages and collectives; ", (number)c->bounds);
    double drift = pki_clock_drift(c), doubt = pki_clock_drift_doubt(c);
    if (fabs(drift) > doubt)
        printf("it drifts %.3f ppm, give or take %.3f\n", drift, doubt);
    else if (isfinite(doubt))
        printf("no drift beyond the %.3f ppm that are in doubt\n", doubt);
    else
        printf("whether it drifts is not known\n");
}

static void print_clocks(const pki_clocks *c)
{
    for (size_t i = 0; c->count > 1 && i < c->count; i++)
        print_clock(&c->all[i]);
}

/* ---- the whole ---- */

static void print_arrows(const arrows *a)
{
    printf("  arrows: %llu, of %llu message%s and %llu collective%s between ranks\n",
           (number)a->drawn, (number)a->messages, ending(a->messages), (number)a->collectives,
           ending(a->collectives));
    if (a->backwards) {
        printf("  backwards: %llu end%s before what it has to follow, by up to ",
               (number)a->backwards, a->backwards == 1 ? " is" : "s are");
        print_time((double)a->worst_ns);
        printf("; without arrows\n");
    }
    if (a->alone)
        printf("  alone: %llu message%s and collective%s, whose other side is in none of the"
               " traces or is ambiguous\n",
               (number)a->alone, ending(a->alone), ending(a->alone));
    if (a->ambiguous)
        printf("  ambiguous: %llu collective%s of communicators with the same name\n",
               (number)a->ambiguous, ending(a->ambiguous));
}

static void print_file(const merge_source *s)
{
    printf("  ");
    pki_put_text(stdout, s->path);
    if (s->arena) {
        printf(": the run was killed; `pk recover ");
        pki_put_text(stdout, s->path);
        printf(".arena` has the rest of it\n");
    } else {
        printf(": it is cut off\n");
    }
}

static void print_files(const merge_copy *c)
{
    for (size_t i = 0; i < c->sources->count; i++)
        if (c->sources->all[i].arena || c->sources->all[i].cut)
            print_file(&c->sources->all[i]);
    if (c->sources->unreadable)
        printf("  passed over: %zu file%s that could not be read as JSON\n", c->sources->unreadable,
               ending(c->sources->unreadable));
    if (c->without_time)
        printf("  left out: %llu event%s without a time\n", (number)c->without_time,
               ending(c->without_time));
}

static void print_merged(const merge_outcome *t)
{
    const merge_copy *c = t->copy;
    printf("%s: %zu trace%s, %llu events", t->out, c->sources->count, ending(c->sources->count),
           (number)c->events);
    if (c->range.limited)
        printf("; %llu outside the range", (number)c->left_out);
    printf("\n");
    print_rank_counts(c->sources);
    print_clocks(c->clocks);
    print_arrows(&t->arrows);
    print_files(c);
}

/* Always true. */
static bool print_manifest(const char *out, const merge_sources *s, const pki_clocks *c)
{
    printf("%s: %zu trace%s\n", out, s->count, ending(s->count));
    print_rank_counts(s);
    print_clocks(c);
    return true;
}

/* ---- pk merge: traces of ranks as one trace, on one time axis ---- */

static const option all_options[] = {
    {"-o", "OUT", "the merged trace (.gz: compressed)", PKI_OPTION_FILE, option_text,
     offsetof(merge_wish, out), .needs = "the name of a file (pk merge --help)"},
    {"--ranks", "LIST", "these ranks alone: 0,4,8-15", PKI_OPTION_WORD, parse_ranks, .needs = NULL},
    {"--steps", "A-B", "from the first rank's beginning of step A to the last one's end of step B",
     PKI_OPTION_WORD, parse_steps, .needs = NULL},
    {"--from", "T", "what goes on this many seconds after the beginning, and later",
     PKI_OPTION_WORD, parse_from, .needs = NULL},
    {"--to", "T", "...and up to this many", PKI_OPTION_WORD, parse_to, .needs = NULL},
    {"--manifest", NULL,
     "instead of a merged trace what Perfetto (v58 and later) needs to open the files together as "
     "they are: a perfetto_manifest; with OUT ending in .tar it and the files",
     PKI_OPTION_NONE, NULL, offsetof(merge_wish, manifest), .needs = NULL},
};

static const option_table command_options = {
    .command = "merge",
    .usage = "PATH... -o OUT [--ranks LIST] [--steps A-B] [--from T] [--to T]\n"
             "PATH... -o OUT --manifest",
    .about =
        "Makes one Chrome trace of the traces of a job's ranks: on one time axis, each rank a\n"
        "process \"rank N host\", with arrows from who was waited for to who waited (messages,\n"
        "collectives). PATH is a trace (.gz too; also one that a killed run has left) or a folder\n"
        "with traces. Files of one node are put side by side by the node's clock. Clocks of\n"
        "different nodes are bounded by what ranks did together, where their traces have it, else\n"
        "by the nodes' real times; how far they may be wrong is said.",
    .notes = "Exit status: 0; 2 if a PATH cannot be used or OUT cannot be written.",
    .options = {all_options, PKI_COUNT_OF(all_options)},
    .files = "json gz",
    .who = "merge: ",
    .operands = offsetof(merge_wish, paths),
};

static bool find_sources(const merge_wish *w, merge_sources *s)
{
    for (size_t i = 0; i < w->paths.count; i++) {
        complaint why = {""};
        if (!sources_add(s, w->paths.all[i], w->out, &why))
            return complain("%s: %s", w->paths.all[i], why.text), false;
    }
    if (s->count == 0)
        return complain("merge: there is no trace in %s", w->paths.all[0]), false;
    wish_select_ranks(w, s);
    if (s->count == 0)
        return complain("merge: no trace is of one of these ranks"), false;
    sources_sort(s);
    return true;
}

static bool copy_all(merge_copy *c, merge_sources *s)
{
    for (size_t i = 0; i < s->count; i++)
        if (!copy_source(c, &s->all[i]))
            return false;
    return true;
}

static bool write_merged(merge_copy *c, merge_sources *s, const char *path, merge_outcome *outcome)
{
    size_t length;
    char *head = merged_head(s, c->clocks, &length);
    rewrite out = {.file = PKI_TRACE_FILE_NONE};
    pki_joints *found = pki_joints_create(path);
    memory_needed(found);
    collector from;
    arrows drawn = {.to = c};
    collector_open(&from, found);
    c->collector = &from;
    c->out = &out;
    bool written = rewrite_open(&out, path, head, length, c->why) && copy_all(c, s) &&
                   arrows_put(&drawn, found, c->why) && rewrite_publish(&out);
    if (!written)
        rewrite_abandon(&out);
    outcome->arrows = drawn;
    collector_close(&from);
    pki_joints_destroy(found);
    free(head);
    return written;
}

static bool merge(const merge_wish *w, merge_sources *s, pki_clocks *clocks, complaint *why)
{
    merge_copy c = {.sources = s, .clocks = clocks, .range = w->range, .why = why};
    merge_outcome outcome = {.out = w->out, .copy = &c};
    if (!prescan(s, clocks, &w->steps, &c.range, w->out, why))
        return false;
    if (w->manifest)
        return manifest_write(w->out, s, clocks, why) && print_manifest(w->out, s, clocks);
    bool written = write_merged(&c, s, w->out, &outcome);
    if (written)
        print_merged(&outcome);
    copy_end(&c);
    return written;
}

/* What is wrong with the wish, before anything is read. */
static bool is_possible(const merge_wish *w)
{
    complaint why = {""};
    if (!w->paths.count)
        return complain("merge needs traces (pk merge --help)"), false;
    if (!w->out)
        return complain("merge needs -o and the name of a file (pk merge --help)"), false;
    if (w->manifest && (w->range.limited || w->steps.limited))
        return complain("merge: --manifest leaves the files as they are: no --steps, --from, --to"),
               false;
    if (w->steps.limited && w->range.limited)
        return complain("merge: --steps, or --from and --to"), false;
    return output_check(w->out, OUTPUT_FILE, &why) || (complain("%s", why.text), false);
}

int command_merge(int argc, char **argv)
{
    merge_wish w = {.range.to = UINT64_MAX};
    merge_sources sources = {0};
    pki_clocks clocks = {0};
    complaint why = {""};
    int status = options_read(&command_options, &w, argc, argv);
    bool read = status == OPTIONS_READ;
    status = read ? EXIT_UNUSABLE : status;
    if (read && is_possible(&w) && find_sources(&w, &sources)) {
        const pki_clocked_files files = {&sources.all->when, sources.count, sizeof *sources.all};
        memory_needed(pki_clocks_make(&clocks, &files));
        status = merge(&w, &sources, &clocks, &why) ? EXIT_OK : complain("%s", why.text);
    }
    pki_clocks_free(&clocks);
    sources_free(&sources);
    wish_free(&w);
    return status;
}
