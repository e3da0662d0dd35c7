/* Windows that come fast, of a program that is killed: those of all but the last second are in the
 * file; and the next run with the same path keeps them. */
#include "folder.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <pk/pk.h>

#include "base/atomic.h"
#include "base/clock.h"

#define PATH "w.jsonl"
#define OF_A_WINDOW 1000u
#define REGIONS 40
#define STEP_NS 30000u
#define SECOND 1000000000u

/* What the child has done, seen by its parent. */
static uint64_t *steps_made;

static pk_region regions[REGIONS];

static void make_step(unsigned i)
{
    uint64_t until = pki_monotonic_ns() + STEP_NS;
    for (unsigned k = 0; k < 3; k++)
        PK_SCOPE(regions[(i + k) % REGIONS]) {
        }
    while (pki_monotonic_ns() < until)
        ;
    pk_step(1);
}

static void name_regions(void)
{
    static char names[REGIONS][16];
    for (unsigned i = 0; i < REGIONS; i++) {
        snprintf(names[i], sizeof names[i], "region %u", i);
        regions[i] = (pk_region)PK_REGION(names[i]);
    }
}

static void run_for_ever(void)
{
    name_regions();
    if (pk_start(pk_options(.windows_path = PATH, .window_steps = OF_A_WINDOW, .backends = "none")))
        _exit(1);
    for (unsigned i = 0;; i++) {
        make_step(i);
        pki_store_release(steps_made, pki_load(steps_made) + 1);
    }
}

static unsigned lines_of(const char *path)
{
    size_t n;
    unsigned count = 0;
    char *text = read_file(path, &n);
    for (size_t i = 0; i < n; i++)
        count += text[i] == '\n';
    free(text);
    return count;
}

static void all_but_the_last_second(void **state)
{
    (void)state;
    steps_made =
        mmap(NULL, sizeof *steps_made, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(steps_made != MAP_FAILED);
    pid_t child = fork();
    if (child == 0)
        run_for_ever();
    while (pki_load_acquire(steps_made) < 30 * OF_A_WINDOW)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    uint64_t then = pki_load_acquire(steps_made), since = pki_monotonic_ns();
    while (pki_monotonic_ns() - since < SECOND)
        nanosleep(&(struct timespec){0, 10000000}, NULL);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    unsigned windows = lines_of(PATH);
    print_message("%llu steps a second before the kill, %u windows of %u\n",
                  (unsigned long long)then, windows, OF_A_WINDOW);
    assert_true(windows >= then / OF_A_WINDOW);
    assert_int_equal(
        pk_start(pk_options(.windows_path = PATH, .window_steps = OF_A_WINDOW, .backends = "none")),
        PK_OK);
    pk_step(1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(lines_of(PATH), 1);
    assert_int_equal(lines_of(PATH ".prev"), windows);
}

int main(void)
{
    if (getenv("PK_TEST_QEMU")) {
        printf("qemu loses threads that a fork's child starts\n");
        return 77;
    }
#ifdef __SANITIZE_THREAD__
    printf("it does not follow threads that a fork's child starts\n");
    return 77;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_but_the_last_second, enter_folder, leave_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
