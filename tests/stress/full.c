/* A disk that is full, a real one: a small tmpfs, mounted where only this process sees it. Two
 * million regions, flushed and stopped on it and beside it: all are counted, whichever disk it was.
 * How long both take is printed; that the full one is asked once in a round is
 * tests/unit/test_session.c's.
 */
#include "kit.h"

#include <pk/pk.h>

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>

#define REGIONS 2000000u
#define BATCH 100000u

static pk_region region = PK_REGION("region");
static uint64_t flushed_ns, stopped_ns;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static pk_counts counts_now(void)
{
    pk_counts counts = {.size = sizeof counts};
    must_equal(pk_get_counts(&counts), PK_OK);
    return counts;
}

/* None is dropped: each batch waits until the collector has taken the one before. */
static void record(unsigned n)
{
    for (unsigned done = 0; done < n; done += BATCH) {
        while (counts_now().recorded < done)
            usleep(1000);
        for (unsigned i = 0; i < BATCH; i++)
            PK_SCOPE(region) {
            }
    }
}

static pk_counts run(const char *trace, pk_status wanted, unsigned n)
{
    must_equal(pk_start(pk_options(.trace_path = trace, .arena_path = "none", .backends = "none",
                                   .ring_records = 1 << 18)),
               PK_OK);
    record(n);
    uint64_t at = now_ns();
    must_equal(pk_flush(), wanted);
    flushed_ns = now_ns() - at;
    must_equal(pk_stop(), wanted);
    stopped_ns = now_ns() - at - flushed_ns;
    pk_counts counts = counts_now();
    must_equal(counts.dropped, 0);
    must_equal(counts.recorded, n);
    must_equal(counts.written + counts.unwritten, n);
    printf("%u regions, %s: %llu written, flush %.3f s, stop %.3f s\n", n, wanted ? "full" : "room",
           (unsigned long long)counts.written, (double)flushed_ns * 1e-9,
           (double)stopped_ns * 1e-9);
    return counts;
}

static void mount_small(const char *folder, const char *size)
{
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", folder, "tmpfs", 0, size))
        kit_skip("a file system cannot be mounted here (root may)");
}

int main(void)
{
    unsigned n = kit_scaled(REGIONS / BATCH) * BATCH;
    char full[4200], room[4200], tiny[4200];
    kit_watchdog(280);
    snprintf(room, sizeof room, "%s", kit_path("room.json"));
    must_equal(run(room, PK_OK, n).unwritten, 0);
    unlink(room);
    mount_small(kit_folder(), "size=1m");
    snprintf(full, sizeof full, "%s", kit_path("full.json"));
    must(run(full, PK_ENOSPC, n).unwritten > 0);
    unlink(full); /* the next one has room for its head */
    snprintf(full, sizeof full, "%s", kit_path("full.json.gz"));
    must(run(full, PK_ENOSPC, n).unwritten > 0);
    kit_clean();
    /* The arena finds room for its header and for nothing else. */
    snprintf(tiny, sizeof tiny, "%s", kit_path("tiny.arena"));
    must_equal(
        pk_start(pk_options(.arena_path = tiny, .backends = "none", .ring_records = 1 << 20)),
        PK_OK);
    PK_SCOPE(region) {
    }
    must_equal(pk_stop(), PK_ENOSPC);
    must(strstr(pk_error_message(), "nothing could be recorded") != NULL);
    umount2(kit_folder(), MNT_DETACH);
    return 0;
}
