/* Samples of a thread's stack: functions that are known call each other, with frame pointers and no
 * tables, and with tables and no frame pointers. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <errno.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "measure/stacks/stacks.h"

#include "stacks_work.h"

double pointers_outer(uint64_t rounds);
extern work_function *const pointers_places[3];

#define PERIOD 1000000u /* ns */
#define WORK_NS 200000000u

/* ---- samples ---- */

static bool open_sampler(pki_sampler *s)
{
    if (pki_sampler_open(s, (uint32_t)syscall(SYS_gettid), PERIOD, 64))
        return true;
    print_message("# perf_event_open: %s\n", strerror(errno));
    return false;
}

/* The offset in this program's file. */
static uint64_t offset_of(work_function *function)
{
    uint64_t at = (uint64_t)(uintptr_t)function, found = 0;
    char line[600];
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_non_null(maps);
    while (!found && fgets(line, sizeof line, maps)) {
        unsigned long long from, until, offset;
        if (sscanf(line, "%llx-%llx %*s %llx", &from, &until, &offset) == 3 && at >= from &&
            at < until)
            found = at - from + offset;
    }
    fclose(maps);
    assert_true(found);
    return found;
}

typedef struct seen {
    unsigned all, leaf, middle, outer; /* samples; in leaf; called by middle; that by outer */
    unsigned made, caller;             /* that by code of no file; that by who called it */
    unsigned known;                    /* of leaf, those whose function the tables tell */
} seen;

static uint64_t caller_begins; /* the offset of who calls the code of no file */
static uint64_t begins[3];     /* the offsets of the functions that work, innermost first */

/* In it, and in none of the others. */
static bool is_within(const pki_place *p, unsigned which)
{
    uint64_t next = begins[which] + 300;
    for (unsigned i = 0; i < 3; i++)
        next = begins[i] > begins[which] ? PKI_MIN(next, begins[i]) : next;
    return p->number && p->offset >= begins[which] && p->offset < next;
}

static void add(seen *to, const pki_stack_sample *s)
{
    bool leaf = s->count && !s->kernel && is_within(&s->places[0], 0);
    bool middle = leaf && s->count > 1 && is_within(&s->places[1], 1);
    to->all++;
    to->leaf += leaf;
    to->known += leaf && s->places[0].function == begins[0];
    to->middle += middle;
    bool outer = middle && s->count > 2 && is_within(&s->places[2], 2);
    bool made = outer && s->count > 3 && !s->places[3].number;
    to->outer += outer;
    to->made += made;
    to->caller +=
        made && s->count > 4 && s->places[4].number && s->places[4].offset - caller_begins < 300;
}

/* %; the rest is this loop's own. */
#ifdef __SANITIZE_THREAD__
#define LEAF_LEAST 35u
#else
#define LEAF_LEAST 70u
#endif

static void work_and_see(work_function *work, work_function *const places[3], seen *out)
{
    static pki_stack_sample one;
    pki_sampler s;
    *out = (seen){0};
    for (unsigned i = 0; i < 3; i++)
        begins[i] = offset_of(places[i]);
    if (!open_sampler(&s))
        skip();
    uint64_t until = pki_read_clock(CLOCK_THREAD_CPUTIME_ID) + WORK_NS;
    while (pki_read_clock(CLOCK_THREAD_CPUTIME_ID) < until) {
        work(2000000);
        while (pki_sampler_next(&s, &one))
            add(out, &one);
    }
    pki_sampler_close(&s);
    pki_code_forget();
    print_message("# %u samples, %u in leaf, %u from middle, %u from outer\n", out->all, out->leaf,
                  out->middle, out->outer);
    assert_true(out->all >= 50);
    assert_true(out->leaf * 100 >= out->all * LEAF_LEAST);
}

static void by_tables(void **state)
{
    seen s;
    (void)state;
    work_and_see(tables_outer, tables_places, &s);
    if (!PKI_FRAMES_MASK)
        skip();
    assert_int_equal(s.known, s.leaf);
    assert_true(s.middle * 100 >= s.leaf * 95);
    assert_true(s.outer * 100 >= s.leaf * 95);
}

/* Who has called a function that has not set up its own yet, and a leaf's, may be missing. */
static void by_frame_pointers(void **state)
{
    seen s;
    (void)state;
    work_and_see(pointers_outer, pointers_places, &s);
    assert_int_equal(s.known, 0);
    assert_true(s.middle * 100 >= s.leaf * 90);
    assert_true(s.outer * 100 >= s.leaf * 90);
}

/* ---- trampolines, as Python's perf support makes them: code of no file and without tables ---- */

#if defined __x86_64__
static const unsigned char trampolines[][16] = {
    /* sub $8, %rsp; call *%rcx; add $8, %rsp; ret */
    {0x48, 0x83, 0xec, 8, 0xff, 0xd1, 0x48, 0x83, 0xc4, 8, 0xc3},
    /* push %rbp; mov %rsp, %rbp; call *%rcx; pop %rbp; ret */
    {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd1, 0x5d, 0xc3}};

typedef double trampoline(uint64_t rounds, void *, void *, work_function *work);
static trampoline *through;

static __attribute__((noinline)) double by_trampoline(uint64_t rounds)
{
    return through(rounds, NULL, NULL, tables_outer) + 1;
}

static void by_trampolines(void **state)
{
    (void)state;
    for (size_t i = 0; i < PKI_COUNT_OF(trampolines); i++) {
        seen s;
        void *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(code != MAP_FAILED); /* NOLINT */
        memcpy(code, trampolines[i], sizeof trampolines[i]);
        assert_int_equal(mprotect(code, 4096, PROT_READ | PROT_EXEC), 0);
        memcpy(&through, &code, sizeof code);
        caller_begins = offset_of(by_trampoline);
        work_and_see(by_trampoline, tables_places, &s);
        print_message("# %u by the trampoline, %u by its caller\n", s.made, s.caller);
        assert_true(s.made * 100 >= s.leaf * 95);
        assert_true(s.caller * 100 >= s.leaf * 95);
        munmap(code, 4096);
    }
}
#else
static void by_trampolines(void **state)
{
    (void)state;
    skip(); /* theirs have a frame */
}
#endif

/* Of 200 ms there is a sample in each, as many as the thread has had of a processor. */
static void as_many_as_it_ran(void **state)
{
    static pki_stack_sample one;
    pki_sampler s;
    unsigned count = 0;
    (void)state;
    if (!open_sampler(&s))
        skip();
    uint64_t from = pki_read_clock(CLOCK_THREAD_CPUTIME_ID), last = 0;
    while (pki_read_clock(CLOCK_THREAD_CPUTIME_ID) < from + WORK_NS) {
        tables_outer(1000000);
        for (; pki_sampler_next(&s, &one); count++) {
            assert_true(one.at >= last);
            last = one.at;
        }
    }
    uint64_t took = pki_read_clock(CLOCK_THREAD_CPUTIME_ID) - from;
    count += (unsigned)pki_sampler_missing(&s);
    pki_sampler_close(&s);
    pki_code_forget();
    print_message("# %u samples in %llu us\n", count, (unsigned long long)(took / 1000));
    if (!s.lost)
        assert_true((uint64_t)count * PERIOD * 10 >= took * 8);
    assert_true((uint64_t)count * PERIOD <= took * 11 / 10 + 2 * PERIOD);
}

/* ---- of this thread, without samples: where a processor is simulated, too ---- */

#if defined __GLIBC__ && (defined __x86_64__ || defined __aarch64__)
#define HAS_REGISTERS 1
#else
#define HAS_REGISTERS 0
#endif

static void registers_of(const ucontext_t *c, pki_registers *r)
{
    r->known = (UINT64_C(1) << PKI_FRAMES_REGISTERS) - 1;
#if HAS_REGISTERS && defined __x86_64__
    static const int order[PKI_FRAMES_REGISTERS] = {
        REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
        REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP};
    for (unsigned i = 0; i < PKI_FRAMES_REGISTERS; i++)
        r->value[i] = (uint64_t)c->uc_mcontext.gregs[order[i]];
#elif HAS_REGISTERS
    for (unsigned i = 0; i < PKI_FRAMES_SP; i++)
        r->value[i] = c->uc_mcontext.regs[i];
    r->value[PKI_FRAMES_SP] = c->uc_mcontext.sp;
    r->value[PKI_FRAMES_PC] = c->uc_mcontext.pc;
#else
    (void)c;
#endif
}

static bool read_own(void *user, uint64_t at, void *to, size_t bytes)
{
    (void)user;
    memcpy(to, (const void *)(uintptr_t)at, bytes); /* NOLINT */
    return true;
}

/* The first one is the program itself. */
static int find_header(struct dl_phdr_info *of, size_t size, void *to)
{
    (void)size;
    for (unsigned i = 0; i < of->dlpi_phnum; i++)
        if (of->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
            *(uint64_t *)to = of->dlpi_addr + of->dlpi_phdr[i].p_vaddr;
    return 1;
}

static uint64_t starts[3]; /* of the functions that it was in, innermost first */

static __attribute__((noinline)) int own_leaf(int n)
{
    ucontext_t context;
    pki_registers r = {.known = 0};
    uint64_t header = 0;
    getcontext(&context);
    registers_of(&context, &r);
    dl_iterate_phdr(find_header, &header);
    for (int i = 0; header && i < 3; i++) {
        pki_frame_row row;
        if (!pki_frame_row_find(read_own, NULL, header, r.value[PKI_FRAMES_PC] - 1, &row))
            return n;
        starts[i] = row.start;
        if (!pki_frame_leave(&row, read_own, NULL, &r))
            return n;
    }
    return n + 1;
}

static __attribute__((noinline)) int own_middle(int n)
{
    volatile int more[40] = {n};
    return own_leaf(n + 1) + more[0];
}

static __attribute__((noinline)) int own_outer(int n)
{
    volatile int more[4] = {n};
    return own_middle(n + 1) + more[0];
}

static void of_this_thread(void **state)
{
    (void)state;
    if (!HAS_REGISTERS)
        skip();
    assert_int_equal(own_outer(0), 4);
    assert_int_equal(starts[0], (uintptr_t)own_leaf);
    assert_int_equal(starts[1], (uintptr_t)own_middle);
    assert_int_equal(starts[2], (uintptr_t)own_outer);
}

/* A row is found once for all places that it says it is the same in. */
static void rows_and_where_they_hold(void **state)
{
    (void)state;
    uint64_t header = 0, begin = (uintptr_t)own_leaf, at = begin, ranges = 0;
    pki_frame_row row, other;
    dl_iterate_phdr(find_header, &header);
    if (!header)
        skip();
    while (pki_frame_row_find(read_own, NULL, header, at, &row) && row.start == begin) {
        assert_int_equal(row.from, at);
        assert_true(row.until > at);
        for (; at < row.until; at++) {
            assert_true(pki_frame_row_find(read_own, NULL, header, at, &other));
            assert_memory_equal(&other, &row, sizeof row);
        }
        ranges++;
    }
    assert_true(ranges >= 3); /* before the frame is there, with it, and after */
}

/* ---- tables that are damaged, or not there ---- */

static bool read_nothing(void *user, uint64_t at, void *to, size_t bytes)
{
    (void)user, (void)at, (void)to, (void)bytes;
    return false;
}

static void nothing_to_read(void **state)
{
    pki_frame_row row;
    pki_registers r = {.known = (UINT64_C(1) << PKI_FRAMES_REGISTERS) - 1};
    (void)state;
    assert_false(pki_frame_row_find(read_nothing, NULL, 4096, 8192, &row));
    assert_false(pki_frame_leave(NULL, read_nothing, NULL, &r));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_tables),       cmocka_unit_test(by_frame_pointers),
        cmocka_unit_test(by_trampolines),  cmocka_unit_test(as_many_as_it_ran),
        cmocka_unit_test(of_this_thread),  cmocka_unit_test(rows_and_where_they_hold),
        cmocka_unit_test(nothing_to_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
