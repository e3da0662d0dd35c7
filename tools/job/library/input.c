/* tools/job/library/input.c - what is not asked for here: files, another run beside this one, and
 * the job's life over its restarts. */
#include "job/job.h"
#include "job/forms/json.h"
#include "job/figures/life.h"

bool job_load(const char *path, job_take *take, void *user, complaint *why)
{
    (void)path, (void)take, (void)user;
    return complaint_set(why, "is a file");
}

void against_json(const against *a, const char *other, size_t most, pki_json *j)
{
    (void)a, (void)other, (void)most, (void)j;
}

bool job_life_read(const char *path, job_life *life)
{
    (void)path, (void)life;
    return false;
}

void job_lives_text(const job *j, FILE *to)
{
    (void)j, (void)to;
}

void job_lives_json(const job *j, pki_json *json)
{
    (void)j, (void)json;
}
