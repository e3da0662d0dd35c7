#include "job/figures/devices.h"

#include "memory.h"

const char *const job_device_parts[JOB_DEVICE_PARTS] = {"compute", "communication", "memory",
                                                        "idle",    "sync_gaps",     "launch_gaps"};

static double mean_of(const pki_gpu_row *g, int figure)
{
    return g->per_step[figure].count ? g->per_step[figure].mean : -1;
}

static double known(double value)
{
    return value > 0 ? value : 0;
}

static job_device device_of(const pki_gpu_row *g)
{
    double busy = mean_of(g, PKI_GPU_BUSY), exposed = mean_of(g, PKI_GPU_COMM_EXPOSED);
    double hidden = mean_of(g, PKI_GPU_COMM_HIDDEN), copied = mean_of(g, PKI_GPU_COPY_ALONE);
    return (job_device){
        .number = g->device,
        .measured = g->measured,
        .steps = g->per_step[PKI_GPU_STEP].count,
        .step = mean_of(g, PKI_GPU_STEP),
        .parts = {[JOB_DEVICE_COMPUTE] = known(busy - known(exposed) - known(copied)),
                  [JOB_DEVICE_COMMUNICATION] = known(exposed),
                  [JOB_DEVICE_MEMORY] = copied,
                  [JOB_DEVICE_IDLE] = mean_of(g, PKI_GPU_IDLE),
                  [JOB_DEVICE_SYNC_GAPS] = mean_of(g, PKI_GPU_SYNC_GAPS),
                  [JOB_DEVICE_LAUNCH_GAPS] = mean_of(g, PKI_GPU_LAUNCH_GAPS)},
        .hidden = known(hidden),
        .communicated = known(hidden) + known(exposed)};
}

void job_devices_copy(job_rank *to, const pki_summary *from)
{
    to->devices = memory_zeroed(from->gpu_count, sizeof *to->devices);
    for (size_t i = 0; i < from->gpu_count; i++)
        if (from->gpus[i].per_step[PKI_GPU_BUSY].count)
            to->devices[to->device_count++] = device_of(&from->gpus[i]);
}

double job_devices_share(const job_rank *r, unsigned part)
{
    double sum = 0, steps = 0;
    for (size_t i = 0; i < r->device_count; i++) {
        const job_device *d = &r->devices[i];
        if (d->parts[part] < 0 || d->step <= 0)
            continue;
        sum += d->parts[part] * (double)d->steps;
        steps += d->step * (double)d->steps;
    }
    return steps > 0 ? sum / steps : -1;
}

double job_devices_overlap(const job_device *all, size_t count)
{
    double hidden = 0, communicated = 0;
    for (size_t i = 0; i < count; i++) {
        hidden += all[i].hidden * (double)all[i].steps;
        communicated += all[i].communicated * (double)all[i].steps;
    }
    return communicated > 0 ? hidden / communicated : -1;
}
