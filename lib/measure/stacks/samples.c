#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/memory.h"
#include "measure/stacks/stacks.h"

/* ---- memory that may be gone by now ---- */

static bool read_memory(void *nothing, uint64_t at, void *to, size_t size)
{
    struct iovec from = {(void *)(uintptr_t)at, size}, into = {to, size}; /* NOLINT */
    (void)nothing;
    return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == (ssize_t)size;
}

/* ---- tables of the process's files, and rows that were looked for in them, by place ---- */

/* To look for a row takes twenty reads, each a call of the kernel, which costs more than the page
 * that it brings. Most of them are where others have been; and a loop comes back to the same
 * places, or to others of the same row, as most of a function has. All of it holds for as long as
 * the files are those that were seen. */

#define LINES 64u
#define LINE 4096u

#define ROWS 2048u /* a power of two */
#define RANGES 64u

typedef struct known_row {
    uint64_t pc; /* 0: none */
    bool there;  /* else there is none for it */
    pki_frame_row row;
} known_row;

static struct {
    bool any;
    known_row all[ROWS];
    unsigned next;
    pki_frame_row ranges[RANGES]; /* the last ones that were found */
} rows;

static struct {
    uint64_t number[LINES]; /* its address / LINE; 0: none */
    unsigned char bytes[LINES][LINE];
} lines;

static bool read_table(void *nothing, uint64_t at, void *to, size_t size)
{
    unsigned char *next = to;
    for (uint64_t rest = size, here = at, n; rest; rest -= n, here += n, next += n) {
        uint64_t line = here / LINE, i = (line ^ line >> 7) % LINES, begin = here % LINE;
        n = PKI_MIN(rest, LINE - begin);
        bool there = lines.number[i] == line;
        lines.number[i] = 0;
        if (!there && !read_memory(NULL, line * LINE, lines.bytes[i], LINE))
            return read_memory(nothing, at, to, size); /* its end may be no memory at all */
        lines.number[i] = line;
        memcpy(next, lines.bytes[i] + begin, n);
    }
    return true;
}

static void forget_rows(void)
{
    if (rows.any)
        memset(&rows, 0, sizeof rows);
    memset(lines.number, 0, sizeof lines.number);
}

/* ---- which files' code there is ---- */

#define FILES_MOST 1024u /* of a program in Python some hundred */
#define HEAD 1024u       /* of a file's image: its header, its list of parts, its notes as a rule */
#define PARTS_MOST 24u
#define BUILD_MOST 20u
#define NOTES_MOST 1024u
#define AGAIN_NS UINT64_C(1000000000)
#define LATEST_NS (16 * AGAIN_NS)

static struct {
    unsigned count;
    uint32_t numbers;
    bool known;
    bool changed;                                 /* since the look before */
    uint64_t looked, checked, patience;           /* ns */
    pki_code all[FILES_MOST], before[FILES_MOST]; /* by address; read as far as they were written */
} x;

/* ---- one file's image ---- */

/* The note of that type and name (elf(5)). */
static bool read_note(const char *at, size_t size, char *out)
{
    for (size_t i = 0; i + sizeof(ElfW(Nhdr)) + 4 <= size;) {
        ElfW(Nhdr) n;
        memcpy(&n, at + i, sizeof n);
        size_t name = i + sizeof n, text = name + (n.n_namesz + 3u) / 4 * 4;
        if (n.n_namesz > size || n.n_descsz > size || text + n.n_descsz > size)
            return false;
        if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && !memcmp(at + name, "GNU", 4)) {
            for (size_t k = 0; k < PKI_MIN(n.n_descsz, BUILD_MOST); k++)
                snprintf(out + 2 * k, 3, "%02x", (unsigned char)at[text + k]);
            return true;
        }
        i = text + (n.n_descsz + 3u) / 4 * 4;
    }
    return false;
}

static void read_part(pki_code *c, const ElfW(Phdr) * p, uint64_t bias)
{
    char notes[NOTES_MOST];
    if (p->p_type == PT_GNU_EH_FRAME)
        c->header = bias + p->p_vaddr;
    else if (p->p_type == PT_NOTE && !c->build[0] && p->p_memsz && p->p_memsz <= sizeof notes &&
             read_memory(NULL, bias + p->p_vaddr, notes, p->p_memsz))
        read_note(notes, p->p_memsz, c->build);
}

static uint64_t hash_of(const char *bytes, size_t n)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)bytes[i]) * UINT64_C(1099511628211);
    return h;
}

/* What an image says of itself, and what tells it from another that came in its place. */
static void look_into(pki_code *c)
{
    char head[HEAD];
    ElfW(Ehdr) e;
    ElfW(Phdr) parts[PARTS_MOST];
    uint64_t bias = c->start;
    c->looked = true;
    if (!c->start || !read_memory(NULL, c->start, head, sizeof head))
        return;
    memcpy(&e, head, sizeof e);
    c->seen = hash_of(head, sizeof head);
    if (memcmp(e.e_ident, ELFMAG, SELFMAG) != 0 || e.e_phentsize != sizeof parts[0] ||
        e.e_phoff > INT_MAX)
        return;
    unsigned n = PKI_MIN(e.e_phnum, PARTS_MOST);
    if (!n || !read_memory(NULL, c->start + e.e_phoff, parts, n * sizeof parts[0]))
        return;
    for (unsigned i = n; i-- > 0;)
        if (parts[i].p_type == PT_LOAD)
            bias = c->start - (parts[i].p_vaddr - parts[i].p_offset);
    for (unsigned i = 0; i < n; i++)
        read_part(c, &parts[i], bias);
}

/* Cheaper than to read all of the list again. */
static bool is_there(const pki_code *c)
{
    char head[HEAD];
    return !c->looked || !c->seen ||
           (read_memory(NULL, c->start, head, sizeof head) &&
            hash_of(head, sizeof head) == c->seen);
}

/* ---- the list ---- */

typedef struct image {
    uint64_t start; /* of the last file that began */
    char path[PKI_CODE_PATH];
} image;

static const pki_code *known_before(const pki_code *c, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (x.before[i].from == c->from && x.before[i].until == c->until &&
            x.before[i].offset == c->offset && strcmp(x.before[i].path, c->path) == 0)
            return &x.before[i];
    return NULL;
}

/* It is of code, or of where a file begins. */
static bool matters(const char *line)
{
    const char *may = strchr(line, ' ');
    return may && strlen(may) > 5 && (may[3] == 'x' || strncmp(may + 5, " 00000000 ", 10) == 0);
}

/* One line. Of a file's image the first part has its header, another one its code; what is of no
 * file the process has made itself, which has no number. proc_pid_maps(5) */
static void add_line(const char *line, image *of, unsigned known)
{
    unsigned long long from, until, offset;
    int path = 0;
    char may[8];
    pki_code c = {.looked = false};
    if (!matters(line))
        return;
    if (sscanf(line, "%llx-%llx %7s %llx %*s %*s %n", &from, &until, may, &offset, &path) != 4 ||
        !path)
        return;
    size_t n = strlen(line + path), cut = n >= sizeof c.path ? n - sizeof c.path + 1 : 0;
    memcpy(c.path, line + path + cut, n - cut);
    if (offset == 0 && n) {
        of->start = from;
        memcpy(of->path, c.path, sizeof c.path);
    }
    if (may[2] != 'x' || x.count == FILES_MOST || (n && c.path[0] != '/' && c.path[0] != '['))
        return;
    c.from = from;
    c.until = until;
    c.offset = offset;
    c.start = n && strcmp(of->path, c.path) == 0 ? of->start : 0;
    const pki_code *before = known_before(&c, known);
    bool same = before && is_there(before);
    x.changed |= !same;
    if (same)
        c = *before;
    else if (n)
        c.number = ++x.numbers;
    x.all[x.count++] = c;
}

/* Line by line, without stdio, whose locks a fork of the program would find held. */
static void read_list(unsigned known)
{
    char text[PATH_MAX + 512];
    image of = {0};
    size_t held = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(fd, text + held, sizeof text - 1 - held)) > 0;) {
        char *line = text, *end;
        held += (size_t)n;
        text[held] = 0;
        for (; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            add_line(line, &of, known);
        }
        held -= (size_t)(line - text);
        held = held < sizeof text - 1 ? held : 0; /* a line that no file name makes */
        memmove(text, line, held);
    }
    if (fd >= 0)
        close(fd);
}

static int by_address(const void *a, const void *b)
{
    const pki_code *c = a, *d = b;
    return (c->from > d->from) - (c->from < d->from);
}

static void look(void)
{
    unsigned known = x.count;
    memcpy(x.before, x.all, known * sizeof x.all[0]);
    x.count = 0;
    x.changed = false;
    read_list(known);
    if (x.count)
        qsort(x.all, x.count, sizeof x.all[0], by_address);
    x.known = true;
    x.looked = pki_monotonic_ns();
    x.changed |= x.count != known;
    x.patience = x.changed ? AGAIN_NS : PKI_MIN(4 * x.patience, LATEST_NS);
    if (x.changed)
        forget_rows();
}

static pki_code *find(uint64_t address)
{
    unsigned low = 0, high = x.count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (x.all[middle].until <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < x.count && x.all[low].from <= address ? &x.all[low] : NULL;
}

/* surely: it is code. What lies where a caller's address should may be none, and then looks that
 * find no change become rare: of LAMMPS, which has 200 files, each takes 2 ms. */
static pki_code *code_at(uint64_t address, bool surely)
{
    if (!x.known)
        look();
    pki_code *c = find(address);
    if (!c && pki_monotonic_ns() - x.looked > (surely ? AGAIN_NS : x.patience)) {
        look();
        c = find(address);
    }
    if (c && !c->looked)
        look_into(c);
    return c;
}

const pki_code *pki_code_of(uint32_t number)
{
    for (unsigned i = 0; i < x.count; i++)
        if (x.all[i].number == number)
            return &x.all[i];
    return NULL;
}

void pki_code_round(void)
{
    uint64_t now = pki_monotonic_ns();
    bool same = true;
    if (now - x.checked < AGAIN_NS)
        return;
    x.checked = now;
    for (unsigned i = 0; i < x.count && same; i++)
        same = is_there(&x.all[i]);
    if (!same)
        look();
}

void pki_code_forget(void)
{
    if (x.known)
        memset(&x, 0, offsetof(__typeof__(x), all));
    forget_rows();
}

/* ---- where the caller of a place is ---- */

static bool find_row(const pki_code *c, uint64_t pc, pki_frame_row *row)
{
    for (unsigned i = 0; i < RANGES; i++)
        if (pc >= rows.ranges[i].from && pc < rows.ranges[i].until)
            return *row = rows.ranges[i], true;
    if (!c->header || !pki_frame_row_find(read_table, NULL, c->header, pc, row))
        return false;
    rows.ranges[rows.next++ % RANGES] = *row;
    return true;
}

/* A few dozen samples use all pages of both. */
static void bring_in(void)
{
    rows.any = true;
    pki_mem_populate(&rows, sizeof rows);
    pki_mem_populate(&lines, sizeof lines);
}

static const pki_frame_row *row_of(const pki_code *c, uint64_t pc)
{
    known_row *k = &rows.all[(pc ^ pc >> 11 ^ pc >> 22) % ROWS];
    if (!rows.any)
        bring_in();
    if (k->pc != pc) {
        k->pc = pc;
        k->there = find_row(c, pc, &k->row);
    }
    return k->there ? &k->row : NULL;
}

/* ---- a record of the kernel's ---- */

#define RECORD_MOST (PKI_STACK_BYTES + 4096u)
#define CHAIN_MOST 127u
#define USER_ABI_64 2u

typedef struct raw {
    uint64_t ip, time, chain_count, stack_bytes;
    uint64_t chain[CHAIN_MOST];
    bool has_registers;
    pki_registers registers;
    const char *stack;
} raw;

typedef struct words {
    const char *at, *end;
    bool bad;
} words;

static uint64_t next_word(words *w)
{
    uint64_t value = 0;
    if ((size_t)(w->end - w->at) < sizeof value) {
        w->bad = true;
        return 0;
    }
    memcpy(&value, w->at, sizeof value);
    w->at += sizeof value;
    return value;
}

static void read_chain(words *w, raw *r)
{
    uint64_t count = next_word(w);
    for (uint64_t i = 0; i < count && !w->bad; i++) {
        uint64_t ip = next_word(w);
        bool mark = ip >= (uint64_t)PERF_CONTEXT_MAX; /* what follows is the kernel's, or not */
        if (!mark && r->chain_count < CHAIN_MOST)
            r->chain[r->chain_count++] = ip;
    }
}

static void read_registers(words *w, raw *r)
{
    uint64_t abi = next_word(w);
    for (unsigned i = 0; abi && i < PKI_FRAMES_REGISTERS; i++)
        r->registers.value[pki_frames_numbers[i]] = next_word(w);
    r->has_registers = abi == USER_ABI_64;
    r->registers.known = (UINT64_C(1) << PKI_FRAMES_REGISTERS) - 1;
}

static void read_stack(words *w, raw *r)
{
    uint64_t size = next_word(w), copied;
    if (!size)
        return;
    if (size > (size_t)(w->end - w->at))
        return;
    r->stack = w->at;
    w->at += size;
    copied = next_word(w);
    r->stack_bytes = PKI_MIN(copied, size);
}

/* In the order of perf_event_open(2), "PERF_RECORD_SAMPLE". */
static bool read_raw(const char *record, size_t size, raw *r)
{
    words w = {record + sizeof(struct perf_event_header), record + size, false};
    memset(r, 0, sizeof *r);
    r->ip = next_word(&w);
    r->time = next_word(&w);
    read_chain(&w, r);
    if (PKI_FRAMES_MASK) {
        read_registers(&w, r);
        read_stack(&w, r);
    }
    return !w.bad;
}

/* ---- unwound ---- */

/* Of the stack as it was then; nothing else stands still. */
static bool read_copy(void *user, uint64_t at, void *to, size_t size)
{
    const raw *r = user;
    uint64_t from = r->registers.value[PKI_FRAMES_SP];
    if (at < from || at - from > r->stack_bytes || size > r->stack_bytes - (at - from))
        return false;
    memcpy(to, r->stack + (at - from), size);
    return true;
}

/* address: within the call, of a caller. False: it is in no code. */
static bool add_place(pki_stack_sample *out, uint64_t address, const pki_frame_row *row,
                      const pki_code *c)
{
    pki_place *p = &out->places[out->count++];
    *p = (pki_place){.offset = address};
    if (!c || !c->number)
        return c != NULL;
    p->number = c->number;
    p->offset = address - c->from + c->offset;
    p->function = row ? row->start - c->from + c->offset : 0;
    return true;
}

static void unwind(raw *r, pki_stack_sample *out)
{
    /* Where it is lies in the copy's registers, which change on the way; the copy stays. */
    raw copy = {.stack = r->stack, .stack_bytes = r->stack_bytes, .registers = r->registers};
    pki_registers now = r->registers;
    bool behind_call = false;
    while (out->count < PKI_STACK_MOST) {
        uint64_t pc = now.value[PKI_FRAMES_PC] - behind_call;
        const pki_code *c = code_at(pc, !behind_call);
        const pki_frame_row *row = c ? row_of(c, pc) : NULL;
        if (!c && behind_call)
            return;
        add_place(out, pc, row, c);
        bool made = c && !c->number && behind_call;
        if (made ? !pki_frame_leave_made(read_memory, read_copy, &copy, &now)
                 : !pki_frame_leave(row, read_copy, &copy, &now))
            return;
        behind_call = !(row && row->of_signal);
    }
}

/* By frame pointers, where the copy ended or there is none: from the caller of the last place on
 * that both have. */
static void append_chain(const raw *r, pki_stack_sample *out)
{
    uint64_t first = 0;
    if (out->count) {
        const pki_place *last = &out->places[out->count - 1];
        for (uint64_t i = 1; i < r->chain_count && !first; i++) {
            const pki_code *c = code_at(r->chain[i] - 1, false);
            if (c && c->number == last->number &&
                r->chain[i] - 1 - c->from + c->offset == last->offset)
                first = i + 1;
        }
        if (!first)
            return;
    }
    for (uint64_t i = first; i < r->chain_count && out->count < PKI_STACK_MOST; i++) {
        uint64_t pc = r->chain[i] - (i > 0);
        const pki_code *c = code_at(pc, i == 0);
        if ((!c && i > 0) || !add_place(out, pc, c ? row_of(c, pc) : NULL, c))
            return;
    }
}

/* ---- the ring ---- */

static bool open_ring(pki_sampler *s, bool of_kernel, size_t pages)
{
    struct perf_event_attr a = {.size = sizeof a,
                                .type = PERF_TYPE_SOFTWARE,
                                .config = PERF_COUNT_SW_TASK_CLOCK,
                                .sample_period = s->period,
                                .sample_type =
                                    PERF_SAMPLE_IP | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
                                .use_clockid = 1,
                                .clockid = CLOCK_MONOTONIC,
                                .exclude_kernel = !of_kernel,
                                .exclude_callchain_kernel = 1,
                                .exclude_hv = 1};
    if (PKI_FRAMES_MASK) {
        a.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        a.sample_regs_user = PKI_FRAMES_MASK;
        a.sample_stack_user = PKI_STACK_BYTES;
    }
    return pki_kernel_ring_open(&s->ring, &a, s->tid, pages);
}

static uint64_t running_of(uint32_t tid)
{
    pki_thread_cpu cpu;
    return pki_thread_cpu_read("", tid, false, &cpu) ? cpu.running : 0;
}

bool pki_sampler_open(pki_sampler *s, uint32_t tid, uint64_t period, size_t pages)
{
    *s = (pki_sampler){.tid = tid, .period = period};
    s->of_kernel = open_ring(s, true, pages);
    if (!s->of_kernel && !open_ring(s, false, pages))
        return false;
    s->running = running_of(tid);
    return true;
}

void pki_sampler_close(pki_sampler *s)
{
    pki_kernel_ring_close(&s->ring);
}

bool pki_sampler_next(pki_sampler *s, pki_stack_sample *out)
{
    static char record[RECORD_MOST]; /* by one thread at a time */
    static raw r;
    struct perf_event_header header;
    for (size_t n;
         s->ring.page && (n = pki_kernel_ring_take(&s->ring, record, sizeof record)) > 0;) {
        memcpy(&header, record, sizeof header);
        bool sample = header.type == PERF_RECORD_SAMPLE;
        s->lost |= !sample;
        if (!sample || !read_raw(record, n, &r))
            continue;
        s->sampled++;
        out->at = r.time;
        out->count = 0;
        out->kernel = (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
        if (r.has_registers)
            unwind(&r, out);
        append_chain(&r, out);
        if (!out->count && !out->kernel)
            add_place(out, r.ip, NULL, code_at(r.ip, true));
        return true;
    }
    return false;
}

uint64_t pki_sampler_missing(pki_sampler *s)
{
    if (s->of_kernel || s->lost || !s->ring.page)
        return 0;
    uint64_t ran = pki_saturating_sub(running_of(s->tid), s->running) / s->period;
    uint64_t missing = ran > s->sampled + 1 ? ran - s->sampled - 1 : 0;
    s->sampled += missing;
    return missing;
}
