/* tests/tools/pki_job_files.c - the files of a forged job, a folder for each thousand ranks.
 *
 *     pki_job_files FOLDER [NAME=NUMBER ...]     ranks, steps, seed, slow, culprits, varying, link,
 *                                            per_host, regions, calls, quiet, report, host, stage
 */
#include "job_forge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "out/report/report.h"

typedef struct given {
    forge forge;
    double report; /* whole reports, not files of ranks */
} given;

static void take(given *g, const char *name, double value)
{
    forge *f = &g->forge;
    const struct {
        const char *name;
        size_t *at;
    } sizes[] = {{"ranks", &f->ranks},       {"steps", &f->steps},     {"culprits", &f->culprits},
                 {"per_host", &f->per_host}, {"regions", &f->regions}, {"calls", &f->calls}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (strcmp(name, sizes[i].name) == 0)
            *sizes[i].at = (size_t)value;
    f->seed = strcmp(name, "seed") == 0 ? (uint64_t)value : f->seed;
    f->slow = strcmp(name, "slow") == 0 ? value : f->slow;
    f->link = strcmp(name, "link") == 0 ? value : f->link;
    f->stage = strcmp(name, "stage") == 0 ? (enum forge_stage)value : f->stage;
    f->varying = strcmp(name, "varying") == 0 ? value != 0 : f->varying;
    f->quiet = strcmp(name, "quiet") == 0 ? value != 0 : f->quiet;
    f->host = strcmp(name, "host") == 0 ? value != 0 : f->host;
    f->told = strcmp(name, "told") == 0 ? value != 0 : f->told;
    f->uneven = strcmp(name, "uneven") == 0 ? value : f->uneven;
    f->crowd = strcmp(name, "crowd") == 0 && value != 0 ? FORGE_CROWD_TOLD : f->crowd;
    g->report = strcmp(name, "report") == 0 ? value : g->report;
}

static int write_rank(const given *g, const char *folder, size_t rank, const pki_summary *s)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%03zu", folder, rank / 1000);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%03zu/r-%zu%s", folder, rank / 1000, rank,
             g->report != 0 ? ".json" : PKI_RANK_SUFFIX);
    FILE *file = fopen(path, "w");
    if (!file)
        return -1;
    int error = g->report != 0 ? pki_report_json(s, file) : pki_report_rank(s, file);
    return fclose(file) == 0 ? error : -1;
}

int main(int argc, char **argv)
{
    given g = {.forge = {.seed = 1, .ranks = 8, .steps = 50}};
    for (int i = 2; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (!value)
            return 2;
        *value++ = '\0';
        take(&g, argv[i], strtod(value, NULL));
    }
    if (argc < 2)
        return 2;
    pki_summary *ranks = calloc(g.forge.ranks, sizeof *ranks);
    bool *culprit = calloc(g.forge.ranks, sizeof *culprit);
    int error = 0;
    forge_make(&g.forge, ranks, culprit);
    for (size_t r = 0; r < g.forge.ranks; r++) {
        error |= write_rank(&g, argv[1], r, &ranks[r]);
        if (culprit[r])
            printf("%zu\n", r);
        pki_summary_finish(&ranks[r]);
    }
    free(ranks);
    free(culprit);
    return error ? 1 : 0;
}
