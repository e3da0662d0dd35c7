#include "checkpoint.h"

#include <errno.h>
#include <inttypes.h>
#include <pk/pk.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

/* PK_IO: the report sets this time apart from the computing, and "slowest steps" will name it. */
static pk_region save_region = PK_REGION_OF(PK_IO, "checkpoint");

/* The file: this, and then values, first and second moments. Bytes in the order of the machine,
 * which `order` tells apart. */
typedef struct header {
    char magic[8];
    uint32_t order, real_bytes;
    uint64_t layers, dim, heads, seq, batch, seed, step;
    uint64_t count; /* of numbers in each array */
    uint64_t checksum;
} header;

static const char magic[8] = "pktrain";

static uint64_t checksum_of(uint64_t sum, const real *array, size_t count)
{
    const unsigned char *bytes = (const unsigned char *)array;
    for (size_t i = 0; i < count * sizeof(real); i++)
        sum = (sum ^ bytes[i]) * 0x100000001b3u; /* FNV-1a */
    return sum;
}

static uint64_t checksum(const parameters *p)
{
    uint64_t sum = checksum_of(0xcbf29ce484222325u, p->values, p->count);
    sum = checksum_of(sum, p->first_moment, p->count);
    return checksum_of(sum, p->second_moment, p->count);
}

static header describe(const checkpoint_state *s, const parameters *p)
{
    header h = {.order = 0x01020304,
                .real_bytes = sizeof(real),
                .layers = s->shape.layers,
                .dim = s->shape.dim,
                .heads = s->shape.heads,
                .seq = s->shape.seq,
                .batch = s->batch,
                .seed = s->seed,
                .step = s->step,
                .count = p->count};
    memcpy(h.magic, magic, sizeof(magic));
    return h;
}

static bool write_all(FILE *file, const header *h, const parameters *p)
{
    return fwrite(h, sizeof(*h), 1, file) == 1 &&
           fwrite(p->values, sizeof(real), p->count, file) == p->count &&
           fwrite(p->first_moment, sizeof(real), p->count, file) == p->count &&
           fwrite(p->second_moment, sizeof(real), p->count, file) == p->count &&
           fflush(file) == 0 && fsync(fileno(file)) == 0;
}

/* "FILE.part": in the same directory, since a rename does not reach further. */
static bool name_part(char *part, size_t size, const char *path)
{
    if ((size_t)snprintf(part, size, "%s.part", path) < size)
        return true;
    complain("the name of the checkpoint is too long");
    return false;
}

static bool write_file(const char *path, const header *h, const parameters *p)
{
    FILE *file = fopen(path, "wbe");
    if (!file)
        return false;
    bool good = write_all(file, h, p);
    int error = errno;
    if (fclose(file) != 0 && good) {
        good = false;
        error = errno;
    }
    errno = error;
    return good;
}

bool checkpoint_save(const char *path, const checkpoint_state *state, const parameters *p)
{
    char part[4096];
    bool good = false;
    if (!name_part(part, sizeof(part), path))
        return false;
    PK_SCOPE(save_region) {
        header h = describe(state, p);
        h.checksum = checksum(p);
        good = write_file(part, &h, p) && rename(part, path) == 0;
        pk_region_add(&save_region, sizeof(h) + 3 * p->count * sizeof(real), 0);
    }
    if (!good) {
        complain("cannot write checkpoint %s: %s", path, strerror(errno));
        unlink(part);
    }
    return good;
}

static bool refuse(const char *path, const char *why)
{
    complain("cannot resume from %s: %s", path, why);
    return false;
}

static bool matches(const char *path, const char *name, uint64_t theirs, uint64_t ours)
{
    if (theirs != ours)
        complain("cannot resume from %s: it was made with --%s %" PRIu64 ", not %" PRIu64, path,
                 name, theirs, ours);
    return theirs == ours;
}

static bool same_run(const char *path, const header *theirs, const header *ours)
{
    if (memcmp(theirs->magic, ours->magic, sizeof(ours->magic)) != 0)
        return refuse(path, "it is not a checkpoint of pk-train");
    if (theirs->order != ours->order || theirs->real_bytes != ours->real_bytes)
        return refuse(path, "it comes from another kind of machine");
    return matches(path, "layers", theirs->layers, ours->layers) &&
           matches(path, "dim", theirs->dim, ours->dim) &&
           matches(path, "heads", theirs->heads, ours->heads) &&
           matches(path, "seq", theirs->seq, ours->seq) &&
           matches(path, "batch", theirs->batch, ours->batch) &&
           matches(path, "seed", theirs->seed, ours->seed);
}

static bool read_all(FILE *file, const char *path, header *h, const header *ours, parameters *p)
{
    if (fread(h, sizeof(*h), 1, file) != 1)
        return refuse(path, ferror(file) ? strerror(errno) : "it is too short");
    if (!same_run(path, h, ours))
        return false;
    if (h->count != p->count || fread(p->values, sizeof(real), p->count, file) != p->count ||
        fread(p->first_moment, sizeof(real), p->count, file) != p->count ||
        fread(p->second_moment, sizeof(real), p->count, file) != p->count)
        return refuse(path, "it is cut off");
    return h->checksum == checksum(p) || refuse(path, "it is damaged");
}

checkpoint_result checkpoint_load(const char *path, checkpoint_state *state, parameters *p)
{
    header h = {0}, ours = describe(state, p);
    FILE *file = fopen(path, "rbe");
    if (!file && errno == ENOENT)
        return CHECKPOINT_NONE;
    if (!file) {
        refuse(path, strerror(errno));
        return CHECKPOINT_BAD;
    }
    bool good = read_all(file, path, &h, &ours, p);
    fclose(file);
    state->step = h.step;
    return good ? CHECKPOINT_LOADED : CHECKPOINT_BAD;
}

bool checkpoint_try(const char *path)
{
    char part[4096];
    if (!name_part(part, sizeof(part), path))
        return false;
    FILE *file = fopen(part, "abe");
    if (!file) {
        complain("cannot write checkpoint %s: %s", path, strerror(errno));
        return false;
    }
    fclose(file);
    unlink(part);
    return true;
}
