/* run_trace FILE RANK RANKS STEPS [cpu] - the trace of a training run that never was, the same
 * bytes every time, through perfkit's own formatter: for the tests of what reads traces, and, with
 * many steps, for measuring that.
 *
 * Two threads, a GPU with two streams (not with "cpu"), a communicator; 60 slices and counters a
 * step on the CPU, 107 with the GPU. Rank 2 is slow in attention, so the others wait for it in
 * all_reduce; every 10th step waits for its batch; the first two steps warm up.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/names.h"
#include "out/chrome/events.h"
#include "out/chrome/chrome.h"

enum { LAYERS = 12, BUFFER = 1 << 20, MS = 1000000, US = 1000 };
enum { GPU_PID_BASE = 1 << 16, STREAM = 7, COPIES = 13, CALLS = 1 << 30, COMM = (1 << 30) + 1 };

enum {
    NONE,
    NEXT_BATCH,
    FORWARD,
    ATTENTION,
    MLP,
    BACKWARD,
    ATTENTION_BACK,
    MLP_BACK,
    OPTIMIZER,
    ALL_REDUCE,
    READ_FILE,
    DECODE,
    CHECKPOINT,
    LOSS,
    QUEUE,
    MEMORY,
    NAMES
};

static const pki_chrome_name names[NAMES] = {
    [NEXT_BATCH] = {"next batch", "", 10, 0, PK_DATA, 0},
    [FORWARD] = {"forward", "", 7, 0, PK_COMPUTE, 0},
    [ATTENTION] = {"attention[seq=512]", "seq", 18, 3, PK_COMPUTE, 512},
    [MLP] = {"mlp", "", 3, 0, PK_COMPUTE, 0},
    [BACKWARD] = {"backward", "", 8, 0, PK_COMPUTE, 0},
    [ATTENTION_BACK] = {"attention backward", "", 18, 0, PK_COMPUTE, 0},
    [MLP_BACK] = {"mlp backward", "", 12, 0, PK_COMPUTE, 0},
    [OPTIMIZER] = {"optimizer", "", 9, 0, PK_COMPUTE, 0},
    [ALL_REDUCE] = {"all_reduce", "", 10, 0, PK_COMM, 0},
    [READ_FILE] = {"read file", "", 9, 0, PK_IO, 0},
    [DECODE] = {"decode", "", 6, 0, PK_DATA, 0},
    [CHECKPOINT] = {"checkpoint", "", 10, 0, PK_IO, 0},
    [LOSS] = {"loss", "", 4, 0, PKI_KIND_COUNTER, 0},
    [QUEUE] = {"loader.queue", "batches", 12, 7, PKI_KIND_COUNTER, 0},
    [MEMORY] = {"gpu0.memory", "bytes", 11, 5, PKI_KIND_COUNTER, 0},
};

static struct run {
    FILE *file;
    pki_chrome chrome;
    unsigned rank, ranks;
    uint32_t pid;
    int gpu;
    uint64_t now, step_start, sequence, messages, correlation, stream_free;
    uint64_t seed;
    pki_track calls, stream, copies, comm;
} run;

static pki_chrome_name name_of(void *user, uint32_t id)
{
    (void)user;
    return id < NAMES ? names[id] : names[NONE];
}

static uint64_t between(uint64_t least, uint64_t most)
{
    run.seed ^= run.seed << 13;
    run.seed ^= run.seed >> 7;
    run.seed ^= run.seed << 17;
    return least + run.seed % (most - least + 1);
}

static void put(const char *text, size_t length)
{
    if (fwrite(text, 1, length, run.file) != length) {
        perror("run_trace");
        exit(1);
    }
}

static void put_record(uint32_t tid, pki_record record, pki_record more)
{
    char text[PKI_EVENT_BYTES];
    put(text, pki_chrome_event(&run.chrome, text, tid, &record, &more));
}

static void region(uint32_t tid, uint32_t id, uint64_t start, uint64_t end, uint64_t bytes)
{
    unsigned type = bytes ? PKI_RECORD_REGION_WORK : PKI_RECORD_REGION;
    put_record(tid, (pki_record){start, end - start, PKI_WHAT(id, type, 1), 0},
               (pki_record){.start = bytes});
}

static void counter(uint32_t id, uint64_t at, double value)
{
    pki_record record = {.start = at, .what = PKI_WHAT(id, PKI_RECORD_COUNTER, 0)};
    memcpy(&record.value, &value, sizeof value);
    put_record(run.pid, record, (pki_record){0});
}

static void activity(const pki_track *track, pki_activity a, uint32_t asker)
{
    char text[PKI_EVENT_BYTES];
    a.name_length = strlen(a.name);
    put(text, pki_chrome_activity(&run.chrome, text, track, &a, asker ? names[asker].name : NULL,
                                  names[asker].length));
}

/* ---- the GPU ---- */

static void launch(const char *kernel, uint32_t asker, uint64_t at, uint64_t duration)
{
    if (!run.gpu)
        return;
    uint64_t id = ++run.correlation;
    uint64_t start = run.stream_free > at + 8 * US ? run.stream_free : at + 8 * US;
    activity(&run.calls,
             (pki_activity){.kind = PKI_ACTIVITY_RUNTIME,
                            .name = "cudaLaunchKernel",
                            .start = at,
                            .end = at + 4 * US,
                            .device = PKI_NO_DEVICE,
                            .correlation = id,
                            .flow = 1},
             asker);
    activity(&run.stream,
             (pki_activity){.kind = PKI_ACTIVITY_KERNEL,
                            .name = kernel,
                            .start = start,
                            .end = start + duration,
                            .context = 1,
                            .stream = STREAM,
                            .correlation = id,
                            .queued = at,
                            .grid = {64, 8, 1},
                            .block = {128, 1, 1},
                            .registers = 96,
                            .shared_bytes = 16384,
                            .flow = 1},
             asker);
    run.stream_free = start + duration;
}

static void copy_batch(uint64_t at)
{
    if (run.gpu)
        activity(&run.copies,
                 (pki_activity){.kind = PKI_ACTIVITY_MEMCPY,
                                .name = "Memcpy HtoD (Pinned -> Device)",
                                .start = at,
                                .end = at + 320 * US,
                                .context = 1,
                                .stream = COPIES,
                                .correlation = ++run.correlation,
                                .bytes = 8 * MS,
                                .copy = PKI_COPY_HTOD},
                 NEXT_BATCH);
}

/* The slowest rank is the one that nobody waits for. */
static uint64_t reduce(uint64_t at, uint64_t waits)
{
    uint64_t duration = 400 * US + waits + between(0, 40 * US), bytes = 64u << 20;
    const pki_activity_arg args[] = {{"Collective name", "all_reduce", 0},
                                     {"dtype", "BFloat16", 0},
                                     {"In msg nelems", NULL, (int64_t)bytes / 2},
                                     {"Out msg nelems", NULL, (int64_t)bytes / 2},
                                     {"Group size", NULL, run.ranks},
                                     {"Process Group Name", "world", 0},
                                     {"Process Group Description", "NCCL", 0},
                                     {"Rank", NULL, run.rank},
                                     {"Seq", NULL, (int64_t)++run.sequence},
                                     {"exposed_ns", NULL, (int64_t)duration / 2},
                                     {"timed by", "kernel", 0}};
    activity(&run.comm,
             (pki_activity){.kind = PKI_ACTIVITY_OPERATION,
                            .name = "all_reduce",
                            .start = at,
                            .end = at + duration,
                            .device = PKI_NO_DEVICE,
                            .bytes = bytes,
                            .args = args,
                            .arg_count = sizeof args / sizeof *args},
             BACKWARD);
    return duration;
}

/* A message of MPI; its numbers are this rank's alone. */
static void message(const char *op, const char *key, unsigned peer, int tag, uint64_t at,
                    uint64_t bytes)
{
    const pki_activity_arg args[] = {{"Collective name", op, 0},
                                     {"dtype", "Byte", 0},
                                     {"Group size", NULL, run.ranks},
                                     {"Process Group Name", "MPI_COMM_WORLD messages", 0},
                                     {"Process Group Description", "MPI", 0},
                                     {"Rank", NULL, run.rank},
                                     {"Seq", NULL, (int64_t)++run.messages},
                                     {key, NULL, peer},
                                     {"Tag", NULL, tag}};
    activity(&run.comm,
             (pki_activity){.kind = PKI_ACTIVITY_OPERATION,
                            .name = op,
                            .start = at,
                            .end = at + bytes / 10 + 2 * US,
                            .device = PKI_NO_DEVICE,
                            .bytes = bytes,
                            .args = args,
                            .arg_count = sizeof args / sizeof *args},
             FORWARD);
}

/* To the next rank and from the one before; every tenth time to rank 0, too. */
static void messages(uint64_t step, uint64_t at)
{
    unsigned before = (run.rank + run.ranks - 1) % run.ranks;
    message("send", "Dst Rank", (run.rank + 1) % run.ranks, 1, at, 1 << 20);
    message("recv", "Src Rank", before, 1, at + 200 * US, 1 << 20);
    if (step % 10 == 0 && run.rank > 0)
        message("send", "Dst Rank", 0, 2, at + 400 * US, 256 << 10);
    for (unsigned peer = 1; step % 10 == 0 && run.rank == 0 && peer < run.ranks; peer++)
        message("recv", "Src Rank", peer, 2, at + (300 + 100 * peer) * US, 256 << 10);
}

/* ---- a step ---- */

static void layers(uint32_t outer, uint32_t first, uint32_t second, const char *const kernels[2])
{
    uint64_t start = run.now, slow = run.rank == 2 ? 14 : 10;
    run.now += 2 * US;
    for (int i = 0; i < LAYERS; i++) {
        uint64_t at = run.now, time = between(90 * US, 110 * US) * slow / 10;
        region(run.pid, first, at, at + time, 0);
        launch(kernels[0], first, at + 5 * US, time * 3 / 4);
        at += time + US;
        time = between(140 * US, 160 * US);
        region(run.pid, second, at, at + time, 0);
        launch(kernels[1], second, at + 5 * US, time * 3 / 4);
        run.now = at + time + US;
    }
    region(run.pid, outer, start, run.now, 0);
}

static void load(uint64_t index)
{
    uint64_t start = run.now, wait = between(200 * US, 300 * US);
    uint32_t loader = run.pid + 1;
    if (index % 10 == 9)
        wait += 6 * MS;
    region(loader, READ_FILE, start, start + wait / 2, 4 * MS);
    region(loader, DECODE, start + wait / 2, start + wait - 10 * US, 0);
    run.now += wait;
    region(run.pid, NEXT_BATCH, start, run.now, 0);
    copy_batch(run.now);
    counter(QUEUE, run.now, (double)between(0, 4));
}

static void step(uint64_t index)
{
    static const char *const forward[] = {"flash_fwd_kernel<128, 64>", "gemm_bf16_128x128"};
    static const char *const backward[] = {"flash_bwd_kernel<128, 64>", "gemm_bf16_128x128"};
    uint64_t waits = run.ranks > 2 && run.rank != 2 ? LAYERS * 80 * US : 0;
    run.step_start = run.now;
    load(index);
    layers(FORWARD, ATTENTION, MLP, forward);
    if (run.ranks > 1)
        messages(index, run.step_start + 300 * US);
    layers(BACKWARD, ATTENTION_BACK, MLP_BACK, backward);
    if (index < 2)
        run.now += 20 * MS;
    uint64_t duration = run.ranks > 1 ? reduce(run.now, waits) : 0;
    region(run.pid, OPTIMIZER, run.now + duration / 2, run.now + duration / 2 + 300 * US, 0);
    launch("adam_kernel", OPTIMIZER, run.now + duration / 2, 200 * US);
    run.now += duration + 350 * US;
    if (index % 25 == 24) {
        region(run.pid, CHECKPOINT, run.now, run.now + 5 * MS, 64 * MS);
        run.now += 5 * MS;
    }
    counter(LOSS, run.now, 8.0 / (double)(index + 4));
    if (run.gpu)
        counter(MEMORY, run.now, 2e9 + (double)(index % 7) * 1e6);
    put_record(run.pid,
               (pki_record){run.step_start, run.now - run.step_start,
                            PKI_WHAT(NONE, PKI_RECORD_STEP, 0), 0},
               (pki_record){.start = index, .value = 32});
}

/* ---- the file ---- */

/* A track of the process itself has no name of a process. */
static pki_track track(uint32_t pid, uint32_t tid, const char *process, const char *thread)
{
    char text[PKI_EVENT_BYTES];
    pki_track t = {pid, tid, process, thread, 0};
    put(text, pki_chrome_track(text, &t));
    return t;
}

static void begin(void)
{
    char text[PKI_HEAD_BYTES];
    pki_chrome_run about = {.host = run.rank < 2 ? "node0" : "node1",
                            .program = "train",
                            .rank = (int32_t)run.rank,
                            .world_size = (int32_t)run.ranks,
                            .start_unix = UINT64_C(1795173753000000000) + run.rank * 250 * US,
                            .clock_name = "tsc",
                            .clock_hz = 1e9,
                            .clock_step_ns = 1,
                            .clock_uncertainty_ns = 40,
                            .complete = true};
    put(text, pki_chrome_head(&run.chrome, text, &about));
    put(text, pki_chrome_thread(&run.chrome, text, run.pid, "main", 0));
    put(text, pki_chrome_thread(&run.chrome, text, run.pid + 1, "loader", 1));
    if (run.ranks > 1)
        run.comm = track(run.pid, COMM, NULL, "NCCL world");
    if (!run.gpu)
        return;
    put(text, pki_chrome_measures(text, run.pid, 0, true));
    uint32_t gpu = GPU_PID_BASE + run.rank;
    run.calls = track(run.pid, CALLS, NULL, "CUDA calls");
    run.stream = track(gpu, STREAM, "GPU 0", "stream 7");
    run.copies = track(gpu, COPIES, NULL, "stream 13");
}

static void make(unsigned long steps)
{
    static pki_clock_map map; /* a tick is a nanosecond */
    pki_clock_map_init(&map, 1, (pki_clock_sample){0, 0, 0}, (pki_clock_sample){MS, MS, 0});
    map.step_ticks = 1;
    run.pid = 1000 + 10 * run.rank;
    run.seed = 88172645463325252u + run.rank;
    pki_chrome_init(&run.chrome, &map, run.pid, name_of, NULL);
    pki_chrome_set_rank(&run.chrome, (int32_t)run.rank, 0);
    run.now = 500 * US;
    begin();
    for (unsigned long i = 0; i < steps; i++)
        step(i);
    put(PKI_CHROME_TAIL, sizeof PKI_CHROME_TAIL - 1);
    pki_chrome_finish(&run.chrome);
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fprintf(stderr, "run_trace FILE RANK RANKS STEPS [cpu]\n");
        return 2;
    }
    run.rank = (unsigned)strtoul(argv[2], NULL, 10);
    run.ranks = (unsigned)strtoul(argv[3], NULL, 10);
    run.gpu = argc < 6;
    run.file = fopen(argv[1], "w");
    if (!run.file || setvbuf(run.file, NULL, _IOFBF, BUFFER)) {
        fprintf(stderr, "run_trace: %s: %s\n", argv[1], strerror(errno));
        return 1;
    }
    make(strtoul(argv[4], NULL, 10));
    return fclose(run.file) != 0;
}
