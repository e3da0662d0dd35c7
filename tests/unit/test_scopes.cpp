/* C++: scopes that exceptions leave, and everything of pk.hpp. */
#include <pk/pk.hpp>

#include <chrono>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <csetjmp>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <unistd.h>

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
        {
            PK_REGION_SCOPE(outer);
            PK_REGION_SCOPE_NAMED("named");
            throw 1;
        }
    } catch (int) {
    }
    assert_true(count_of(outer) == 1 && count_of(*pk_region_named("named")) == 1);
    assert_int_equal(stop_and_count().unbalanced, 0);
}

#ifdef __clang__
#define SPACE "(anonymous namespace)::"
#else
#define SPACE "{anonymous}::"
#endif

struct other {
    template <class T> static T handle(T request)
    {
        PK_FUNCTION();
        return request;
    }
};

struct server {
    static int handle(int request)
    {
        PK_FUNCTION();
        if (request < 0)
            throw request;
        return [](int n) {
            PK_FUNCTION_OF(PK_WAIT);
            return n + 1;
        }(request);
    }
};

void functions_as_regions(void **)
{
    assert_int_equal(server::handle(1), 2);
    try {
        server::handle(-1);
    } catch (int) {
    }
    assert_int_equal(count_of(*pk_region_named(SPACE "server::handle")), 2);
    other::handle(1);
    other::handle(1.0);
    assert_int_equal(count_of(*pk_region_named(SPACE "other::handle")), 2); /* one place */
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
    ~last_words() { pk::scope s(third); }
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
        PK_GPU_SCOPE(inner, 0);
        pk_gpu_begin(&third, NULL);
    }
    pk_gpu_counts counts;
    counts.size = sizeof counts;
    assert_int_equal(pk_get_gpu_counts(&counts), PK_OK);
    assert_int_equal(counts.begun, 0);
}

pk::scope handed_on()
{
    pk::scope s(inner);
    s.add(5);
    return s;
}

/* What has been moved from is nothing: each region ends once, and the session stops once. */
void moving(void **)
{
    {
        pk::scope first(handed_on());
        pk::scope second(std::move(first));
        second.next(third);
        pk::gpu_scope here(outer, nullptr);
        pk::gpu_scope there(std::move(here));
    }
    assert_true(count_of(inner) == 1 && stats.bytes == 5 && count_of(third) == 1);
    pk_counts counts = stop_and_count();
    assert_true(counts.begun == 2 && counts.unbalanced == 0 && counts.stray_ends == 0);
    pk::options options;
    options.backends = "none";
    assert_int_equal(options.size, sizeof(pk_options));
    assert_null(options.tuning);
    pk::session begun(options);
    pk::session session(std::move(begun));
    assert_true(session && !begun);
    assert_int_equal(session.stop(), PK_OK);
    assert_int_equal(session.stop(), PK_EOFF);
    assert_false(std::is_copy_constructible<pk::scope>::value ||
                 std::is_copy_constructible<pk::session>::value ||
                 std::is_copy_constructible<pk::gpu_scope>::value ||
                 std::is_copy_constructible<pk::comm>::value ||
                 std::is_copy_constructible<pk::request>::value ||
                 std::is_copy_constructible<pk::comm_request>::value ||
                 std::is_copy_constructible<pk::span>::value);
}

void distributions_in_chrono(void **)
{
    pk_region &named = pk::region("named", PK_IO);
    assert_ptr_equal(&named, pk_region_named_of(PK_IO, "named"));
    assert_int_equal(pk::stats(named).status(), PK_ENOENT);
    for (int i = 0; i < 3; i++) {
        pk::scope s(named);
        pk::scope of_size(pk::variant(named, "size", i));
        s.add(8, 2);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        pk::step(7);
    }
    pk::stats of(named);
    assert_true(of.status() == PK_OK && of.count() == 3 && of.bytes() == 24 && of.flops() == 6);
    assert_true(of.min() >= std::chrono::milliseconds(2) && of.max() >= of.min() &&
                of.sum() >= 3 * of.min());
    assert_true(of.mean() >= of.min() && of.mean() <= of.max() && of.self() <= of.sum());
    assert_true(of.quantile(0) >= of.min() && of.quantile(1) <= of.max() && of.raw().count == 3);
    assert_true(of.stddev() <= of.max() - of.min());
    assert_int_equal(pk::stats(pk::variant(named, "size", 2)).count(), 1);
    assert_int_equal(pk::stats::of_steps().count(), 3);
    assert_int_equal(pk::stats::on_gpu(named).count(), 0);
}

/* Two blocking operations, and two that are waited for later: one by name, one by the end of its
 * block. */
void operations(void **)
{
    const std::string report = "test_scopes." + std::to_string(getpid()) + ".json";
    pk_stop();
    pk::options options;
    options.backends = "none";
    options.report_path = report.c_str();
    pk::session session(options);
    pk::comm unused("mine", "unused", 0, 0, 2), world("mine", "world", 7, 0, 2);
    unused = std::move(world);
    for (int i = 0; i < 2; i++) {
        pk::scope s(outer);
        s.call(unused, PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 100);
    }
    pk::comm_request first = unused.start(PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 100);
    pk::comm_request second(std::move(first));
    second.correct(44, 1);
    first.finish();
    second.finish(std::chrono::microseconds(1));
    {
        pk::comm_request third_one = unused.start(PK_COMM_OP_ALL_REDUCE, PK_COMM_TYPE_FLOAT32, 100);
    }
    pk::counter("queue", "batches").set(3);
    assert_int_equal(session.stop(), PK_OK);
    std::ifstream file(report);
    const std::string text((std::istreambuf_iterator<char>(file)),
                           std::istreambuf_iterator<char>());
    unlink(report.c_str());
    assert_true(text.find("\"world\"") != std::string::npos &&
                text.find("\"queue\"") != std::string::npos);
    assert_true(text.find("\"calls\":4,\"bytes\":1244") != std::string::npos);
}

/* Moved to another thread, ended by name, by the end of its block, and by what takes its place. */
void spans(void **)
{
    pk::span first(outer, 7), none;
    assert_int_equal(first.id(), 7);
    std::thread([](pk::span s) { s.mark(inner); }, std::move(first)).join();
    pk::span second(outer);
    second.end();
    second.end();
    second = pk::span(outer, 1);
    second = pk::span(outer, 2);
    none = std::move(second);
    pk_span_counts counts = {};
    counts.size = sizeof counts;
    assert_int_equal(pk_get_span_counts(&counts), PK_OK);
    assert_true(counts.begun == 4 && counts.open == 1 && counts.ended_twice == 0);
    assert_true(count_of(outer) == 3 && count_of(inner) == 1);
}

} // namespace

int main()
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exceptions_close_scopes, start, stop),
        cmocka_unit_test_setup_teardown(exceptions_close_blocks_of_c, start, stop),
        cmocka_unit_test_setup_teardown(functions_as_regions, start, stop),
        cmocka_unit_test_setup_teardown(exceptions_over_plain_begins, start, stop),
        cmocka_unit_test_setup_teardown(scopes_of_all_kinds, start, stop),
        cmocka_unit_test_setup_teardown(threads_of_cpp, start, stop),
        cmocka_unit_test_setup_teardown(thread_locals_may_record, start, stop),
        cmocka_unit_test_setup_teardown(sessions, start, stop),
        cmocka_unit_test_setup_teardown(streams, start, stop),
        cmocka_unit_test_setup_teardown(moving, start, stop),
        cmocka_unit_test_setup_teardown(distributions_in_chrono, start, stop),
        cmocka_unit_test_setup_teardown(operations, start, stop),
        cmocka_unit_test_setup_teardown(spans, start, stop),
    };
    return cmocka_run_group_tests(tests, nullptr, nullptr);
}
