/* lib/base/spawn.h - threads of ours, and what they wait for. */
#pragma once

#include <pthread.h>

/* pthread_create with all signals blocked, since the program's are for the program's threads. In a
 * process that locks what it maps (mlockall) the stack is a small one: a usual one would be brought
 * in whole, or be refused. 0 or an errno. */
int pki_spawn(pthread_t *thread, void *(*body)(void *), void *arg);

/* A condition whose waits end by CLOCK_MONOTONIC. */
void pki_condition_make(pthread_cond_t *condition);
