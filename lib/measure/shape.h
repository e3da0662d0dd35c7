/* lib/measure/shape.h - what a pki_summary consists of, member by member, and how it is given back
 */
#pragma once

#include "measure/summary.h"

/* ---- what a pki_summary consists of, member by member, in one table ---- */

/* The report file is written from this table (lib/out/report/json.c), read by it
 * (tools/read/scan.c) and its memory given back by it, so a member that is added here is in all
 * three. The order of members is their order in the file. */

typedef enum pki_member_type {
    PKI_TEXT,   /* char *, allocated; never NULL when read */
    PKI_UINT,   /* uint64_t */
    PKI_U32,    /* uint32_t */
    PKI_I32,    /* int32_t */
    PKI_REAL,   /* double */
    PKI_BOOL,   /* bool */
    PKI_HEX,    /* uint64_t as text: readers of JSON make doubles of large numbers */
    PKI_CHOICE, /* a 32-bit enumeration by its words */
    PKI_OBJECT, /* a struct */
    PKI_KEYED,  /* an array of structs or numbers, as an object whose keys are known */
    PKI_ROWS,   /* an allocated array of structs, and its length */
    PKI_TABLE,  /* the same of structs of numbers, each as an array of them; none: not there */
    PKI_NUMBERS /* an allocated array of uint64_t, and its length; none: not there */
} pki_member_type;

typedef struct pki_shape pki_shape;

/* The words of an enumeration; what is none of them (a later version's) is read as `other`. */
typedef struct pki_choice {
    const char *(*name)(uint32_t value);
    uint32_t count, other;
} pki_choice;

typedef struct pki_member {
    const char *key;
    pki_member_type type;
    size_t offset;
    const pki_shape *shape;   /* of OBJECT, ROWS, TABLE, KEYED; NULL: KEYED numbers (uint64_t) */
    const pki_choice *choice; /* CHOICE */
    const char *const *keys;  /* KEYED */
    size_t count;             /* KEYED: how many; of others the offset of the size_t that says it */
    bool
        optional; /* not in the file where the struct's first member, a uint64_t, is 0; ROWS: where
                     there are none. The last ones of a TABLE: earlier versions have not had them */
    bool line;    /* begins a line in the file, */
    bool lines;   /* as each of the ROWS does */
} pki_member;

struct pki_shape {
    size_t size;
    size_t count;
    const pki_member *members;
};

/* The run, all of it. */
extern const pki_shape pki_summary_shape;
/* Of it what a job of many ranks is made of: the file of a rank. */
extern const pki_shape pki_rank_shape;
extern const pki_shape pki_counter_point_shape;
/* Parts that are given back before the rest, or read from other files. */
extern const pki_shape pki_steps_shape, pki_stages_shape, pki_comm_shape, pki_verdict_shape,
    pki_gpu_shape, pki_kernel_shape, pki_counts_shape, pki_dist_shape, pki_run_shape,
    pki_thread_shape, pki_overhead_shape, pki_processor_shape, pki_window_sum_shape,
    pki_region_thinned_shape, pki_thinned_shape, pki_io_shape, pki_energy_shape, pki_roofline_shape,
    pki_utilisation_shape, pki_cpu_side_shape, pki_memory_shape, pki_gpu_memory_shape,
    pki_gpu_memory_sums_shape, pki_environment_shape, pki_goodput_shape, pki_energy_sums_shape,
    pki_memory_sum_shape, pki_events_shape, pki_io_sums_shape;
extern const pki_choice pki_kind_choice;

static inline const void *pki_member_at(const pki_member *m, const void *of)
{
    return (const char *)of + m->offset;
}

/* Gives back the strings and rows that it points to. */
void pki_shape_finish(const pki_shape *shape, void *object);

/* Likewise of `count` rows, and the rows. */
void pki_shape_finish_rows(const pki_shape *shape, void *rows, size_t count);
