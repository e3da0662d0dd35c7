/* What devices did, from a rank's figures to the job's, by hand; and through the file of a rank. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "job/figures/devices.h"
#include "measure/summary.h"
#include "out/report/report.h"

static void set(pki_gpu_row *g, int figure, double mean)
{
    g->per_step[figure] = (pki_dist){.count = 10, .sum = 10 * mean, .mean = mean};
}

/* Of a step of 1,000 ns: 100 idle, 60 of them while the host waited; 900 busy, of which 150 copies
 * alone and 250 collectives alone; 350 more of collectives are hidden. */
static pki_summary make(size_t count, pki_gpu_row *gpus)
{
    static const struct {
        int figure;
        double mean;
    } figures[] = {{PKI_GPU_STEP, 1000},       {PKI_GPU_BUSY, 900},
                   {PKI_GPU_IDLE, 100},        {PKI_GPU_COMM_EXPOSED, 250},
                   {PKI_GPU_COMM_HIDDEN, 350}, {PKI_GPU_COPY_ALONE, 150},
                   {PKI_GPU_SYNC_GAPS, 60},    {PKI_GPU_LAUNCH_GAPS, 30}};
    pki_summary s;
    pki_summary_init(&s);
    memset(gpus, 0, count * sizeof *gpus);
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++)
        set(&gpus[0], figures[i].figure, figures[i].mean);
    gpus[0].device = 3;
    gpus[0].measured = true;
    s.gpus = gpus;
    s.gpu_count = count;
    return s;
}

static void check(const job_rank *r)
{
    static const double parts[JOB_DEVICE_PARTS] = {500, 250, 150, 100, 60, 30};
    assert_int_equal(r->device_count, 1);
    const job_device *d = &r->devices[0];
    assert_int_equal(d->number, 3);
    assert_true(d->measured && d->steps == 10 && d->step == 1000);
    for (unsigned i = 0; i < JOB_DEVICE_PARTS; i++) {
        assert_true(d->parts[i] == parts[i]);
        assert_true(job_devices_share(r, i) == parts[i] / 1000);
    }
    assert_true(job_devices_overlap(d, 1) == 350.0 / 600);
}

static void a_step_is_divided(void **state)
{
    (void)state;
    pki_gpu_row gpus[2];
    pki_summary s = make(2, gpus); /* of the second nothing is known */
    job_rank r = {0};
    job_devices_copy(&r, &s);
    check(&r);
    free(r.devices);
}

static void what_is_not_known_is_not_0(void **state)
{
    (void)state;
    pki_gpu_row gpus[1];
    pki_summary s = make(1, gpus);
    static const int spans_do_not_tell[] = {PKI_GPU_COMM_EXPOSED, PKI_GPU_COMM_HIDDEN,
                                            PKI_GPU_COPY_ALONE, PKI_GPU_SYNC_GAPS};
    for (size_t i = 0; i < 4; i++)
        gpus[0].per_step[spans_do_not_tell[i]] = (pki_dist){0};
    job_rank r = {0};
    job_devices_copy(&r, &s);
    assert_true(job_devices_overlap(r.devices, 1) == -1);
    assert_true(job_devices_share(&r, JOB_DEVICE_MEMORY) == -1);
    assert_true(job_devices_share(&r, JOB_DEVICE_SYNC_GAPS) == -1);
    assert_true(job_devices_share(&r, JOB_DEVICE_COMPUTE) == 0.9);
    free(r.devices);
}

static void keep(void *user, size_t part, pki_summary *rank)
{
    assert_int_equal(part, 0);
    *(pki_summary *)user = *rank;
}

static void a_ranks_file_has_them(void **state)
{
    (void)state;
    pki_gpu_row gpus[1];
    pki_summary s = make(1, gpus), back;
    char path[] = "/tmp/pk-job-devices-XXXXXX";
    int fd = mkstemp(path);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    assert_int_equal(pki_report_rank(&s, file), 0);
    assert_true(ftell(file) < 16384); /* a part of what a rank's file may have */
    assert_int_equal(fclose(file), 0);
    complaint why = {""};
    assert_true(job_load(path, keep, &back, &why));
    unlink(path);
    job_rank r = {0};
    job_devices_copy(&r, &back);
    check(&r);
    free(r.devices);
    pki_summary_finish(&back);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_is_divided),
        cmocka_unit_test(what_is_not_known_is_not_0),
        cmocka_unit_test(a_ranks_file_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
