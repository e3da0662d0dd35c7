/* NCCL's backend from inside: when an operation is told, and who counts it. tests/nccl plays NCCL's
 * role in full. */
#include "document.h"
#include "../kit/rounds.h"
#include "session.h"

#include "comm/plugin/plugin.h"

static void *context;
static int mask;

/* ---- what happens just after a round has looked through the pool ---- */

static void (*meanwhile)(void);

const pki_nccl_item *__real_pki_nccl_list_events(uint32_t *count);
const pki_nccl_item *__wrap_pki_nccl_list_events(uint32_t *count);
const pki_nccl_item *__wrap_pki_nccl_list_events(uint32_t *count)
{
    const pki_nccl_item *items = __real_pki_nccl_list_events(count);
    void (*once)(void) = __atomic_exchange_n(&meanwhile, NULL, __ATOMIC_ACQ_REL);
    if (once)
        once();
    return items;
}

static int start_backend(const char *kernels)
{
    setenv("PK_NCCL_KERNEL_CH", kernels, 1);
    setenv(PKI_NCCL_VARIABLE, "none", 1); /* a communicator that is there has found us */
    pki_nccl_init_v5(&context, 1, &mask, "world", 1, 4, 2, NULL);
    pk_status status = pk_start(
        pk_options(.trace_path = "run.json", .report_path = "report.json", .backends = "nccl"));
    kit_end_collector(); /* no round but those of pk_flush */
    return status;
}

static int start_plain(void **state)
{
    return enter_folder(state) || start_backend("0");
}

static int start_with_kernels(void **state)
{
    return enter_folder(state) || start_backend("1");
}

static int stop(void **state)
{
    pki_comms_wrapped = 0;
    pki_nccl_finalize_comm(context);
    pk_stop();
    return leave_folder(state);
}

static void *begin(pki_nccl_description_v5 description)
{
    void *event;
    assert_int_equal(pki_nccl_start_v5(context, &event, &description), PKI_NCCL_SUCCESS);
    assert_non_null(event);
    return event;
}

static void *all_reduce(void)
{
    void *event = begin((pki_nccl_description_v5){
        .type = PKI_NCCL_COLL,
        .u.coll.v4 = {.func = "AllReduce", .type = "ncclFloat16", .count = 100, .channels = 2}});
    pki_nccl_stop_event(event);
    return event;
}

static void kernel(void *parent, uint8_t channel)
{
    void *event = begin((pki_nccl_description_v5){
        .type = PKI_NCCL_KERNEL_CH, .parent = parent, .u.kernel_ch = {channel, 1000}});
    pki_nccl_state_v4 args = {.timer = 51000};
    pki_nccl_change_v4(event, PKI_NCCL_KERNEL_STOP, &args);
    pki_nccl_stop_event(event);
}

static uint64_t told(void)
{
    assert_int_equal(pk_flush(), PK_OK);
    return pki_nccl_operations();
}

static void at_once(void **state)
{
    (void)state;
    assert_int_equal(mask & PKI_NCCL_KERNEL_CH, 0);
    all_reduce();
    assert_int_equal(told(), 1);
}

static void when_all_kernels_are_in(void **state)
{
    (void)state;
    assert_int_not_equal(mask & PKI_NCCL_KERNEL_CH, 0);
    void *event = all_reduce();
    assert_int_equal(told(), 0);
    kernel(event, 0);
    assert_int_equal(told(), 0);
    kernel(event, 1);
    assert_int_equal(told(), 1);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *report = load_document("report.json");
    const json_t *row = json_array_get(member(member(report, "comm"), "collectives"), 0);
    assert_int_equal(json_integer_value(member(row, "bytes")), 200);
    assert_int_equal(json_integer_value(member(member(row, "time"), "max")), 50000);
    assert_non_null(json_object_get(row, "busbw"));
    json_decref(report);
}

static void when_no_child_is_open(void **state)
{
    (void)state;
    void *event = all_reduce();
    void *proxy = begin((pki_nccl_description_v5){.type = PKI_NCCL_PROXY_OP, .parent = event});
    assert_int_equal(told(), 0);
    pki_nccl_stop_event(proxy);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(pki_nccl_operations(), 1);
}

static size_t counted(void)
{
    json_t *report = load_document("report.json"), *comm = json_object_get(report, "comm");
    size_t n = json_array_size(json_object_get(comm, "collectives"));
    json_decref(report);
    return n;
}

static void by_the_wrapper_if_there_is_one(void **state)
{
    (void)state;
    pki_comms_wrapped = 1;
    all_reduce();
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(counted(), 0);
    json_t *trace = load_document("run.json");
    const json_t *event = find_event(trace, "NCCL all_reduce");
    assert_string_equal(json_string_value(member(event, "cat")), "user_annotation");
    json_decref(trace);
}

/* ---- communicators that go ---- */

static void *open_event;

static json_int_t calls_counted(void)
{
    json_t *report = load_document("report.json"), *comm;
    json_int_t n = 0;
    size_t i;
    json_array_foreach(member(member(report, "comm"), "communicators"), i, comm) n +=
        json_integer_value(member(comm, "calls"));
    json_decref(report);
    return n;
}

static void one_more_and_gone(void)
{
    all_reduce();
    pki_nccl_finalize_comm(context);
}

static void gone_within_a_round(void **state)
{
    (void)state;
    __atomic_store_n(&meanwhile, one_more_and_gone, __ATOMIC_RELEASE);
    assert_int_equal(told(), 0);
    assert_int_equal(told(), 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(calls_counted(), 1);
}

static void over_and_gone(void)
{
    pki_nccl_stop_event(open_event);
    pki_nccl_finalize_comm(context);
}

static void ended_and_gone_within_a_round(void **state)
{
    (void)state;
    open_event = begin((pki_nccl_description_v5){
        .type = PKI_NCCL_COLL,
        .u.coll.v4 = {.func = "AllReduce", .type = "ncclFloat16", .count = 100}});
    __atomic_store_n(&meanwhile, over_and_gone, __ATOMIC_RELEASE);
    assert_int_equal(told(), 0);
    assert_int_equal(told(), 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(calls_counted(), 1);
}

/* No round has ever seen it. */
static void gone_between_rounds(void **state)
{
    (void)state;
    pki_nccl_finalize_comm(context);
    assert_int_equal(told(), 0);
    pki_nccl_init_v5(&context, 2, &mask, "short", 1, 4, 2, NULL);
    one_more_and_gone();
    assert_int_equal(told(), 1);
    assert_int_equal(pk_stop(), PK_OK);
    assert_int_equal(calls_counted(), 1);
}

/* ---- a pool that is full, and one that is not ---- */

static void *group(void)
{
    void *event;
    pki_nccl_start_v5(context, &event, &(pki_nccl_description_v5){.type = PKI_NCCL_GROUP});
    return event;
}

enum { STAY = 100 };

/* Some events stay open next to each other for long, and all others come by there again and again.
 */
static void around_what_stays_open(void **state)
{
    void *stays[STAY];
    uint64_t dropped = pki_nccl_lost.dropped;
    (void)state;
    for (unsigned i = 0; i < STAY; i++)
        stays[i] = group();
    for (unsigned i = 0; i < 3 * PKI_NCCL_PLACES; i++) {
        pki_nccl_stop_event(group());
        if (i % 4096 == 0)
            told();
    }
    assert_int_equal(pki_nccl_lost.dropped, dropped);
    for (unsigned i = 0; i < STAY; i++)
        pki_nccl_stop_event(stays[i]);
}

/* Every place is given away, and only then is an event dropped. */
static void until_it_is_full(void **state)
{
    static void *events[PKI_NCCL_PLACES];
    uint64_t dropped = pki_nccl_lost.dropped;
    (void)state;
    for (int again = 0; again < 3; again++) {
        for (unsigned i = 0; i < PKI_NCCL_PLACES; i++)
            assert_non_null(events[i] = group());
        assert_null(group());
        for (unsigned i = 0; i < PKI_NCCL_PLACES; i++) /* in an order of their own */
            pki_nccl_stop_event(events[(i * 5) % PKI_NCCL_PLACES]);
        told();
    }
    assert_int_equal(pki_nccl_lost.dropped, dropped + 3);
}

/* In the order in which they were begun, wherever they lie. */
static void in_order(void **state)
{
    uint64_t last = 0;
    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        void *stays = group(); /* so that places come back in another order */
        all_reduce();
        told();
        pki_nccl_stop_event(stays);
    }
    for (unsigned i = 0; i < 64; i++)
        all_reduce();
    assert_int_equal(pk_stop(), PK_OK);
    json_t *trace = load_document("run.json"), *event;
    size_t i;
    json_array_foreach(member(trace, "traceEvents"), i, event)
    {
        const char *name = json_string_value(member(event, "name"));
        if (strcmp(name, "NCCL all_reduce") != 0)
            continue;
        json_int_t seq = json_integer_value(member(member(event, "args"), "Seq"));
        assert_true((uint64_t)seq == last + 1 || last == 0);
        last = (uint64_t)seq;
    }
    assert_true(last >= 128);
    json_decref(trace);
}

#define plain(test) cmocka_unit_test_setup_teardown(test, start_plain, stop)
#define with_kernels(test) cmocka_unit_test_setup_teardown(test, start_with_kernels, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        plain(at_once),
        with_kernels(when_all_kernels_are_in),
        plain(when_no_child_is_open),
        plain(by_the_wrapper_if_there_is_one),
        plain(gone_within_a_round),
        plain(ended_and_gone_within_a_round),
        plain(gone_between_rounds),
        plain(around_what_stays_open),
        plain(until_it_is_full),
        plain(in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
