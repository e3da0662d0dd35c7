/* lib/measure/goodput/parts.h - what a run's time can have gone into. */
#pragma once

#include <stdint.h>

enum pki_part {
    PKI_PART_PRODUCTIVE, /* steps that took the training on */
    PKI_PART_RECOMPUTED, /* steps that an earlier run had made, and lost */
    PKI_PART_DATA,       /* of productive steps: waiting for input (PK_DATA) */
    PKI_PART_STARTUP,
    PKI_PART_COMPILE,
    PKI_PART_CHECKPOINT,
    PKI_PART_RESTORE,
    PKI_PART_EVALUATION,
    PKI_PART_HANG,       /* as the watchdog says */
    PKI_PART_UNFINISHED, /* of a step that had not ended when the run was last heard of */
    PKI_PART_OTHER,      /* between steps, behind the last one, and what is not known */
    PKI_PARTS
};

/* "productive", ...: their names in the state file and in `pk job --json` */
extern const char *const pki_part_names[PKI_PARTS];

/* Where a process's time has gone, of which `up` is the sum. */
typedef struct pki_goodput_summary {
    uint64_t up; /* ns, since the process's start; first: 0 leaves it out of the report file */
    uint64_t parts[PKI_PARTS];
    uint64_t steps, recomputed; /* usual ones; that an earlier run of the job had made, and lost */
} pki_goodput_summary;

/* Of a phase (pk/goodput.h), and of a kind of steps. */
uint32_t pki_part_of_phase(uint32_t phase);
uint32_t pki_part_of_kind(const char *kind);
