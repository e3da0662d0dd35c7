/* lib/measure/stage_rows.h - the stages of the loop, of a summary: what a job of many ranks is made
 * of (measure/steps/stages.h). */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A region, by the self time of which the thread that makes steps divides each of them. */
typedef struct pki_stage_row {
    char *name;
    uint32_t kind;
} pki_stage_row;

/* A block of steps in numbers: these, and the self time of each stage. */
enum pki_block_head {
    PKI_BLOCK_INDEX, /* of its first step */
    PKI_BLOCK_STEPS,
    PKI_BLOCK_TIME, /* from begin to end, added up */
    PKI_BLOCK_ITEMS,
    PKI_BLOCK_HEAD
};

/* The steps of a kind, block behind block. */
typedef struct pki_loop_row {
    char *name; /* "": the usual kind */
    size_t number_count;
    uint64_t *numbers;
    size_t no_processor_count;
    uint64_t *no_processor; /* ns, of each block: see core/ready.h. NULL: not known */
    size_t seat_count;
    uint64_t *seats; /* two of each block: a processor, and how much of the thread's own time was
                        there (core/seats.h; 0: not known). NULL: of none is it known */
} pki_loop_row;

typedef struct pki_stage_summary {
    uint64_t width;  /* numbers of a block; 0: there are none */
    uint64_t warmup; /* so many first steps of the usual kind are */
    size_t stage_count, loop_count;
    pki_stage_row *stages; /* in the order in which they first began */
    pki_loop_row *loops;   /* the usual kind first */
} pki_stage_summary;
