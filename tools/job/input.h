/* tools/job/input.h - the ranks of a job from files of any kind. */
#pragma once

#include "complaint.h"
#include "job/job.h"

/* Paths of files and folders. False if there is nothing in them, and why. */
bool job_read(pki_job *j, char **paths, size_t count, const pki_job_steps *steps, complaint *why);

/* One file. Each rank that is in it is given to `take`, which finishes it, and hears of so many
 * before it; it holds run, stages, comm and regions at least. False, and why: it, or what would
 * have come behind those that were given, cannot be read. */
bool job_load(const char *path, pki_job_take *take, void *user, complaint *why);
