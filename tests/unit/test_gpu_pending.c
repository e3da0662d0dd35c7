/* Operations of communicators that do not block, on the mock of the driver: they come into their
 * stream after the call, and their end is recorded when they have. */
#include "gpu_operations.h"

/* Its time goes on until the communicator says for the first time that it has come. */
static void in_progress(void **state)
{
    uint64_t stamps[8];
    (void)state;
    all_reduce(world, 10, the_stream, 7);
    pk_nccl_async(world, 7);
    pk_nccl_async(other, 0);
    sleep_ms(30);
    assert_int_equal(counts_now().recorded, 0);
    uint64_t now = gpu->device_ns();
    pk_nccl_async(world, 0);
    assert_int_equal(gpu->stamps(the_stream, stamps, 8), 2);
    assert_true(stamps[0] < now && stamps[1] >= now);
    pk_nccl_async(world, 0);
    pk_nccl_async(NULL, 0);
    all_reduce(world, 20, the_stream, 7);
    pk_nccl_async(world, 3); /* it failed */
    all_reduce(world, 30, the_stream, 0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.refused, 1);
    assert_int_equal(c.skipped, 1);
    assert_int_equal(number(operation(0), "bytes"), 40);
    assert_true(json_number_value(json_object_get(operation(0), "dur")) >= 30000);
    assert_int_equal(number(operation(1), "bytes"), 120);
    assert_int_equal(of_world("completed"), 3);
}

/* A group has come when all of its communicators have; on another thread nobody can tell. */
static void groups_in_progress(void **state)
{
    (void)state;
    pk_nccl_group_start();
    all_reduce(world, 10, the_stream, 0);
    all_reduce(other, 10, the_stream, 0);
    end_group(7);
    pk_nccl_async(other, 0);
    sleep_ms(30);
    assert_int_equal(counts_now().recorded, 0);
    pk_nccl_async(world, 0);
    await(counts_now().recorded == 1);
    pk_nccl_group_start();
    all_reduce(world, 10, the_stream, 0);
    all_reduce(other, 10, the_stream, 0);
    end_group(7);
    pk_nccl_async(other, 3);
    pk_nccl_async(world, 0);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 1);
    assert_int_equal(c.refused, 1);
}

/* A span that is around it ends first: nobody knows where the operation is. */
static void in_progress_in_a_span(void **state)
{
    (void)state;
    pk_gpu_begin(&layer, the_stream);
    all_reduce(world, 10, the_stream, 7);
    pk_gpu_end(&layer, the_stream);
    pk_nccl_async(world, 0);
    span(&layer);
    pk_gpu_counts c = finish();
    assert_int_equal(c.recorded, 2);
    assert_int_equal(c.operations, 0);
    assert_int_equal(c.skipped, 1);
    assert_int_equal(spans_of(&layer), 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        traced(in_progress),
        traced(groups_in_progress),
        traced(in_progress_in_a_span),
    };
    if (argc != 2)
        return 2;
    open_double(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
