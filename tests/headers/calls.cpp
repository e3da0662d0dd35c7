/* The C++ part of calls.h: everything of pk.hpp. */
/* clang-format off */
#ifdef WITH_CALLS
#include <pk/pk.hpp>
#endif

#include "calls.h"

int session(int n);
int scope(int n);
int operations(int n);
int stepping(int n);

int session(int n)
{
    PK(pk::options options; options.trace_path = "run.json"; pk::session session(options);)
    PK(if (!session) return -1;)
    n = work(n);
    PK(if (session.stop() != PK_OK) return -2;)
    return n;
}

int scope(int n)
{
    PK(pk::scope whole(outer);)
    {
        PK(pk::scope named("named"); named.add(64);)
        PK(pk::gpu_scope device(inner, stream);)
        n = work(n);
        PK(named.next(inner);)
        n += work(n);
    }
    return n;
}

int operations(int n)
{
    PK(pk::comm world("ring", "world", 0, 0, 2);)
    PK(pk::comm_request request = world.start(pk_comm_op(0), pk_comm_type(9), 8);)
    PK(pk::scope whole(outer); whole.call(world, pk_comm_op(0), pk_comm_type(9), 8);)
    n = work(n);
    PK(request.set_tag(3); request.correct(64, 1); request.finish();)
    PK(pk::span served(inner, 7); served.mark(outer); served.end();)
    PK(pk::request answer(inner, 7); answer.schedule(); answer.prefill(9); answer.tokens(); answer.end();)
    return n;
}

int stepping(int n)
{
    PK(pk::counter values("values", "1");)
    for (int i = 0; i < n; i++) {
        n -= work(i);
        PK(values.set(n);)
        PK(pk::step(8);)
    }
    PK(pk::stats stats(outer); n += static_cast<int>(stats.count());)
    return n;
}
