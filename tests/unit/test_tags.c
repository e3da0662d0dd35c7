/* pk/comm.h: the tags of messages, from the calls to the trace. */
#include "document.h"
#include "session.h"

#include "comm/model/communicator.h"

static int start_trace(void **state)
{
    return enter_folder(state) ||
           pk_start(pk_options(.trace_path = "run.json", .backends = "none"));
}

static int stop_trace(void **state)
{
    pk_stop();
    return leave_folder(state);
}

static pk_region message = PK_REGION_OF(PK_COMM, "message");

/* Any tag that MPI has, and none. */
static void tags(void **state)
{
    static const int32_t of[] = {0, 7, INT32_MAX};
    (void)state;
    pk_comm *comm = pk_comm_create("MPI", "messages", 0, 1, 4);
    for (size_t i = 0; i < PKI_COUNT_OF(of); i++) {
        pk_region_begin(&message);
        pk_comm_call(&message, comm, PK_OP_SEND, PK_TYPE_BYTE, 8, 2);
        pk_comm_tag(&message, of[i]);
        pk_region_end(&message);
        pk_comm_request r = pk_comm_start(comm, PK_OP_RECV, PK_TYPE_BYTE, 8, -1);
        pk_comm_tag_request(&r, 5);
        pk_comm_tag_request(&r, of[i]);
        pk_comm_tag_request(&r, -1); /* as it was */
        pk_comm_correct(&r, 3, 1);
        assert_int_equal(r.sequence, 2 * i + 2);
        pk_comm_finish(&r, 0);
    }
    pk_region_begin(&message);
    pk_comm_tag(&message, 3); /* no message yet */
    pk_comm_call(&message, comm, PK_OP_SEND, PK_TYPE_BYTE, 8, 2);
    pk_comm_tag(&message, -1);
    pk_region_end(&message);
    assert_int_equal(pki_comm_completed(comm), 7);
    assert_int_equal(pk_stop(), PK_OK);
    json_t *doc = load_document("run.json"), *e;
    size_t i, sends = 0, receives = 0;
    json_array_foreach(json_object_get(doc, "traceEvents"), i, e)
    {
        const json_t *args = json_object_get(e, "args");
        const char *op = json_string_value(json_object_get(args, "Collective name"));
        size_t *n = op && strcmp(op, "send") == 0 ? &sends : &receives;
        if (!op)
            continue;
        const json_t *tag = json_object_get(args, "Tag");
        if (*n < PKI_COUNT_OF(of))
            assert_int_equal(json_integer_value(tag), of[*n]);
        else
            assert_null(tag);
        assert_int_equal(json_integer_value(json_object_get(args, "Seq")),
                         2 * *n + (n == &receives ? 2 : 1));
        ++*n;
    }
    assert_true(sends == 4 && receives == 3);
    json_decref(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tags, start_trace, stop_trace),
    };
    return cmocka_run_group_tests_name("tags", tests, NULL, NULL);
}
