/* What the calls answer with PK_DISABLE, as C and as C++, linked without libpk. Included by no one;
 * built by disabled.py. */
#include <pk/comm.h>
#include <pk/pk.h>

#include <stdio.h>
#include <string.h>

static int failed;

static void expect(int fine, const char *what)
{
    if (!fine) {
        printf("not so: %s\n", what);
        failed = 1;
    }
}

#define EXPECT(what) expect((what), #what)

static pk_region work = PK_REGION("work");
static int evaluated;

static uint64_t count_me(void)
{
    return (uint64_t)++evaluated;
}

static void control_calls(void)
{
    pk_counts counts;
    pk_backend_info info;
    memset(&counts, 0xEE, sizeof counts);
    memset(&info, 0xEE, sizeof info);
    counts.size = sizeof counts;
    info.size = sizeof info;
    EXPECT(pk_start(NULL) == PK_OK);
    EXPECT(pk_start(NULL) == PK_OK);
    EXPECT(pk_get_counts(&counts) == PK_OK);
    EXPECT(counts.size == sizeof counts && counts.begun == 0 && counts.not_finite == 0);
    EXPECT(pk_get_counts(NULL) == PK_OK);
    EXPECT(pk_backend_status("cuda", &info) == PK_OK);
    EXPECT(info.live == 0 && strcmp(info.reason, "compiled with PK_DISABLE") == 0);
    EXPECT(pk_flush() == PK_OK);
    EXPECT(pk_capture("here", 1) == PK_OK);
    EXPECT(pk_stop() == PK_OK);
    EXPECT(strcmp(pk_error_message(), "") == 0);
    EXPECT(strcmp(pk_version(), "disabled") == 0);
    EXPECT(strcmp(pk_status_name(PK_EBUSY), "PK_EBUSY") == 0);
    EXPECT(strcmp(pk_status_text(PK_OK), "success") == 0);
}

static void part_of_a_structure(void)
{
    pk_counts counts;
    memset(&counts, 0xEE, sizeof counts);
    counts.size = offsetof(pk_counts, recorded);
    EXPECT((pk_get_counts)(&counts) == PK_OK);
    EXPECT(counts.begun == 0 && counts.recorded == 0xEEEEEEEEEEEEEEEEu);
}

static void regions(void)
{
    static pk_stats stats;
    int turns = 0;
    PK_FUNCTION();
    {
        PK_REGION_SCOPE(work);
        turns++;
    }
    EXPECT(turns == 1);
    pk_region_add(&work, count_me(), count_me());
    pk_step(count_me());
    EXPECT(evaluated == 3);
    EXPECT(pk_region_named("a") && pk_region_named("a") == pk_region_named("b"));
    EXPECT(pk_region_variant(NULL, NULL, 1) && pk_counter_named("c", "") &&
           pk_comm_create("l", "n", 0, 0, 1));
    memset(&stats, 0xEE, sizeof stats);
    EXPECT(pk_region_stats(&work, &stats) == PK_OK);
    EXPECT(stats.size == sizeof stats && stats.count == 0 &&
           stats.buckets[PK_STATS_BUCKETS - 1] == 0);
    EXPECT(pk_stats_quantile(&stats, 0.5) == 0);
}

int main(void)
{
    control_calls();
    part_of_a_structure();
    regions();
    return failed;
}
