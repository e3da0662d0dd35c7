/* lib/base/process.h - which process this is, on which machine, started by whom; processes and
 * threads of ours */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- which process of which job this is ---- */

typedef struct pki_world {
    int32_t rank,
        size; /* 0 and 0: not a job of several processes, as far as the environment says */
    int32_t local_rank, local_size; /* among the ranks of this host; 0 and 0: not known */
    int32_t node;                   /* number of the host in the job; -1: not known */
    char job[64];                   /* as whoever started it calls it; "": not known */
    uint32_t pid;
    char host[64];
    char clock[96]; /* whose CLOCK_MONOTONIC it is: the same in all processes that share it; "": not
                       known */
    char program[128]; /* last part of the executable's path */
} pki_world;

void pki_world_detect(pki_world *world);

/* ---- launcher ---- */

/* Which rank of which job this process is, as its launcher says in the
 * environment. The table of variables, with where each is documented, is in docs/mpi.md. */

/* Sets what can be told of: rank, size, local_rank, local_size, node, job. */
void pki_launcher_read(pki_world *world);

/* The tasks of a node by Slurm's list of them: "4(x2),3" has 4, 4 and 3. 0: it does not say. */
int32_t pki_launcher_tasks(const char *list, int32_t node);

/* ---- the machine that the process runs on; what is not known is "" or 0 ---- */

typedef struct pki_host {
    uint64_t memory_bytes, processors; /* processors: online */
    char cpu[128], architecture[32], kernel[96];
    char gpu[96], driver[96]; /* of NVIDIA's, the first; as its driver's files in /proc say */
} pki_host;

/* Reads files of /proc and asks uname: some 50 us. */
void pki_host_read(pki_host *m);

/* What /proc/cpuinfo says behind this word, of the first processor. */
bool pki_cpu_info(const char *root, const char *key, char *out, size_t size);

/* The processor's name: a model, or of ARM's, whose kernels give no name, the numbers of who has
 * made it and of which part it is. */
bool pki_cpu_name(const char *root, char *out, size_t size);

/* ---- what an executable says of its making ---- */

typedef struct pki_executable {
    char build_id[65];  /* hexadecimal, of the note that linkers make (--build-id); "": none */
    char compiler[160]; /* of its .comment section, the first ones; "": stripped, or not told */
} pki_executable;

/* Of an ELF file of this machine's word size; all "" of anything else. */
void pki_executable_read(const char *path, pki_executable *e);

/* ---- threads of ours, and what they wait for ---- */

/* pthread_create with all signals blocked, since the program's are for the program's threads. In a
 * process that locks what it maps (mlockall) the stack is a small one: a usual one would be brought
 * in whole, or be refused. 0 or an errno. */
int pki_spawn(pthread_t *thread, void *(*body)(void *), void *arg);

/* A condition whose waits end by CLOCK_MONOTONIC. */
void pki_condition_make(pthread_cond_t *condition);

/* ---- a command of the user's, run beside the program, which does not notice ---- */

/* A child sends its parent SIGCHLD as it ends, and whoever waits for any child is told of it: a
 * program that starts children of its own would find one that it does not know. So the command is a
 * grandchild. The process between is made by clone(2) with no signal at its end, in the program's
 * memory and with descriptors of its own, which it closes; it starts the command and ends at once,
 * so nothing is copied, nobody waits, and init (or the nearest subreaper) takes care of the
 * command. */

/* Runs `/bin/sh -c command`: standard input is /dev/null, output and errors are the program's, all
 * other descriptors are closed, no signal is blocked. On a thread of ours. 0 or an errno;
 * the command's number in *pid. */
int pki_run_detached(const char *command, pid_t *pid);

/* Where the program itself is init or a subreaper, the command becomes its child as the process
 * between ends: to be called now and then, until it answers true. */
bool pki_detached_is_over(pid_t pid);
