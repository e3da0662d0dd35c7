/* bench/ranks.c - files of a job's ranks, for `pk job`: 95 regions, 50 steps, each rank a session.
 *
 *     bench-ranks FOLDER [RANKS]       FOLDER/0/0.rank.json and so on (default 10,240 ranks)
 */
#include <pk/pk.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define REGIONS 95
#define STEPS 50

static pk_region *regions[REGIONS];

static void name_regions(void)
{
    for (int i = 0; i < REGIONS; i++) {
        char name[32];
        snprintf(name, sizeof name, "layer %d of the model", i);
        regions[i] = pk_region_named_of(i % 8 == 7 ? PK_COMM : PK_COMPUTE, name);
    }
}

static void work(volatile int *sum, int n)
{
    for (int i = 0; i < n; i++)
        *sum += i;
}

static int run(const char *folder, int rank, int ranks)
{
    char path[4096];
    volatile int sum = 0;
    snprintf(path, sizeof path, "%s/%d", folder, rank / 1000);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%d/%%r.rank.json", folder, rank / 1000);
    if (pk_start(pk_options(.report_path = path, .rank = rank, .world_size = ranks,
                            .backends = "none")) != PK_OK)
        return -1;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < REGIONS; i++) {
            pk_region_begin(regions[i]);
            work(&sum, 20 + 3 * i % 50);
            pk_region_end(regions[i]);
        }
        pk_step(1);
    }
    return pk_stop() == PK_OK ? 0 : -1;
}

int main(int argc, char **argv)
{
    int ranks = argc > 2 ? atoi(argv[2]) : 10240;
    if (argc < 2 || (mkdir(argv[1], 0777) != 0 && argc < 3)) {
        fprintf(stderr, "ranks FOLDER [RANKS]\n");
        return 2;
    }
    name_regions();
    for (int rank = 0; rank < ranks; rank++)
        if (run(argv[1], rank, ranks) != 0) {
            fprintf(stderr, "rank %d: %s\n", rank, pk_error_message());
            return 1;
        }
    return 0;
}
