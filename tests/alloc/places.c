/* Allocations at all moments that a program has: before main and after it, in threads that end, in
 * a child that shares our memory, in signal handlers. The program is in C and knows nothing of
 * libpk; libpk_alloc is preloaded, and counts all of it. */
#include "sums.h"

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- before main, and after ---- */

static void *volatile before_all, *volatile before_main;

static void first_of_all(void)
{
    before_all = malloc(66);
    there_and_back(5);
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = first_of_all;

__attribute__((constructor)) static void in_a_constructor(void)
{
    before_main = calloc(7, 11);
}

static void blocks_of_before_main(void **state)
{
    (void)state;
    assert_non_null(before_all);
    assert_non_null(before_main);
    pki_alloc_sum before = now();
    free(before_all);
    assert_true(are(&before, 0, 0, 1, 66));
    free(before_main);
    assert_true(are(&before, 0, 0, 2, 66 + 77));
}

static void on_the_way_out(void)
{
    pki_alloc_sum before;
    if (!alloc)
        return;
    before = now();
    there_and_back(100);
    if (!are(&before, 1, 100, 1, 100))
        _exit(1);
}

__attribute__((destructor(101))) static void last_of_all(void)
{
    on_the_way_out();
}

/* ---- threads that end ---- */

#define ROUNDS 3

static pthread_key_t at_end;
static unsigned rounds;

/* Not all rounds are before libpk_alloc has left the thread. */
static void ends(void *block)
{
    free(block);
    there_and_back(30);
    if (++rounds < ROUNDS)
        pthread_setspecific(at_end, malloc(20));
}

static void *ending(void *arg)
{
    pthread_setspecific(at_end, malloc(20));
    return arg;
}

static void in_destructors_of_threads(void **state)
{
    pthread_t thread;
    (void)state;
    assert_int_equal(pthread_key_create(&at_end, ends), 0);
    there_and_back(1);
    pki_alloc_sum before = now(), after;
    assert_int_equal(pthread_create(&thread, NULL, ending, NULL), 0);
    pthread_join(thread, NULL);
    after = now();
    assert_int_equal(rounds, ROUNDS);
    /* what else a thread takes is the C library's */
    assert_true(after.frees - before.frees >= 2 * ROUNDS &&
                after.allocations - before.allocations >= 2 * ROUNDS);
    assert_true(after.freed - before.freed >= 50 * ROUNDS);
    pthread_key_delete(at_end);
}

/* ---- children ---- */

static int end_of(pid_t child)
{
    int status;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Until it becomes another program it is we who allocate. */
static void between_vfork_and_exec(void **state)
{
    static void *volatile kept;
    (void)state;
    pki_alloc_sum before = now();
    void *volatile block = malloc(10);
    pid_t child = vfork();
    if (child == 0) {
        free(block);
        kept = malloc(1000);
        there_and_back(100);
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(1);
    }
    assert_true(are(&before, 3, 1110, 2, 110));
    free(kept);
    assert_true(are(&before, 3, 1110, 3, 1110));
    assert_int_equal(end_of(child), 7);
}

static void programs_that_are_started(void **state)
{
    char *arguments[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c",
                         (char *)(uintptr_t) "exit 8", NULL};
    pid_t child;
    (void)state;
    pki_alloc_sum before = now();
    assert_int_equal(posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ), 0);
    assert_int_equal(end_of(child), 8);
    int status = system("exit 9");
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 9);
    char said[16] = "";
    FILE *pipe = popen("echo yes", "r");
    assert_non_null(pipe);
    assert_non_null(fgets(said, sizeof said, pipe));
    assert_string_equal(said, "yes\n");
    assert_int_equal(pclose(pipe), 0);
    pki_alloc_sum after = now();
    assert_int_equal(after.allocations - before.allocations, after.frees - before.frees);
    assert_int_equal(after.bytes - before.bytes, after.freed - before.freed);
}

/* ---- signal handlers ---- */

static void (**interrupted_by)(void);
static volatile sig_atomic_t handled, amid;

static void allocate_in_handler(int signal)
{
    (void)signal;
    handled++;
    there_and_back(40);
}

static void interrupt(void)
{
    if (amid)
        return;
    amid = 1;
    raise(SIGUSR1);
    amid = 0;
}

static void use_all(void)
{
    void *volatile block = malloc(100);
    block = realloc(block, 300);
    free(block);
    block = calloc(3, 100);
    (void)malloc_usable_size(block);
    free(block);
    block = memalign(256, 100);
    free(block);
    if (posix_memalign((void **)(uintptr_t)&block, 64, 100) == 0)
        free(block);
}

static void *interrupted_from_the_start(void *arg)
{
    use_all();
    return arg;
}

static void amid_the_allocator(void **state)
{
    struct sigaction handler = {.sa_handler = allocate_in_handler}, before_it;
    pthread_t thread;
    (void)state;
    if (!interrupted_by)
        skip();
    assert_int_equal(sigaction(SIGUSR1, &handler, &before_it), 0);
    pki_alloc_sum before = now();
    *interrupted_by = interrupt;
    use_all();
    *interrupted_by = NULL;
    uint64_t nested = (uint64_t)handled;
    assert_true(nested >= 10);
    assert_true(are(&before, 5 + nested, 900 + 40 * nested, 5 + nested, 900 + 40 * nested));
    handled = 0;
    *interrupted_by = interrupt;
    assert_int_equal(pthread_create(&thread, NULL, interrupted_from_the_start, NULL), 0);
    pthread_join(thread, NULL);
    *interrupted_by = NULL;
    assert_true(handled >= 10);
    sigaction(SIGUSR1, &before_it, NULL);
}

/* Wherever they strike, in libpk_alloc's own code, too. */
static void at_any_moment(void **state)
{
    struct sigaction handler = {.sa_handler = allocate_in_handler}, before_it;
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    (void)state;
    if (!interrupted_by)
        skip();
    assert_int_equal(sigaction(SIGALRM, &handler, &before_it), 0);
    handled = 0;
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (unsigned i = 0; handled < 100 && i < 100000; i++) /* nothing is ever given back */
        use_all();
    setitimer(ITIMER_REAL, &never, NULL);
    assert_true(handled > 0);
    sigaction(SIGALRM, &before_it, NULL);
}

int main(void)
{
    if (!find_alloc())
        return 77;
    void *found = dlsym(RTLD_DEFAULT, "interrupted_by");
    memcpy(&interrupted_by, &found, sizeof found);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_before_main),  cmocka_unit_test(in_destructors_of_threads),
        cmocka_unit_test(between_vfork_and_exec), cmocka_unit_test(programs_that_are_started),
        cmocka_unit_test(amid_the_allocator),     cmocka_unit_test(at_any_moment),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    atexit(on_the_way_out);
    return failed;
}
