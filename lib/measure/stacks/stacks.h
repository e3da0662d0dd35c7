/* lib/measure/stacks/stacks.h - where a thread was, and who had called that */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/processors.h"
#include "pki_frames.h"

/* ---- from a place in a function to the place that it was called from ---- */

/* By the tables that compilers leave for exceptions (.eh_frame and .eh_frame_hdr, "Linux Standard
 * Base Core 5.0", 10.6; the instructions are DWARF 4's, 6.4.2), which code without frame pointers
 * has, too. Where a place has none, by the frame pointer.
 *
 * All memory is read through a function that may refuse, and whatever it has leads to an end: none
 * of it is trusted. No allocation, no lock. */

typedef bool pki_memory_reader(void *user, uint64_t at, void *to, size_t bytes);

typedef enum pki_saved_kind {
    PKI_SAVED_SAME, /* the caller's is what it is here */
    PKI_SAVED_LOST,
    PKI_SAVED_AT,      /* at the frame's address + offset */
    PKI_SAVED_IS,      /* is that */
    PKI_SAVED_IN,      /* in another register */
    PKI_SAVED_BESIDE,  /* at that of another register + offset */
    PKI_SAVED_UNKNOWN, /* this is not understood */
} pki_saved_kind;

typedef struct pki_saved {
    uint8_t kind, of;
    int32_t offset;
} pki_saved;

#define PKI_EXPRESSION_MOST 24u

/* How to find the caller from one place. */
typedef struct pki_frame_row {
    uint64_t start;       /* of the function, or that part of it */
    uint64_t from, until; /* all places in which it is the same */
    uint8_t of, returns;  /* frame's address = of + offset; the return address is in that one */
    bool of_signal;       /* the caller was interrupted: it is where it was, not behind a call */
    uint8_t expression_bytes; /* else it is this expression's */
    int64_t offset;
    unsigned char expression[PKI_EXPRESSION_MOST];
    pki_saved saved[PKI_FRAMES_REGISTERS];
} pki_frame_row;

/* header: where .eh_frame_hdr lies. False: there is no row for it, or none that is understood. */
bool pki_frame_row_find(pki_memory_reader *read, void *user, uint64_t header, uint64_t pc,
                        pki_frame_row *row);

typedef struct pki_registers {
    uint64_t value[PKI_FRAMES_REGISTERS];
    uint64_t known; /* a bit for each */
} pki_registers;

/* To the caller's; by the frame pointer without a row (NULL). False: there is none, or it is not to
 * be found in what `read` has. */
bool pki_frame_leave(const pki_frame_row *row, pki_memory_reader *read, void *user,
                     pki_registers *r);

/* The same of code without tables that the process has made itself, from behind a call: `code`
 * reads that. */
bool pki_frame_leave_made(pki_memory_reader *code, pki_memory_reader *read, void *user,
                          pki_registers *r);

/* ---- the process's code ---- */

/* What /proc/self/maps has, as of the last look, by numbers that never mean another file. By one
 * thread at a time; without the loader's lock, which the program may hold, and without touching
 * memory that it may unmap: that is read as another process's would be (process_vm_readv(2)). */

#define PKI_CODE_PATH 176u
#define PKI_CODE_BUILD 41u

typedef struct pki_code {
    uint64_t from, until, offset; /* addresses; of the first in its file */
    uint64_t start, header;       /* of the file's image; of .eh_frame_hdr, 0: not known */
    uint32_t number;              /* from 1 on; 0: of no file, as what a JIT makes */
    bool looked;                  /* into it, since a place was in it */
    uint64_t seen;                /* what its first bytes are, as a number */
    char path[PKI_CODE_PATH];
    char build[PKI_CODE_BUILD]; /* the file's build id, in hex; "" if it has none */
} pki_code;

const pki_code *pki_code_of(uint32_t number);

/* Now and then: which of them there are is looked at again, if one that places were in is there no
 * longer. (So it is where a place is in none.) Once a second at most. */
void pki_code_round(void);

/* Forgets all of it. */
void pki_code_forget(void);

/* ---- samples of a thread, with its stacks ---- */

/* The kernel writes down, each so many ns that the thread spends on a processor, where it is, its
 * registers and a piece of its stack (perf_event_open(2), a clock of the task). The thread gets no
 * signal; who reads them unwinds. Where the kernel does so in user mode alone, what is missing of
 * the time by schedstat was spent in the kernel. */

#define PKI_STACK_BYTES 8192u /* of a thread's stack: some dozen functions */
#define PKI_STACK_MOST 48u

typedef struct pki_place {
    uint32_t number;   /* of its code; 0: in none, and offsets are addresses */
    uint64_t offset;   /* in the file; of a caller within the call */
    uint64_t function; /* where that begins, by the tables; 0: not known */
} pki_place;

typedef struct pki_stack_sample {
    uint64_t at; /* ns, CLOCK_MONOTONIC */
    bool kernel; /* it was in the kernel, for places[0]; without places for whom is not known */
    unsigned count;
    pki_place places[PKI_STACK_MOST]; /* innermost first */
} pki_stack_sample;

/* All zero: not open. */
typedef struct pki_sampler {
    pki_kernel_ring ring;
    uint32_t tid;
    uint64_t period;
    bool of_kernel; /* there are samples in it, too */
    bool lost;      /* some, or throttled: what is missing was not in the kernel for that */
    uint64_t running, sampled; /* ns of the thread, as it began; samples since */
} pki_sampler;

/* False: errno. */
bool pki_sampler_open(pki_sampler *s, uint32_t tid, uint64_t period, size_t pages);
void pki_sampler_close(pki_sampler *s);

/* The oldest one, which it takes out. */
bool pki_sampler_next(pki_sampler *s, pki_stack_sample *out);

/* So many more were in the kernel, and have no sample. Takes them as told. */
uint64_t pki_sampler_missing(pki_sampler *s);
