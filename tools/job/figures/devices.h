/* tools/job/figures/devices.h - what the devices of all ranks did in a step: where its time went.
 *
 * Of each device, per steady step, from the figures of its rank's report:
 *
 *     step = compute + communication + memory + idle
 *
 *     compute        a kernel ran that is no collective: busy - communication - memory
 *     communication  a collective was in flight, and nothing computed: comm_exposed
 *     memory         something was copied, and no kernel ran: copy_alone
 *     idle           nothing ran: sync_gaps (the host waited for the device), launch_gaps (gaps of
 *                    50 us or less, no such wait in them), the rest
 *     overlap        comm_hidden / (comm_hidden + comm_exposed)
 */
#pragma once

#include "job/job.h"

enum {
    JOB_DEVICE_COMPUTE,
    JOB_DEVICE_COMMUNICATION,
    JOB_DEVICE_MEMORY,
    JOB_DEVICE_IDLE,
    JOB_DEVICE_SYNC_GAPS,
    JOB_DEVICE_LAUNCH_GAPS,
    JOB_DEVICE_PARTS
};

/* "compute", ... */
extern const char *const job_device_parts[JOB_DEVICE_PARTS];

/* ns per step; -1: not known. */
typedef struct job_device {
    uint32_t number;
    bool measured; /* by CUPTI; else by stream spans, where memory and the gaps are not known */
    uint64_t steps;
    double step, parts[JOB_DEVICE_PARTS];
    double hidden, communicated; /* of collectives: what was hidden, and all of it */
} job_device;

/* Those of which it is known when they were busy. */
void job_devices_copy(job_rank *to, const pki_summary *from);

/* Of the devices of a rank together: a part as a share of their steps; -1: not known. */
double job_devices_share(const job_rank *r, unsigned part);

/* Of the time of their collectives the share that was hidden; -1: there were none. */
double job_devices_overlap(const job_device *all, size_t count);
