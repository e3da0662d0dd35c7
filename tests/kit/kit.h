/* kit.h - what the stress and fault tests share: a folder, children under a watchdog, chance that
 * is the same every time, and how much of it all this machine can take.
 */
#ifndef TESTS_KIT_H
#define TESTS_KIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* For threads and children, out of which cmocka's assertions cannot jump: the process ends. */
#define must(condition) ((condition) ? (void)0 : kit_give_up(__FILE__, __LINE__, #condition, 0, 0))
#define must_equal(a, b)                                                                           \
    kit_must_equal(__FILE__, __LINE__, #a " == " #b, (long long)(a), (long long)(b))

void kit_give_up(const char *file, int line, const char *what, long long a, long long b)
    __attribute__((noreturn));

static inline void kit_must_equal(const char *file, int line, const char *what, long long a,
                                  long long b)
{
    if (a != b)
        kit_give_up(file, line, what, a, b);
}

/* Leaves the program with status 77. */
void kit_skip(const char *why) __attribute__((noreturn));

/* n, or less of it where a sanitizer or valgrind slows everything down; PK_TEST_SCALE (0.1, say)
 * has the last word. At least 1. */
unsigned kit_scaled(unsigned n);

/* Is this program built with that sanitizer ("address", "thread", "undefined")? */
bool kit_sanitized(const char *name);
bool kit_valgrind(void);

/* xorshift64*; the state is never 0. */
uint64_t kit_random(uint64_t *state);

/* NAME in a fresh folder of this process that is removed at its end. Three may be in use at once.
 */
const char *kit_path(const char *name);
const char *kit_folder(void);

/* Entries of the folder whose names contain this ("" for all). */
unsigned kit_count_files(const char *containing);

/* Empties the folder. */
void kit_clean(void);

/* Runs body in a child that a watchdog ends after so many seconds. Its exit status; -signal if one
 * ended it. must() in the child is status 99. */
int kit_child(void (*body)(void *), void *arg, unsigned seconds);

/* The watchdog alone: SIGALRM, whose default ends the process. */
void kit_watchdog(unsigned seconds);

unsigned kit_open_files(void);
unsigned kit_threads(void);

/* The same once there are no more than expected, or after 10 s: the kernel shows a thread for a
 * moment after it has been joined. */
unsigned kit_threads_left(unsigned expected);

void kit_sleep_us(unsigned us);

#endif
