/* A device that is shared or saturated: all work comes late, the anchors' too. Where a span is said
 * to lie is off by no more than the uncertainty that is stated with it. */
#include "document.h"
#include "gpu.h"

#include <math.h>

enum { SPANS = 200 };

static pk_region work = PK_REGION("work");
static uint64_t stamps[2 * SPANS];

static double number(const json_t *object, const char *key)
{
    return json_number_value(member(object, key));
}

static int start_late(void **state)
{
    uint64_t late = *(const uint64_t *)*state;
    if (enter_folder(state))
        return -1;
    gpu->reset();
    gpu->clock(1 + 30e-6);
    gpu->lag(late);
    the_context = gpu->context_create(0);
    the_stream = gpu->stream_create(the_context);
    return pk_start(pk_options(.backends = "cuda", .trace_path = "t.json"));
}

static int stop_late(void **state)
{
    stop_gpu(state);
    return leave_folder(state);
}

/* Ends of a span, of the session's time, and the truth. */
static double off_by(double said, double base, uint64_t stamp)
{
    return fabs(said - ((double)gpu->host_ns(stamp) - base));
}

static void within_what_is_stated(void **state)
{
    (void)state;
    for (int i = 0; i < SPANS; i++) {
        span(&work);
        sleep_ms(1 + (unsigned)i % 3);
    }
    await(counts_now().recorded + counts_now().lost == SPANS);
    assert_int_equal(gpu->stamps(the_stream, stamps, 2 * SPANS), 2 * SPANS);
    assert_int_equal(stop_and_count().recorded, SPANS);
    json_t *doc = load_document("t.json"), *event;
    const json_t *clock = member(member(doc, "metadata"), "clock");
    double base = number(clock, "base_monotonic_ns"), widest = 0, error = 0;
    size_t i, n = 0;
    json_array_foreach(member(doc, "traceEvents"), i, event)
    {
        const json_t *stated = json_object_get(json_object_get(event, "args"), "uncertainty_ns");
        if (!stated)
            continue;
        double most = json_number_value(stated), start = number(event, "ts") * 1e3;
        double begun = off_by(start, base, stamps[2 * n]);
        double ended = off_by(start + number(event, "dur") * 1e3, base, stamps[2 * n + 1]);
        if (begun > most || ended > most)
            fail_msg("span %zu: off by %.0f and %.0f ns, stated %.0f", n, begun, ended, most);
        widest = fmax(widest, most);
        error = fmax(error, fmax(begun, ended));
        n++;
    }
    assert_int_equal(n, SPANS);
    print_message("at most %.0f ns off, at most %.0f stated\n", error, widest);
    json_decref(doc);
}

static uint64_t lags[] = {0, 50000, 300000, 1000000, 10000000, 100000000};

#define late(n)                                                                                    \
    {                                                                                              \
        "work comes late: " #n, within_what_is_stated, start_late, stop_late, &lags[n]             \
    }

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {late(0), late(1), late(2), late(3), late(4), late(5)};
    open_double(argc > 1 ? argv[1] : "");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
