/* A rank's part of the job's report: in a file, or in memory until somebody takes it. */
#include "folder.h"

#include <pk/pk.h>

#include "session/options/config.h"

static pk_region work = PK_REGION("work");

#define PART "job.json.ranks/1/1500.rank.json"
#define BEGINS "{\"format\":\"perfkit report\""

static void start(const char *job, const char *report)
{
    assert_int_equal(pk_start(pk_options(.job_path = job, .report_path = report, .rank = 1500,
                                         .world_size = 2000, .backends = "none")),
                     PK_OK);
    pk_region_begin(&work);
    pk_region_end(&work);
}

static bool take(pk_job_part_ *part)
{
    *part = (pk_job_part_){.size = sizeof *part};
    return pk_job_take_(part);
}

static void option(void **state)
{
    static pki_config config;
    (void)state;
    assert_int_equal(
        pki_config_read(&config, pk_options(.job_path = "j-%r.json", .rank = 3, .world_size = 4)),
        PK_OK);
    assert_string_equal(config.job, "j-3.json");
    setenv("PK_JOB_PATH", "from-environment.json", 1);
    assert_int_equal(pki_config_read(&config, NULL), PK_OK);
    assert_string_equal(config.job, "from-environment.json");
    setenv("PK_JOB_PATH", "%x", 1);
    assert_int_equal(pki_config_read(&config, NULL), PK_EINVAL);
    assert_non_null(strstr(pk_error_message(), "PK_JOB_PATH"));
    unsetenv("PK_JOB_PATH");
    assert_int_equal(pki_config_read(&config, NULL), PK_OK);
    assert_string_equal(config.job, "");
}

/* Nobody gathers: in the folder of its thousand. */
static void in_a_file(void **state)
{
    pk_job_part_ part;
    (void)state;
    start("job.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    char *text = read_file(PART, NULL);
    assert_int_equal(strncmp(text, BEGINS, strlen(BEGINS)), 0);
    assert_non_null(strstr(text, "\"work\""));
    free(text);
    assert_false(take(&part));
    assert_int_equal(count_files(), 1);
}

/* The part is what a rank's file of its own has. */
static void in_memory(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    start("job.json", "own.rank.json");
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 1);
    assert_true(take(&part));
    char *own = read_file("own.rank.json", NULL);
    assert_true(strlen(own) == part.bytes && memcmp(own, part.text, part.bytes) == 0);
    assert_true(strcmp(part.path, "job.json") == 0 && !part.to_stderr);
    free(own);
    pk_job_leave_(1);
    assert_false(take(&part));
    assert_int_equal(count_files(), 1);
    pk_job_hold_(0);
}

static void not_reduced(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    start("job.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(take(&part));
    assert_int_equal(count_files(), 0);
    pk_job_leave_(0);
    assert_true(exists(PART));
    pk_job_hold_(0);
}

/* While others are waited for it is in its file; then the folders go, too. */
static void saved(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    start("job.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(take(&part));
    pk_job_save_();
    assert_true(exists(PART));
    pk_job_save_();
    pk_job_leave_(1);
    assert_int_equal(count_files(), 0);
    pk_job_hold_(0);
}

/* MPI_Finalize before pk_stop: what there is goes into the job's report, and the end adds nothing.
 */
static void of_an_open_session(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    start("job.json", "-");
    assert_true(take(&part));
    assert_true(part.to_stderr && part.bytes > 0);
    pk_job_leave_(1);
    pk_job_hold_(0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(count_files(), 0);
}

static void of_an_open_session_not_reduced(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    start("job.json", NULL);
    assert_true(take(&part));
    pk_job_leave_(0);
    pk_job_hold_(0);
    assert_int_equal(count_files(), 0);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(exists(PART));
}

/* What nobody has taken when the next session ends. */
static void of_the_session_before(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(4);
    start("job.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    start("next.json", NULL);
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(exists(PART) && !exists("next.json.ranks"));
    assert_true(take(&part));
    assert_string_equal(part.path, "next.json");
    pk_job_leave_(1);
    pk_job_hold_(0);
}

/* The report of one rank alone is its own; of several it is held back. */
static void for_stderr(void **state)
{
    pk_job_part_ part;
    (void)state;
    pk_job_hold_(1);
    start("job.json", "report.txt");
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(take(&part) && !part.to_stderr && exists("report.txt"));
    pk_job_leave_(1);
    pk_job_hold_(2);
    start(NULL, "-");
    assert_int_equal(pk_stop(), PK_OK);
    assert_true(take(&part) && part.to_stderr && !part.path[0]);
    pk_job_leave_(1);
    start(NULL, "report.txt");
    assert_int_equal(pk_stop(), PK_OK);
    assert_false(take(&part));
    pk_job_hold_(0);
}

static void no_folder(void **state)
{
    (void)state;
    start("missing/job.json", NULL);
    assert_int_equal(pk_stop(), PK_ENOENT);
    assert_non_null(strstr(pk_error_message(), "missing/job.json.ranks"));
    assert_int_equal(pk_job_write_("missing/job.json", "text", 4), PK_ENOENT);
    assert_int_equal(pk_job_write_("job.txt", "text", 4), PK_OK);
    assert_true(exists("job.txt"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_folder(option),
        in_folder(in_a_file),
        in_folder(in_memory),
        in_folder(not_reduced),
        in_folder(saved),
        in_folder(of_an_open_session),
        in_folder(of_an_open_session_not_reduced),
        in_folder(of_the_session_before),
        in_folder(for_stderr),
        in_folder(no_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
