/* tools/live/process.h - what /proc says of a process, which hears nothing of it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A process and when it began, in the kernel's unit: its number alone may be another's by now. */
typedef struct process {
    int pid; /* as this system numbers it; 0: none */
    uint64_t began;
} process;

/* False: there is no such process, or it has ended and waits to be reaped. */
bool process_is_there(int pid, process *is);

/* 'R', 'S', 'D', 'T' and so on, as in ps; 0 if it is gone. */
char process_state(const process *p);

/* Does the process call itself so, in a namespace of its own perhaps? */
bool process_calls_itself(int pid, uint32_t own_pid);

/* The thread that its process, which calls itself own_pid, numbers so, as this system does; 0 if it
 * is gone. */
int process_thread(const process *p, uint32_t own_pid, uint32_t own_tid);

/* The thread's state as in ps, and the kernel's function that it waits in ("" if it does not, or
 * must not be seen). 0 if it is gone. */
char process_thread_state(const process *p, int tid, char *waits_in, size_t size);

/* Has it mapped the file of this inode for writing, together with its other writers? `name`: the
 * last part of its path. */
bool process_maps(int pid, uint64_t inode, const char *name);

/* Who has it mapped and calls itself so; all zero: nobody that can be seen. */
process process_find(uint32_t own_pid, uint64_t inode, const char *name);

/* Each file that the process has mapped for writing and shares, opened for reading; `take` owns the
 * descriptor and answers whether to go on. False and errno: it could not be looked into. */
typedef bool process_take_file(void *user, int fd, const char *path);
bool process_open_shared(int pid, process_take_file *take, void *user);
