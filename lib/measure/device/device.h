/* lib/measure/device/device.h - what devices did, alone and in each step of the loop.
 *
 *     pki_device *d = pki_device_create(PKI_DEVICE_ITEMS);
 *     pki_device_add(d, &activity);            // in any order
 *     pki_device_step(d, &step);               // in order
 *     pki_device_finalised(d, ns);               // all that began before that has been added
 *     pki_device_fill(d, warmup, name_of, user, &summary);
 *
 * What a device does in a step may be known long after the step is over. So activities wait as
 * intervals until their step is *finalised*; then the step is swept: for how long anything ran on
 * the device (streams united), the gaps between, kernels, copies by direction, waits. A step is
 * swept once; what is added for it later counts in the totals, not in the step, and is counted as
 * late.
 *
 * There are two views of the same device: as *measured* (kernels, copies: CUPTI), and by *stream
 * spans* (regions on a stream, and collectives, from event to event). They are never mixed. A step
 * is measured if measuring was on from its start to its end, see pki_device_measures. Steps that
 * ended before the device's first activity of a view are not in that view.
 *
 * A collective is *hidden* while a stream computes that carries none itself, else *exposed*. As
 * measured, collectives are the kernels of NCCL, and kernels, graphs and memsets compute; by stream
 * spans, they are PKI_ACTIVITY_OPERATION with a device, and regions on streams compute.
 *
 * Bounded: so many intervals wait; when there are more, what waits is summed up and the intervals
 * go, the oldest first, finalised or not.
 *
 * Threads: one at a time (the fold lock). Every function takes NULL for d, and then does nothing.
 * Failure: what finds no memory is missing in steps and distributions, and is counted.
 */
#pragma once

#include "core/activity.h"
#include "measure/steps/steps.h"
#include "measure/summary.h"

#define PKI_DEVICES_MOST 64
#define PKI_DEVICE_ITEMS (1u << 20) /* 32 bytes each, when as many wait */
#define PKI_DEVICE_KERNELS 1024     /* names; others share one row */

typedef struct pki_device pki_device;

/* All devices of the process. NULL without memory. */
pki_device *pki_device_create(size_t items_most);
void pki_device_destroy(pki_device *d);

/* As of pki_steps_expect_warmup: before the first step. */
void pki_device_expect_warmup(pki_device *d, uint32_t warmup_steps);

void pki_device_add(pki_device *d, const pki_activity *activity);

/* Is this the name of the counter of a device's memory in use, "gpu0.memory"? Of which? */
bool pki_device_is_memory(const char *counter, uint32_t *device);

/* So many bytes of it are in use from this moment on. */
void pki_device_memory(pki_device *d, uint32_t device, uint64_t ns, double bytes);

/* A step of the loop, in order. What ran in one that is not of the usual kind, or between two, is
 * in no step's figures. */
void pki_device_step(pki_device *d, const pki_step *step);

/* Is anybody there who may tell later what a device did in a step? At first: yes. While there is
 * not, a step is known as it ends, and none waits. */
void pki_device_await(pki_device *d, bool anybody);

/* All that began before this moment has been added. */
void pki_device_finalised(pki_device *d, uint64_t ns);

/* Kernels and copies are measured from this moment on, until that one. Said again the begin may be
 * later, and the end earlier. Without a call: from the first kernel or copy on, for good. */
void pki_device_measures(pki_device *d, uint64_t ns, bool on);

/* Devices that have done something. */
size_t pki_device_how_many(const pki_device *d);

/* Is there no room for one more? Then, once all steps that have ended are known: */
bool pki_device_full(const pki_device *d);
void pki_device_make_room(pki_device *d);

/* A region's spans on streams, and the kernels that were launched in it; is there any? */
bool pki_device_has_region(const pki_device *d, uint32_t region);
pki_dist pki_device_region_spans(const pki_device *d, uint32_t region);
pki_dist pki_device_region_kernels(const pki_device *d, uint32_t region);

/* Replaces out->gpus and out->kernels, and sets what out->activities says of figures. warmup: so
 * many first steps are left out (out->steps.warmup). False without memory: there are none then. */
bool pki_device_fill(const pki_device *d, uint64_t warmup, pki_steps_name *name, void *user,
                     pki_summary *out);
