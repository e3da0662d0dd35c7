/* The arena: spans handed out to many threads, a bound that holds, and names that a stranger can
 * read. */
#include "core/arena.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "out/salvage.h"

#define MIB ((size_t)1 << 20)

static pki_arena *arena;

static int open_arena(void **state)
{
    (void)state;
    pki_owned file;
    arena = pki_mem_file(&file, "test") ? pki_arena_create(&file, 16 * MIB) : NULL;
    return arena ? 0 : -1;
}

static int close_arena(void **state)
{
    (void)state;
    pki_arena_destroy(arena);
    return 0;
}

static void describes_itself(void **state)
{
    const pki_arena_header *h = arena->header;
    (void)state;
    assert_string_equal(h->magic, "PKARENA");
    assert_int_equal(h->version, PKI_ARENA_VERSION);
    assert_int_equal(h->layout, pki_arena_layout());
    assert_int_equal(h->bytes, 16 * MIB);
    assert_int_equal(h->base, (uintptr_t)h);
    assert_in_range(h->used, sizeof *h, sizeof *h + PKI_PAGE);
    assert_true(h->running == 0 && h->block_count == 0 && h->names == 0 && h->output == 0);
    assert_ptr_equal(pki_arena_at(arena, pki_arena_offset(arena, &h->clock)), &h->clock);
    pki_arena_destroy(NULL);
}

static void spans_are_fresh(void **state)
{
    static const size_t sizes[] = {1, PKI_PAGE - 1, PKI_PAGE, PKI_PAGE + 1, 100000};
    char *end = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *span = pki_arena_claim(arena, sizes[i]);
        assert_non_null(span);
        assert_int_equal(pki_arena_offset(arena, span) % PKI_PAGE, 0);
        assert_true(!end || span >= end);
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(span[k], 0);
        memset(span, 0xFF, sizes[i]);
        end = span + sizes[i];
    }
}

static void the_bound_holds(void **state)
{
    size_t count = 0;
    (void)state;
    assert_null(pki_arena_claim(arena, 16 * MIB));
    assert_null(pki_arena_claim(arena, SIZE_MAX - 2 * PKI_PAGE));
    while (pki_arena_claim(arena, 65536))
        count++;
    assert_in_range(count, 200, 256);
    while (pki_arena_claim(arena, 1))
        ;
    assert_int_equal(arena->header->used, arena->header->bytes);
    assert_null(pki_arena_claim(arena, 1));
}

/* A disk that is full now may have room later. */
static void room_that_could_not_be_had_is_given_back(void **state)
{
    int fd = arena->spans.file.fd;
    uint64_t used = arena->header->used;
    (void)state;
    arena->spans.file.fd = -1;
    for (int i = 0; i < 1000; i++)
        assert_null(pki_arena_claim(arena, MIB));
    arena->spans.file.fd = fd;
    assert_int_equal(arena->header->used, used);
    assert_non_null(pki_arena_claim(arena, MIB));
}

#define THREADS 4

static void *claim_all(void *mine)
{
    unsigned char *span;
    size_t count = 0;
    while ((span = pki_arena_claim(arena, PKI_PAGE)) != NULL) {
        if (span[0] || span[PKI_PAGE - 1])
            return NULL; /* somebody else's */
        memset(span, *(const int *)mine, PKI_PAGE);
        count++;
    }
    return (void *)(count + 1);
}

static void threads_get_different_spans(void **state)
{
    pthread_t threads[THREADS];
    int marks[THREADS];
    size_t total = 0, seen[THREADS + 1] = {0};
    uint64_t first = arena->header->used;
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        marks[i] = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, claim_all, &marks[i]), 0);
    }
    void *counts[THREADS];
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &counts[i]);
        assert_non_null(counts[i]);
        total += (size_t)counts[i] - 1;
    }
    assert_int_equal(total, (arena->header->bytes - first) / PKI_PAGE);
    for (uint64_t at = first; at < arena->header->bytes; at += PKI_PAGE)
        seen[*(unsigned char *)pki_arena_at(arena, at)]++;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(seen[i + 1], (size_t)counts[i] - 1);
}

/* As `pk recover` reads them: by offsets, up to `used`. */
static size_t find_name(uint32_t id, pki_names_entry *found, char *text)
{
    size_t count = 0;
    for (uint64_t at = arena->header->names; at;) {
        const pki_names_span *span = pki_arena_at(arena, at);
        for (uint64_t k = 0; k < span->used;) {
            const pki_names_entry *e = (const pki_names_entry *)((const char *)(span + 1) + k);
            assert_true(e->bytes >= sizeof *e + e->length + e->key_length && e->bytes % 8 == 0);
            if (e->id == id) {
                *found = *e;
                memcpy(text, e->text, (size_t)e->length + e->key_length);
                count++;
            }
            k += e->bytes;
        }
        at = span->next;
    }
    return count;
}

static void names_are_mirrored_once(void **state)
{
    char text[600];
    pki_names_entry e;
    (void)state;
    pk_region *plain = pk_region_named_of(PK_DATA, "mirrored"),
              *variant = pk_region_variant(plain, "seq", -5);
    uint32_t counter = pki_counter_id(pk_counter_named("mirrored", "bytes"));
    for (int i = 0; i < 3; i++) {
        assert_true(pki_arena_mirror_name(arena, plain->id));
        assert_true(pki_arena_mirror_name(arena, variant->id));
        assert_true(pki_arena_mirror_name(arena, counter));
    }
    assert_int_equal(find_name(plain->id, &e, text), 1);
    assert_true(e.kind == PK_DATA && e.length == 8 && e.key_length == 0);
    assert_memory_equal(text, "mirrored", 8);
    assert_int_equal(find_name(variant->id, &e, text), 1);
    assert_true(e.kind == PK_DATA && e.value == -5 && e.key_length == 3);
    assert_memory_equal(text, "mirrored[seq=-5]seq", 19);
    assert_int_equal(find_name(counter, &e, text), 1);
    assert_true(e.kind == PKI_KIND_COUNTER && e.key_length == 5);
    assert_memory_equal(text, "mirroredbytes", 13);
}

static void names_fill_several_spans(void **state)
{
    char name[300], text[600];
    pki_names_entry e;
    uint32_t ids[500];
    (void)state;
    memset(name, 'n', sizeof name);
    for (int i = 0; i < 500; i++) {
        snprintf(name + 240, 20, "-%d", i);
        ids[i] = pk_region_named(name)->id;
        assert_true(pki_arena_mirror_name(arena, ids[i]));
    }
    for (int i = 0; i < 500; i++) {
        snprintf(name + 240, 20, "-%d", i);
        assert_int_equal(find_name(ids[i], &e, text), 1);
        assert_int_equal(e.length, strlen(name));
        assert_memory_equal(text, name, e.length);
    }
    while (pki_arena_claim(arena, 1))
        ;
    for (int i = 0; i < 500; i++) { /* no room: said so, and the list stays whole */
        snprintf(name + 240, 20, "+%d", i);
        uint32_t id = pk_region_named(name)->id;
        bool said = pki_arena_mirror_name(arena, id);
        assert_int_equal(find_name(id, &e, text), said ? 1 : 0);
    }
}

static void cannot_be_created(void **state)
{
    (void)state;
    errno = 0;
    pki_owned file = {.fd = -1};
    assert_null(pki_arena_create(&file, 16 * MIB));
    assert_int_equal(errno, EBADF);
    assert_true(pki_mem_file(&file, "test"));
    assert_null(pki_arena_create(&file, SIZE_MAX / 4));
    assert_true(pki_own_check(&file)); /* still the caller's */
    pki_own_close(&file);
}

/* ulimit -f: growing a file beyond it would be the end of the program. */
static void file_size_limit_does_not_kill(void **state)
{
    int status = 0;
    (void)state;
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {8 * MIB, 8 * MIB};
        setrlimit(RLIMIT_FSIZE, &limit);
        pki_owned file;
        pki_mem_file(&file, "test");
        bool refused = !pki_arena_create(&file, 16 * MIB) && errno == EFBIG;
        arena = pki_arena_create(&file, 8 * MIB);
        _exit(refused && arena ? 7 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFSIGNALED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static bool says_unfinished(void)
{
    char path[64];
    pki_salvage s;
    snprintf(path, sizeof path, "/proc/self/fd/%d", arena->spans.file.fd);
    if (pki_salvage_open(&s, path)) {
        pki_salvage_close(&s);
        return false;
    }
    return strcmp(s.why, PKI_SALVAGE_UNFINISHED) == 0;
}

/* As a process that dies in pk_start leaves it, from one line to the next. */
static void not_filled_in_yet(void **state)
{
    pki_arena_header *h = arena->header;
    uint32_t layout = h->layout, version = h->version;
    (void)state;
    h->layout = h->version = 0;
    assert_true(says_unfinished());
    h->version = version;
    assert_true(says_unfinished());
    h->layout = layout;
    assert_true(says_unfinished());
    strcpy(h->trace_name, "run.json");
    pki_clock_map_init(&h->clock, 0, (pki_clock_sample){1, 1, 0}, (pki_clock_sample){2, 2, 0});
    assert_true(says_unfinished());
    h->commit[0].file_bytes = 100; /* the trace's head is there */
    assert_false(says_unfinished());
    h->commit[0].file_bytes = 0;
    h->trace_name[0] = '\0'; /* there is none */
    assert_false(says_unfinished());
}

static void hints_and_questions(void **state)
{
    char name[] = "/tmp/pk-mem-XXXXXX";
    int fd = mkstemp(name);
    (void)state;
    assert_false(pki_mem_is_remote(fd));
    assert_false(pki_mem_is_remote(-1));
    close(fd);
    remove(name);
    errno = 42;
    pki_mem_populate(arena->header, 3 * PKI_PAGE + 1);
    pki_mem_populate((char *)arena->header + 17, 1);
    assert_int_equal(errno, 42);
    pki_mem_unmap(NULL, 4096);
}

/* ---- a kernel that does not know MADV_POPULATE_WRITE ---- */

static bool is_old;

int madvise(void *at, size_t bytes, int advice)
{
    if (!is_old)
        return (int)syscall(SYS_madvise, at, bytes, advice);
    errno = EINVAL;
    return -1;
}

enum { PAGES = 10 };

static char *pages;
static volatile sig_atomic_t writes;

static void on_write(int signal, siginfo_t *info, void *context)
{
    size_t page = (size_t)((char *)info->si_addr - pages) / PKI_PAGE;
    (void)context;
    if (page >= PAGES)
        _exit(128 + signal);
    writes++;
    mprotect(pages + page * PKI_PAGE, PKI_PAGE, PROT_READ | PROT_WRITE);
}

/* Of a page that has only been read the first write would still wait for the kernel. */
static void pages_are_written_to(void **state)
{
    struct sigaction action = {.sa_sigaction = on_write, .sa_flags = SA_SIGINFO}, before;
    (void)state;
    pages = mmap(NULL, PAGES * PKI_PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    sigemptyset(&action.sa_mask);
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    is_old = true;
    pki_mem_populate(pages, PAGES * PKI_PAGE);
    is_old = false;
    sigaction(SIGSEGV, &before, NULL);
    assert_int_equal(writes, PAGES);
    munmap(pages, PAGES * PKI_PAGE);
}

/* Its neighbours keep what they have, and whole pages are given back: that is what it is for. */
static void memory_is_cleared(void **state)
{
    const size_t edge = 100, all = (size_t)PAGES * PKI_PAGE;
    unsigned char resident[PAGES];
    (void)state;
    char *at = mmap(NULL, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(at != MAP_FAILED);
    for (int locked = 0; locked < 2; locked++) {
        memset(at, 7, all);
        /* Such pages are written to. Sanitizers replace mlock by nothing. */
        bool kept = locked && syscall(SYS_mlock, at, all) == 0;
        pki_mem_clear(at + edge, all - 2 * edge);
        assert_int_equal(mincore(at, all, resident), 0);
        for (int i = 1; i < PAGES - 1 && sysconf(_SC_PAGESIZE) == PKI_PAGE; i++)
            assert_int_equal(resident[i] & 1, kept);
        for (size_t i = 0; i < all; i++)
            assert_int_equal(at[i], i < edge || i >= all - edge ? 7 : 0);
    }
    munmap(at, all);
}

#define on_arena(test) cmocka_unit_test_setup_teardown(test, open_arena, close_arena)

int main(void)
{
    const struct CMUnitTest tests[] = {
        on_arena(describes_itself),
        on_arena(spans_are_fresh),
        on_arena(the_bound_holds),
        on_arena(room_that_could_not_be_had_is_given_back),
        on_arena(threads_get_different_spans),
        on_arena(names_are_mirrored_once),
        on_arena(names_fill_several_spans),
        cmocka_unit_test(cannot_be_created),
        cmocka_unit_test(file_size_limit_does_not_kill),
        on_arena(not_filled_in_yet),
        on_arena(hints_and_questions),
        cmocka_unit_test(pages_are_written_to),
        cmocka_unit_test(memory_is_cleared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
