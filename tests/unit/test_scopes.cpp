/* C++: scopes that exceptions leave, and everything of pk.hpp. */
#include <pk/pk.hpp>

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <csetjmp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" {
#include <cmocka.h>
}

namespace
{

pk_region outer = PK_REGION("outer");
pk_region inner = PK_REGION_OF(PK_COMPUTE, "inner");
pk_region third = PK_REGION_OF(PK_IO, "third");

pk_stats stats;

uint64_t count_of(const pk_region &region)
{
    return pk_region_stats(&region, &stats) == PK_OK ? stats.count : 0;
}

pk_counts stop_and_count()
{
    pk_counts counts;
    counts.size = sizeof counts;
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pk_get_counts(&counts), PK_OK);
    assert_int_equal(counts.recorded + counts.dropped, counts.begun);
    return counts;
}

int start(void **)
{
    pk::options options;
    options.backends = "none";
    return pk_start(&options);
}

int stop(void **)
{
    pk_stop();
    return 0;
}

void thrower(int depth)
{
    pk::scope s(depth % 2 ? outer : inner);
    if (depth == 0)
        throw std::runtime_error("out");
    thrower(depth - 1);
}

void exceptions_close_scopes(void **)
{
    int caught = 0;
    for (int i = 0; i < 100; i++) {
        try {
            pk::scope s(third);
            thrower(9);
        } catch (const std::runtime_error &) {
            caught++;
        }
    }
    assert_int_equal(caught, 100);
    assert_true(count_of(outer) == 500 && count_of(inner) == 500 && count_of(third) == 100);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 1100 && counts.unbalanced == 0 && counts.stray_ends == 0);
}

/* The C blocks are made of a cleanup, which exceptions run as well. */
void exceptions_close_blocks_of_c(void **)
{
    try {
        PK_SCOPE(outer) {
            PK_SCOPE_NAMED("named") {
                throw 1;
            }
        }
    } catch (int) {
    }
    assert_true(count_of(outer) == 1 && count_of(*pk_region_named("named")) == 1);
    assert_int_equal(stop_and_count().unbalanced, 0);
}

void exceptions_over_plain_begins(void **)
{
    pk_region_begin(&third);
    try {
        pk_region_begin(&outer);
        throw 1;
    } catch (int) {
    }
    pk_region_end(&third);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 2 && counts.unbalanced == 1 && count_of(outer) == 1);
}

void scopes_of_all_kinds(void **)
{
    {
        pk::scope by_region(outer);
        pk::scope by_text("by text");
        pk::scope by_string(std::string("by ") + "string");
        by_region.add(100, 7);
        by_region.add(20);
        by_string.next(third);
        by_string.add(3);
    }
    assert_int_equal(count_of(*pk_region_named("by text")), 1);
    assert_int_equal(count_of(*pk_region_named("by string")), 1);
    assert_true(count_of(third) == 1 && stats.bytes == 3);
    assert_true(count_of(outer) == 1 && stats.bytes == 120 && stats.flops == 7);
    assert_int_equal(stop_and_count().begun, 4);
}

void threads_of_cpp(void **)
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++)
        threads.emplace_back([] {
            for (int k = 0; k < 1000; k++)
                pk::scope s(inner);
        });
    for (auto &thread : threads)
        thread.join();
    assert_int_equal(count_of(inner), 4000);
    assert_int_equal(stop_and_count().threads, 4);
}

/* Destroyed while the thread ends, and records once more. */
struct last_words {
    bool spoken = false;
    ~last_words()
    {
        pk::scope s(third);
    }
};
thread_local last_words words;

void thread_locals_may_record(void **)
{
    std::thread([] {
        words.spoken = true;
        pk::scope s(inner);
    }).join();
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 2 && count_of(third) == 1 && count_of(inner) == 1);
}

void sessions(void **)
{
    pk_stop();
    {
        pk::options options;
        assert_int_equal(options.size, sizeof(pk_options));
        assert_true(options.trace_path == nullptr && options.memory_bytes == 0);
        options.backends = "none";
        pk::session session(options);
        assert_true(static_cast<bool>(session));
        pk::session second(options);
        assert_true(!second && second.status() == PK_EBUSY);
        pk::scope s(outer);
    }
    assert_int_equal(pk_stop(), PK_EOFF); /* one of them stopped it, the other did not */
    assert_int_equal(count_of(outer), 1);
    pk::session from_environment;
    assert_int_equal(from_environment.status(), PK_OK);
}

void streams(void **)
{
    /* Nothing to see without a GPU: only that it compiles, and does no harm. */
    for (int i = 0; i < 2; i++) {
        pk::gpu_scope s(outer, nullptr);
        PK_GPU_SCOPE(inner, 0) { pk_gpu_begin(&third, NULL); }
    }
    pk_gpu_counts counts;
    counts.size = sizeof counts;
    assert_int_equal(pk_get_gpu_counts(&counts), PK_OK);
    assert_int_equal(counts.begun, 0);
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exceptions_close_scopes, start, stop),
        cmocka_unit_test_setup_teardown(exceptions_close_blocks_of_c, start, stop),
        cmocka_unit_test_setup_teardown(exceptions_over_plain_begins, start, stop),
        cmocka_unit_test_setup_teardown(scopes_of_all_kinds, start, stop),
        cmocka_unit_test_setup_teardown(threads_of_cpp, start, stop),
        cmocka_unit_test_setup_teardown(thread_locals_may_record, start, stop),
        cmocka_unit_test_setup_teardown(sessions, start, stop),
        cmocka_unit_test_setup_teardown(streams, start, stop),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
