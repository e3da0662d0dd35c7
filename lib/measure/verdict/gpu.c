/* lib/measure/verdict/gpu.c - what the figures of devices mean */
#include <string.h>

#include "comm/model/communicator.h"
#include "measure/verdict/rules.h"
#include "measure/verdict/verdict.h"

/* ---- a GPU told of an error ---- */

/* Of the worst of its XIDs nothing is known but the number: the first one is named. */
static bool gpu_error(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_event_row *first = NULL;
    uint64_t all = 0;
    for (size_t i = 0; i < s->gpu_events.row_count; i++) {
        const pki_gpu_event_row *row = &s->gpu_events.rows[i];
        if (strcmp(row->what, "xid") != 0)
            continue;
        first = first ? first : row;
        all += row->count;
    }
    if (!first)
        return true;
    pki_sentence_add(words, "GPU %u told of an error %s into the run: %s; %s in all.",
                     first->device, TIME((double)first->first), first->text,
                     pki_figure_count(all).text);
    return pki_verdict_add_sentence(words, s, "gpu-error", PKI_WARN, (double)all, 0);
}

/* ---- a GPU's clocks were held down, and steps were slower for it ---- */

#define HELD_STEPS 10 /* at least so many of both sorts */
#define HELD_SLOWER 1.05

static bool gpu_throttled(pki_summary *s, pki_sentence *words)
{
    const pki_energy_summary *e = &s->energy;
    if (e->held_steps < HELD_STEPS || e->free_steps < HELD_STEPS)
        return true;
    double held = (double)e->held_time / (double)e->held_steps;
    double other = (double)e->free_time / (double)e->free_steps;
    if (!(held > HELD_SLOWER * other))
        return true;
    pki_sentence_add(
        words,
        "A GPU's clocks were held down by %s in %s of %s steps, which took %s on average,"
        " %s the others (threshold 1.05 x; %s).",
        e->held_by ? e->held_by : "something", pki_figure_count(e->held_steps).text,
        pki_figure_count(e->held_steps + e->free_steps).text, TIME(held),
        pki_figure_ratio(held / other).text, TIME(other));
    return pki_verdict_add_sentence(words, s, "gpu-throttled", PKI_WARN, held / other, HELD_SLOWER);
}

/* ---- gpu memory ---- */

/* A device's memory grows without end, is nearly used up, or is
 * taken from the driver in every step. */

#define BYTES(n) (pki_figure_scaled((double)(n), "B").text)

/* Of a region, its name in quotation marks where it has one. */
#define WHERE(r)                                                                                   \
    is_named(r) ? "in \"" : "", is_named(r) ? (r)->name : "outside of all regions",                \
        is_named(r) ? "\"" : ""

static bool is_named(const pki_memory_region *r)
{
    return r->name && r->name[0];
}

/* The region that grows most; *place: where. */
static const pki_memory_region *growing(const pki_gpu_memory_summary *m,
                                        const pki_gpu_memory_place **place)
{
    const pki_memory_region *most = NULL;
    for (size_t i = 0; i < m->place_count; i++)
        for (size_t r = 0; r < m->places[i].region_count; r++) {
            const pki_memory_region *region = &m->places[i].regions[r];
            if (!(region->growth.per_step > (most ? most->growth.per_step : 0)))
                continue;
            most = region;
            *place = &m->places[i];
        }
    return most;
}

static bool gpu_leak(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_memory_place *p = NULL;
    const pki_memory_region *r = growing(&s->gpu_memory, &p);
    if (!r || s->gpu_memory.dropped || s->gpu_memory.lost) /* frees may be among them */
        return true;
    pki_sentence_add(words,
                     "Unfreed CUDA memory on %s %s%s%s grows by %s a step, in"
                     " each third of the last %s steps (%s standard deviations from no trend,"
                     " threshold 4.5): %s live at the end.",
                     p->place, WHERE(r), BYTES(r->growth.per_step), COUNT(r->growth.steps),
                     pki_figure_scaled(r->growth.z, "").text, BYTES(r->live));
    return pki_verdict_add_sentence(words, s, "gpu-leak", PKI_WARN, r->growth.z, PKI_GROWTH_Z);
}

static uint64_t most_used(const pki_gpu_memory_place *p)
{
    return PKI_MAX(p->most_held, p->in_use);
}

static double share_of(const pki_gpu_memory_place *p)
{
    return p->total ? (double)most_used(p) / (double)p->total : 0;
}

static bool gpu_near_limit(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_memory_summary *m = &s->gpu_memory;
    const pki_gpu_memory_place *p = NULL;
    for (size_t i = 0; i < m->place_count; i++)
        if (share_of(&m->places[i]) > (p ? share_of(p) : PKI_NEAR_LIMIT))
            p = &m->places[i];
    if (!p)
        return true;
    pki_sentence_add(
        words,
        "%s of %s's memory were in use, %s of %s (threshold 90 %%)%s: a somewhat larger"
        " input ends the run.",
        BYTES(most_used(p)), p->place, PERCENT(share_of(p)), BYTES(p->total),
        p->in_use > p->most_held ? ", by all processes" : "");
    if (p->region_count && p->regions[0].at_peak)
        pki_sentence_add(words, " Most of what was allocated at its peak, %s, was %s%s%s.",
                         BYTES(p->regions[0].at_peak), WHERE(&p->regions[0]));
    if (p->unused > 0.1 && p->most_reserved - p->used_then > p->total / 100)
        pki_sentence_add(words, " Memory pools kept %s of it without using it.",
                         BYTES(p->most_reserved - p->used_then));
    return pki_verdict_add_sentence(words, s, "gpu-near-memory-limit", PKI_WARN, share_of(p),
                                    PKI_NEAR_LIMIT);
}

static bool gpu_allocates(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_memory_summary *m = &s->gpu_memory;
    const pki_gpu_memory_place *p = NULL;
    const pki_memory_region *most = NULL;
    for (size_t i = 0; i < m->place_count; i++)
        if (m->places[i].steady > (p ? p->steady : PKI_GPU_ALLOCATES))
            p = &m->places[i];
    if (!p || m->steady_steps < PKI_FEW_STEPS)
        return true;
    for (size_t i = 0; i < p->region_count; i++)
        if (!most || p->regions[i].steady > most->steady)
            most = &p->regions[i];
    pki_sentence_add(
        words,
        "%s allocations of CUDA's a step on %s, none of them from a memory pool, long after"
        " the first ones (threshold 0.5); most, %s, %s%s%s. Each asks the driver, and the"
        " free of each may wait for the device: allocate before the loop, or from a pool"
        " (cudaMallocAsync).",
        pki_figure_scaled(p->steady, "").text, p->place, pki_figure_scaled(most->steady, "").text,
        WHERE(most));
    return pki_verdict_add_sentence(words, s, "gpu-allocates", PKI_WARN, p->steady,
                                    PKI_GPU_ALLOCATES);
}

/* ---- what the figures of devices mean ---- */

#define KERNELS_MOST 3

static bool is_better(const pki_gpu_row *a, const pki_gpu_row *b)
{
    if (a->measured != b->measured)
        return a->measured;
    return a->per_step[PKI_GPU_BUSY].sum > b->per_step[PKI_GPU_BUSY].sum;
}

/* Of one that has only had collectives, it is not known when it is busy. */
static bool is_known(const pki_gpu_row *gpu)
{
    return gpu->per_step[PKI_GPU_STEP].sum > 0 &&
           gpu->per_step[PKI_GPU_BUSY].sum + gpu->per_step[PKI_GPU_IDLE].sum > 0;
}

static const pki_gpu_row *judged(const pki_summary *s)
{
    const pki_gpu_row *found = NULL;
    for (size_t i = 0; i < s->gpu_count; i++)
        if (is_known(&s->gpus[i]) && (!found || is_better(&s->gpus[i], found)))
            found = &s->gpus[i];
    return found;
}

static const pki_gpu_row *measured(const pki_summary *s)
{
    const pki_gpu_row *gpu = judged(s);
    return gpu && gpu->measured ? gpu : NULL;
}

/* Of the steps' time. */
static double gpu_share_of(const pki_gpu_row *gpu, enum pki_gpu_figure figure)
{
    return gpu->per_step[figure].sum / gpu->per_step[PKI_GPU_STEP].sum;
}

bool pki_gpu_is_busy(const pki_summary *s, bool has_to_be_measured)
{
    const pki_gpu_row *gpu = judged(s);
    return gpu && (gpu->measured || !has_to_be_measured) &&
           gpu_share_of(gpu, PKI_GPU_BUSY) > PKI_GPU_BUSY_SHARE;
}

void pki_sentence_add_gpu(pki_sentence *words, const pki_summary *s)
{
    const pki_gpu_row *gpu = judged(s);
    if (gpu && gpu->measured)
        pki_sentence_add(words, " GPU %u is busy for %s of it.", gpu->device,
                         PERCENT(gpu_share_of(gpu, PKI_GPU_BUSY)));
    else if (gpu)
        pki_sentence_add(words, " Stream spans cover %s of it on GPU %u.",
                         PERCENT(gpu_share_of(gpu, PKI_GPU_BUSY)), gpu->device);
}

/* ---- communication ---- */

/* The one with the most of it, of those that CUPTI has measured if there are any. */
static const pki_gpu_row *most_exposed(const pki_summary *s)
{
    const pki_gpu_row *found = NULL;
    for (size_t i = 0; i < s->gpu_count; i++) {
        const pki_gpu_row *gpu = &s->gpus[i];
        if (!(gpu->per_step[PKI_GPU_STEP].sum > 0))
            continue;
        if (!found || gpu->measured > found->measured ||
            (gpu->measured == found->measured &&
             gpu_share_of(gpu, PKI_GPU_COMM_EXPOSED) > gpu_share_of(found, PKI_GPU_COMM_EXPOSED)))
            found = gpu;
    }
    return found;
}

/* Of a device: those of other libraries, MPI's above all, are not what the figure is made of. */
static const pki_comm_call_row *slowest_collective(const pki_summary *s)
{
    for (size_t i = 0; i < s->comm.slowest_count; i++) {
        const pki_comm_call_row *slow = &s->comm.slowest[i];
        const pki_comm_row *comm =
            slow->comm < s->comm.comm_count ? &s->comm.comms[slow->comm] : NULL;
        if (comm && (comm->on_stream || strcmp(comm->library, "NCCL") == 0))
            return slow;
    }
    return NULL;
}

/* " The longest one, all_reduce of 4.19 MB in "backward", took 2.44 ms." */
static void add_slowest_collective(pki_sentence *words, const pki_summary *s)
{
    const pki_comm_call_row *slow = slowest_collective(s);
    if (!slow)
        return;
    pki_sentence_add(words, " The longest one, %s of %s", pki_comm_op_name(slow->op),
                     pki_figure_scaled((double)slow->bytes, "B").text);
    if (slow->region && *slow->region)
        pki_sentence_add(words, " in \"%.60s\"", slow->region);
    pki_sentence_add(words, ", took %s.", TIME((double)slow->duration));
}

static bool comm_exposed(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_row *gpu = most_exposed(s);
    double share = gpu ? gpu_share_of(gpu, PKI_GPU_COMM_EXPOSED) : 0;
    if (!(share > PKI_COMM_EXPOSED_SHARE))
        return true;
    pki_sentence_add(
        words,
        "Communication exposed: for %s of the step GPU %u has collectives in flight and"
        " no %s on another stream beside (threshold 10 %%); hidden: %s.",
        PERCENT(share), gpu->device, gpu->measured ? "kernel" : "stream span",
        PERCENT(gpu_share_of(gpu, PKI_GPU_COMM_HIDDEN)));
    add_slowest_collective(words, s);
    pki_sentence_add(words,
                     " Start each as soon as its data is ready, on a stream of its own, while"
                     " others compute; or send less. A rank that comes late makes the others'"
                     " collectives long: compare the ranks.");
    return pki_verdict_add_sentence(words, s, "communication-exposed", PKI_WARN, share,
                                    PKI_COMM_EXPOSED_SHARE);
}

/* ---- why it is idle ---- */

static bool launch_bound(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_row *gpu = measured(s);
    double share = gpu ? gpu_share_of(gpu, PKI_GPU_LAUNCH_GAPS) : 0;
    double kernels = gpu ? gpu->per_step[PKI_GPU_KERNELS].sum : 0;
    double small = gpu ? gpu->per_step[PKI_GPU_SHORT_KERNELS].sum : 0;
    if (!(share > PKI_LAUNCH_GAP_SHARE) || !(small >= PKI_SHORT_KERNELS_SHARE * kernels))
        return true;
    pki_sentence_add(
        words,
        "GPU %u is idle for %s of the step in gaps of 50 us or less (threshold 20 %%), and %s of its"
        " %s kernels per step are shorter than 10 us: launching them takes longer than they do."
        " Capture them in a CUDA graph, fuse them, or give each more to do.",
        gpu->device, PERCENT(share), PERCENT(small / kernels),
        pki_figure_scaled(gpu->per_step[PKI_GPU_KERNELS].mean, "").text);
    return pki_verdict_add_sentence(words, s, "launch-bound", PKI_WARN, share,
                                    PKI_LAUNCH_GAP_SHARE);
}

/* "; host to device 1.20 GB per step at 12.3 GB/s" */
static void add_direction(pki_sentence *words, const pki_gpu_row *gpu, enum pki_gpu_figure time,
                          const char *direction)
{
    const pki_dist *ns = &gpu->per_step[time], *bytes = &gpu->per_step[time + 1];
    if (!(ns->sum > 0))
        return;
    pki_sentence_add(words, "; %s %s per step at %s", direction,
                     pki_figure_scaled(bytes->mean, "B").text,
                     pki_figure_scaled(bytes->sum / (ns->sum / 1e9), "B/s").text);
}

static bool copy_bound(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_row *gpu = measured(s);
    double share = gpu ? gpu_share_of(gpu, PKI_GPU_COPY_ALONE) : 0;
    if (!(share > PKI_COPY_SHARE))
        return true;
    pki_sentence_add(words,
                     "GPU %u only copies, with no kernel beside, for %s of the step (threshold"
                     " 20 %%)",
                     gpu->device, PERCENT(share));
    add_direction(words, gpu, PKI_GPU_H2D_TIME, "host to device");
    add_direction(words, gpu, PKI_GPU_D2H_TIME, "device to host");
    add_direction(words, gpu, PKI_GPU_D2D_TIME, "within the device");
    add_direction(words, gpu, PKI_GPU_P2P_TIME, "between devices");
    pki_sentence_add(words,
                     ". Copy on a stream of its own, from pinned memory, while kernels run; or"
                     " copy less.");
    return pki_verdict_add_sentence(words, s, "copy-bound", PKI_WARN, share, PKI_COPY_SHARE);
}

static bool sync_bound(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_row *gpu = measured(s);
    double share = gpu ? gpu_share_of(gpu, PKI_GPU_SYNC_GAPS) : 0;
    if (!(share > PKI_SYNC_SHARE))
        return true;
    pki_sentence_add(
        words,
        "GPU %u is idle for %s of the step right after a thread waited for it (threshold 20 %%);"
        " the waits take %s of the step. A thread that waits launches nothing, so the GPU runs dry: wait"
        " less often (results read back, blocking copies, cudaDeviceSynchronize), or launch the"
        " next work before.",
        gpu->device, PERCENT(share), PERCENT(gpu_share_of(gpu, PKI_GPU_SYNC)));
    return pki_verdict_add_sentence(words, s, "sync-bound", PKI_WARN, share, PKI_SYNC_SHARE);
}

/* What the loop does meanwhile, for all that is known: the kind with the most time. */
static void add_meanwhile(pki_sentence *words, const pki_summary *s)
{
    uint64_t all = 0;
    int most = 0;
    for (int k = 0; k < PKI_SHARES; k++) {
        all += s->steps.kinds[k];
        if (s->steps.kinds[k] > s->steps.kinds[most])
            most = k;
    }
    if (all > 0)
        pki_sentence_add(words, " Of the loop's own time %s is %s.",
                         PERCENT((double)s->steps.kinds[most] / (double)all), pki_kind_names[most]);
}

static bool add_idle(pki_summary *s, const pki_gpu_row *gpu, double share, pki_sentence *words,
                     pki_severity severity)
{
    const pki_dist *longest = &gpu->per_step[PKI_GPU_LONGEST_GAP];
    pki_sentence_add(
        words, "GPU %u is idle for %s of the step (threshold 30 %%), in %s gaps per step",
        gpu->device, PERCENT(share), pki_figure_scaled(gpu->per_step[PKI_GPU_GAPS].mean, "").text);
    if (longest->p50 > 0)
        pki_sentence_add(words, "; the longest takes %s (median).", TIME(longest->p50));
    else /* it is idle in few steps, for long */
        pki_sentence_add(words, "; most steps have none, the longest took %s.", TIME(longest->max));
    add_meanwhile(words, s);
    pki_sentence_add(words, " Look in the trace at what the CPU does in the longest gaps.");
    return pki_verdict_add_sentence(words, s, "gpu-idle", severity, share, PKI_GPU_IDLE_SHARE);
}

static bool gpu_idle(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_row *gpu = judged(s);
    double share = gpu ? gpu_share_of(gpu, PKI_GPU_IDLE) : 0;
    if (!(share > PKI_GPU_IDLE_SHARE))
        return true;
    if (gpu->measured)
        return add_idle(s, gpu, share, words, pki_verdict_has_warning(s) ? PKI_NOTE : PKI_WARN);
    pki_sentence_add(words,
                     "No stream span covers %s of the step on GPU %u (threshold 30 %%): it is idle"
                     " then, or runs what is in no pk_gpu_begin and _end. CUPTI can tell:"
                     " PK_CUPTI_STEPS=100-104, say.",
                     PERCENT(share), gpu->device);
    return pki_verdict_add_sentence(words, s, "gpu-idle", PKI_NOTE, share, PKI_GPU_IDLE_SHARE);
}

/* ---- and when it is not ---- */

/* `: "gemm" 41.0 %, "softmax" 12.3 % of the kernels' time` */
static void add_kernels(pki_sentence *words, const pki_summary *s)
{
    double all = 0;
    for (size_t i = 0; i < s->kernel_count; i++)
        all += s->kernels[i].time.sum;
    for (size_t i = 0; i < s->kernel_count && i < KERNELS_MOST && all > 0; i++)
        pki_sentence_add(words, "%s\"%.80s\" %s", i ? ", " : ", of the kernels' time ",
                         s->kernels[i].name, PERCENT(s->kernels[i].time.sum / all));
}

/* A graph as a whole is busy from its first kernel to its last. */
static void add_graphs(pki_sentence *words, const pki_gpu_row *gpu)
{
    if (pki_gpu_graphs_told(gpu))
        pki_sentence_add(words,
                         ". %s of that are CUDA graphs as wholes, gaps and waiting for other ranks"
                         " inside included: PK_CUPTI_GRAPH_NODES=1 takes them apart",
                         PERCENT(pki_gpu_graphs_share(gpu)));
}

bool pki_verdict_gpu_bound(pki_summary *s, pki_sentence *words)
{
    const pki_gpu_row *gpu = judged(s);
    double share = gpu ? gpu_share_of(gpu, PKI_GPU_BUSY) : 0;
    if (!(share > PKI_GPU_BUSY_SHARE) || pki_verdict_has_warning(s))
        return true;
    if (gpu->measured) {
        pki_sentence_add(words,
                         "GPU %u runs kernels or copies for %s of the step (threshold 80 %%)",
                         gpu->device, PERCENT(share));
        add_kernels(words, s);
        add_graphs(words, gpu);
        pki_sentence_add(words, ". Faster steps need faster kernels, or fewer.");
    } else {
        pki_sentence_add(
            words,
            "Stream spans cover %s of the step on GPU %u (threshold 80 %%), gaps between"
            " the kernels in them included. CUPTI can take them apart:"
            " PK_CUPTI_STEPS=100-104, say.",
            PERCENT(share), gpu->device);
    }
    return pki_verdict_add_sentence(words, s, "gpu-bound", PKI_GOOD, share, PKI_GPU_BUSY_SHARE);
}

const pki_rule_row pki_gpu_step_rules[] = {
    {.say = comm_exposed, .yielding = PKI_YIELDS_SHARE},
    {.say = launch_bound, .yielding = PKI_YIELDS_SHARE},
    {.say = copy_bound, .yielding = PKI_STANDS},
    {.say = sync_bound, .yielding = PKI_YIELDS_SHARE},
    {.say = gpu_idle, .yielding = PKI_YIELDS_SHARE},
    {.say = gpu_error, .yielding = PKI_STANDS},
    {.say = gpu_throttled, .yielding = PKI_STANDS},
    {0},
};

const pki_rule_row pki_gpu_memory_rules[] = {
    {.say = gpu_leak, .yielding = PKI_STANDS},
    {.say = gpu_near_limit, .yielding = PKI_STANDS},
    {.say = gpu_allocates, .yielding = PKI_STANDS},
    {0},
};
