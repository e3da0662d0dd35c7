/* lib/job/clocks.h - clocks of nodes, by what ranks did together */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- what ranks did together ---- */

/* Each operation on a communicator, as one rank saw it, kept until those of the other ranks are
 * there. Files are read one after the other, so operations of the first one wait for those of the
 * last: millions. They lie in a file without a name, in parts by their key; each part is put in
 * order when it is looked at. */

typedef enum pki_joint_kind {
    PKI_JOINT_ALL,   /* every rank's end follows every rank's start */
    PKI_JOINT_FROM,  /* one rank gives: every end follows its start */
    PKI_JOINT_TO,    /* one rank gets: its end follows every start */
    PKI_JOINT_LOOSE, /* neither */
    PKI_JOINT_SEND,
    PKI_JOINT_RECEIVE,
} pki_joint_kind;

/* Of a pk_comm_op; of one that is none: loose. */
pki_joint_kind pki_joint_kind_of(uint32_t op);

typedef struct pki_joint {
    uint64_t key; /* of the communicator and the number on it; of a message: of its channel */
    uint64_t start, end; /* ns of its file */
    uint32_t pid, tid;   /* in the merged trace */
    uint32_t source;     /* which file */
    int32_t rank, peer;  /* in the communicator; peer: of a message, or the root; -1: none */
    uint32_t ranks;
    uint8_t kind;
    uint8_t op;      /* a pk_comm_op */
    uint8_t written; /* it is in the merged trace, and arrows can be tied to it */
} pki_joint;

typedef struct pki_joints pki_joints;

/* Its file lies beside `path`, which is the caller's. What answers false has set errno; create is
 * NULL without memory. */
pki_joints *pki_joints_create(const char *path);
void pki_joints_destroy(pki_joints *o);
bool pki_joints_add(pki_joints *o, const pki_joint *op);

/* Calls `group` with all operations of one key, by kind, rank and start (of their files), in any
 * order of keys; may be asked again. */
typedef void pki_joints_group(void *user, pki_joint *all, size_t count);
bool pki_joints_each(pki_joints *o, pki_joints_group *group, void *user);

/* Are these one collective, each rank once? If not, communicators have the same name. */
bool pki_joints_are_one(const pki_joint *all, size_t count);

/* The first receive of a channel, behind its sends. */
size_t pki_joints_receives(const pki_joint *all, size_t count);

/* ---- how far two clocks are apart: bounds from both sides, over time ---- */

/* Each bound says that at a moment the offset is at least, or at most, so much. Two clocks drift
 * apart evenly over minutes, so all bounds of ten minutes have to fit around one straight line. The
 * offset at a moment is then between the lowest and the highest of the lines that fit: an interval
 * that is narrower than any single pair of bounds, and as hard as they are. */

#define PKI_BOUNDS_PIECES 512 /* of the time that is looked at; each keeps its tightest two */
#define PKI_BOUNDS_LINE 600000000000.0 /* ns that clocks drift evenly for */
#define PKI_BOUNDS_DRIFT 1e-3          /* more than any two clocks of machines drift apart */

typedef struct pki_bounds_piece {
    bool has_least, has_most;
    double least, least_at, most, most_at;
} pki_bounds_piece;

typedef struct pki_bounds {
    double from, span; /* ns; moments outside count as the first or the last */
    uint64_t count;
    pki_bounds_piece pieces[PKI_BOUNDS_PIECES];
} pki_bounds;

/* Both relative to whatever keeps them exact in a double. */
void pki_bounds_least(pki_bounds *b, double at, double offset);
void pki_bounds_most(pki_bounds *b, double at, double offset);

typedef enum pki_bounds_found {
    PKI_BOUNDS_BOTH,
    PKI_BOUNDS_OPEN,
    PKI_BOUNDS_BROKEN
} pki_bounds_found;

/* The interval of the offset at a moment. PKI_BOUNDS_OPEN: one side, or both, is not bounded.
 * PKI_BOUNDS_BROKEN: no line fits. */
pki_bounds_found pki_bounds_at(const pki_bounds *b, double at, double *least, double *most);

/* ---- the clocks that traces were written by, on one axis ---- */

/* A node has one clock, CLOCK_MONOTONIC from its start on: its files are put side by side as they
 * are. How far two nodes' clocks are apart is bounded from two sides by everything that one rank
 * did before another could go on: messages and collectives of the program's, and those that
 * libpk_mpi measures by. Bounds are hard; nothing is taken for symmetric, and a clock that no
 * straight line through its bounds fits is said to be broken. */

/* A file whose times are of some clock. */
typedef struct pki_clocked {
    const char *name, *host;   /* of the clock; the name is the same where it is one clock */
    uint64_t base_ns, unix_ns; /* the clock at the file's 0; the real time then, 0: not known */
    uint64_t last_ns;          /* the end of its last event, once it has been read */
    uint32_t clock;            /* its place among the clocks */
} pki_clocked;

/* So many of them, each a part of something larger. */
typedef struct pki_clocked_files {
    pki_clocked *first;
    size_t count, stride;
} pki_clocked_files;

typedef enum pki_clock_method {
    PKI_CLOCK_SAME,     /* the clock of the axis itself */
    PKI_CLOCK_BOUNDED,  /* by bounds from both sides */
    PKI_CLOCK_REAL_TIME /* as the nodes' real times say: nothing bounds how wrong those are */
} pki_clock_method;

/* At a moment of its own, what has to be added to get the time of the axis. */
typedef struct pki_clock_knot {
    uint64_t at;
    int64_t offset, doubt; /* doubt: half the interval that the truth is in */
} pki_clock_knot;

#define PKI_CLOCK_KNOTS 65

typedef struct pki_clock {
    const char *name, *host;
    uint64_t first, last; /* ns of this clock, over its files */
    int64_t real_offset;  /* real time minus this clock */
    pki_clock_method method;
    bool broken;     /* its bounds contradict each other */
    uint64_t bounds; /* how many there were */
    pki_clock_knot knots[PKI_CLOCK_KNOTS];
    uint32_t count; /* of knots: at least one */
} pki_clock;

typedef struct pki_clocks {
    pki_clock *all;
    size_t count;
    pki_clocked_files files;
    uint64_t origin; /* of the axis: this moment of the first clock is 0 */
    uint64_t origin_unix;
} pki_clocks;

/* Gives each file its clock; the axis is that of the first one's, from the first moment of any of
 * them on. By real time, until pki_clocks_fit. The files stay where they are. False without memory:
 * then pki_clocks_free alone may follow. */
bool pki_clocks_make(pki_clocks *c, const pki_clocked_files *files);

/* By what ranks did together; files have been read once, and their ends are known. False and errno:
 * they are by real time. */
bool pki_clocks_fit(pki_clocks *c, pki_joints *o);
void pki_clocks_free(pki_clocks *c);

/* A moment of a file, ns, on the axis. Never runs backwards. */
uint64_t pki_clocks_axis(const pki_clocks *c, const pki_clocked *of, uint64_t ns);

/* The largest doubt of this clock; negative: not known. */
int64_t pki_clock_doubt(const pki_clock *c);

/* How fast it drifts away from the first one, parts per million. */
double pki_clock_drift(const pki_clock *c);

/* By how much that may be wrong: what its first and last moment are in doubt, over the time between
 * them. Infinite: not known. */
double pki_clock_drift_doubt(const pki_clock *c);
