/* pk/pk.hpp - perfkit for C++11 and later: scopes that close on every way out, exceptions included.
 *
 *     static pk_region forward = PK_REGION_OF(PK_COMPUTE, "forward");
 *
 *     int main()
 *     {
 *         pk::options options;
 *         options.trace_path = "run.json";
 *         pk::session session(options);        // stops at the end of main
 *         if (!session) std::cerr << pk_error_message() << '\n';
 *         {
 *             pk::scope s(forward);
 *             s.add(bytes, flops);
 *         }
 *         pk::scope named("only known at run time");
 *         pk::step(32);                        // the end of a step of the training loop
 *     }
 *
 * Sessions, scopes, spans, requests and communicators may be moved, not copied.
 *
 * Threads: a pk::scope belongs to the thread that made it.
 * Failure: nothing here throws; exceptions and RTTI may be switched off.
 * Cost:    as pk/region.h; a scope made from a string looks the name up each time.
 */
#ifndef PK_PK_HPP
#define PK_PK_HPP

#include <pk/comm.h>
#include <pk/gpu.h>
#include <pk/pk.h>
#include <pk/request.h>
#include <pk/span.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace pk
{
#ifdef PK_DISABLE
/* Files with and without PK_DISABLE may be parts of one program, so their classes differ in name.
 */
inline namespace disabled
{
#endif

/* pk_options, all zero but its size. */
struct options : pk_options {
    options()
    {
        std::memset(static_cast<pk_options *>(this), 0, sizeof(pk_options));
        size = static_cast<uint32_t>(sizeof(pk_options));
    }
};

/* A session as long as a block. False if pk_start failed; status() says how. */
class session
{
  public:
    explicit session(const pk_options &wanted) noexcept : status_(pk_start(&wanted)) {}
    session() noexcept : status_(pk_start(nullptr)) {}
    session(session &&other) noexcept : status_(other.status_) { other.status_ = PK_EOFF; }
    ~session() { stop(); }
    session(const session &) = delete;
    session &operator=(const session &) = delete;

    explicit operator bool() const noexcept { return status_ == PK_OK; }
    pk_status status() const noexcept { return status_; }

    /* Ends it here and answers how that went; its destructor then has nothing left to do. */
    pk_status stop() noexcept
    {
        if (status_ != PK_OK)
            return status_;
        status_ = PK_EOFF;
        return pk_stop();
    }

  private:
    pk_status status_;
};

/* A region by a name that is known only at run time: looked up at each call, so keep the reference.
 */
inline pk_region &region(const char *name, pk_kind kind = PK_OTHER) noexcept
{
    return *pk_region_named_of(kind, name);
}
inline pk_region &region(const std::string &name, pk_kind kind = PK_OTHER) noexcept
{
    return region(name.c_str(), kind);
}

/* "attention[seq=512]": a distribution of its own for each value. */
inline pk_region &variant(pk_region &of, const char *key, int64_t value) noexcept
{
    return *pk_region_variant(&of, key, value);
}

/* The end of a step of the training loop, in which there were so many samples. */
inline void step(uint64_t items = 0) noexcept
{
    pk_step(items);
}

/* The next step begins here, not where the last one ended. */
inline void step_begin() noexcept
{
    pk_step_begin();
}

/* Of the step that runs: "evaluation", say. NULL: the usual kind. */
inline void step_kind(const char *kind) noexcept
{
    pk_step_kind(kind);
}

/* Floating-point operations of the step that runs: what the model needs, and what was done. */
inline void step_add_flops(double model, double hardware = 0) noexcept
{
    pk_step_add_flops(model, hardware);
}

/* How long a call of this region may take before the watchdog says that the program hangs. */
inline void set_limit(pk_region &of, double seconds) noexcept
{
    pk_region_set_limit(&of, seconds);
}

/* A trace of what the history holds, and of so many steps more. */
inline pk_status capture(const char *reason, uint32_t steps = 0) noexcept
{
    return pk_capture(reason, steps);
}

/* A value over time, by a name that is known only at run time; pk_counter_set for a static one. */
class counter
{
  public:
    explicit counter(const char *name, const char *unit = "") noexcept
        : counter_(pk_counter_named(name, unit))
    {
    }
    explicit counter(const std::string &name, const std::string &unit = std::string()) noexcept
        : counter(name.c_str(), unit.c_str())
    {
    }
    void set(double value) noexcept { pk_counter_set(counter_, value); }

  private:
    pk_counter *counter_;
};

/* What begins on one thread and ends on another (pk/span.h): moved to whoever goes on with it. It
 * ends at end(), or with the object that has it last. */
class span
{
  public:
    explicit span(pk_region &region, uint64_t id = 0) noexcept : span_(pk_span_begin(&region, id))
    {
    }
    span() noexcept : span_() {}
    span(span &&other) noexcept : span_(other.span_) { other.span_ = {}; }
    span &operator=(span &&other) noexcept
    {
        if (this != &other) {
            end();
            span_ = other.span_;
            other.span_ = {};
        }
        return *this;
    }
    ~span() { end(); }
    span(const span &) = delete;
    span &operator=(const span &) = delete;

    uint64_t id() const noexcept { return span_.id; }

    /* It has come to this point: the time since the last one counts under this region. */
    void mark(pk_region &region) noexcept { pk_span_mark(&span_, &region); }

    /* A second call is nothing. */
    void end() noexcept
    {
        pk_span_end(&span_);
        span_ = {};
    }

  private:
    pk_span span_;
};

/* A request to a server that generates tokens (pk/request.h): moved to whoever goes on with it. It
 * ends at end(), or with the object that has it last, as cancelled. */
class request
{
  public:
    explicit request(pk_region &region, uint64_t id = 0) noexcept
        : request_(pk_request_begin(&region, id))
    {
    }
    request() noexcept : request_() {}
    request(request &&other) noexcept : request_(other.request_) { other.request_ = {}; }
    request &operator=(request &&other) noexcept
    {
        if (this != &other) {
            end(PK_REQUEST_CANCELLED);
            request_ = other.request_;
            other.request_ = {};
        }
        return *this;
    }
    ~request() { end(PK_REQUEST_CANCELLED); }
    request(const request &) = delete;
    request &operator=(const request &) = delete;

    uint64_t id() const noexcept { return request_.span.id; }
    void schedule() noexcept { pk_request_schedule(&request_); }
    void prefill(uint64_t tokens) noexcept { pk_request_prefill(&request_, tokens); }
    void tokens(uint64_t count = 1) noexcept { pk_request_tokens(&request_, count); }
    void preempt() noexcept { pk_request_preempt(&request_); }

    /* A second call is nothing. */
    void end(pk_request_outcome outcome = PK_REQUEST_FINISHED) noexcept
    {
        pk_request_end(&request_, outcome);
        request_ = {};
    }

  private:
    pk_request request_;
};

/* An operation that goes on when the call that started it has returned; made by pk::comm::start.
 * Complete at finish(), or at the end of the block. */
class comm_request
{
  public:
    explicit comm_request(const pk_comm_request &started) noexcept : request_(started) {}
    comm_request(comm_request &&other) noexcept : request_(other.request_) { other.request_ = {}; }
    comm_request &operator=(comm_request &&other) noexcept
    {
        if (this != &other) {
            finish();
            request_ = other.request_;
            other.request_ = {};
        }
        return *this;
    }
    ~comm_request() { finish(); }
    comm_request(const comm_request &) = delete;
    comm_request &operator=(const comm_request &) = delete;

    /* Of a receive, how many bytes came and from whom. */
    void correct(uint64_t bytes, int32_t peer) noexcept { pk_comm_correct(&request_, bytes, peer); }

    /* Of a message; negative: as it was. */
    void set_tag(int32_t tag) noexcept { pk_comm_set_request_tag(&request_, tag); }

    /* It is complete; for so long the program had to wait for it. A second call is nothing. */
    void finish(std::chrono::nanoseconds waited = std::chrono::nanoseconds(0)) noexcept
    {
        pk_comm_finish(&request_, waited.count() > 0 ? static_cast<uint64_t>(waited.count()) : 0);
    }

  private:
    pk_comm_request request_;
};

/* A communicator (pk/comm.h) as long as this object; what it has done stays in the report. */
class comm
{
  public:
    comm(const char *library, const char *name, uint64_t id, int32_t rank, int32_t size) noexcept
        : comm_(pk_comm_create(library, name, id, rank, size))
    {
    }
    comm(const std::string &library, const std::string &name, uint64_t id, int32_t rank,
         int32_t size) noexcept
        : comm(library.c_str(), name.c_str(), id, rank, size)
    {
    }
    comm(comm &&other) noexcept : comm_(other.comm_) { other.comm_ = nullptr; }
    comm &operator=(comm &&other) noexcept
    {
        std::swap(comm_, other.comm_);
        return *this;
    }
    ~comm() { pk_comm_destroy(comm_); }
    comm(const comm &) = delete;
    comm &operator=(const comm &) = delete;

    pk_comm *get() const noexcept { return comm_; }

    comm_request start(pk_comm_op op, pk_comm_type type, uint64_t count, int32_t peer = -1) noexcept
    {
        return comm_request(pk_comm_start(comm_, op, type, count, peer));
    }

  private:
    pk_comm *comm_;
};

/* A region as long as a block. Moving hands it on, so functions may return one; it still ends on
 * the thread where it began. */
class scope
{
  public:
    explicit scope(pk_region &region) noexcept : region_(&region) { pk_region_begin(region_); }
    explicit scope(const char *name) noexcept : scope(*pk_region_named(name)) {}
    explicit scope(const std::string &name) noexcept : scope(name.c_str()) {}
    scope(scope &&other) noexcept : region_(other.region_) { other.region_ = nullptr; }
    ~scope()
    {
        if (region_)
            pk_region_end(region_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

    void add(uint64_t bytes, uint64_t flops = 0) noexcept { pk_region_add(region_, bytes, flops); }

    /* What the region does is an operation on a communicator. */
    void call(const comm &on, pk_comm_op op, pk_comm_type type, uint64_t count,
              int32_t peer = -1) noexcept
    {
        pk_comm_call(region_, on.get(), op, type, count, peer);
    }

    /* This scope's region ends and another begins, with one clock read. */
    void next(pk_region &to) noexcept
    {
        pk_region_next(region_, &to);
        region_ = &to;
    }

  private:
    pk_region *region_;
};

/* A distribution of durations, as of now, in std::chrono's units; 30 KiB, as pk_stats.
 *
 *     pk::stats s(forward);
 *     if (s.quantile(0.99) > std::chrono::milliseconds(5)) ...
 *
 * count() is 0 where nothing has been recorded; status() then says why. */
class stats
{
  public:
    using nanoseconds = std::chrono::nanoseconds;
    using fractional = std::chrono::duration<double, std::nano>;

    explicit stats(const pk_region &of) noexcept : raw_() { status_ = pk_region_stats(&of, &raw_); }

    static stats of_steps() noexcept
    {
        stats s;
        s.status_ = pk_step_stats(&s.raw_);
        return s;
    }

    static stats on_gpu(const pk_region &of) noexcept
    {
        stats s;
        s.status_ = pk_region_gpu_stats(&of, &s.raw_);
        return s;
    }

    pk_status status() const noexcept { return status_; }
    const pk_stats &raw() const noexcept { return raw_; }
    uint64_t count() const noexcept { return raw_.count; }
    uint64_t bytes() const noexcept { return raw_.bytes; }
    uint64_t flops() const noexcept { return raw_.flops; }
    nanoseconds sum() const noexcept { return in_ns(raw_.sum); }
    nanoseconds self() const noexcept { return in_ns(raw_.self); }
    nanoseconds min() const noexcept { return in_ns(raw_.min); }
    nanoseconds max() const noexcept { return in_ns(raw_.max); }
    fractional mean() const noexcept { return fractional(raw_.mean); }
    fractional stddev() const noexcept { return fractional(raw_.stddev); }
    nanoseconds quantile(double q) const noexcept { return in_ns(pk_stats_quantile(&raw_, q)); }

  private:
    stats() noexcept : raw_(), status_(PK_EOFF) {}
    static nanoseconds in_ns(uint64_t n) noexcept { return nanoseconds(static_cast<int64_t>(n)); }

    pk_stats raw_;
    pk_status status_;
};

/* What is put into a stream meanwhile as a region of that stream (pk/gpu.h):
 *
 *     pk::gpu_scope s(forward, stream);
 *
 * Files that differ in what stream 0 is have classes of different names. */
#if PK_GPU_DEFAULT_STREAM_ == 2
inline namespace stream_per_thread
{
#else
inline namespace stream_legacy
{
#endif
class gpu_scope
{
  public:
    gpu_scope(pk_region &region, void *stream) noexcept
        : region_(&region), stream_(pk_gpu_stream_(stream))
    {
        pk_gpu_begin(region_, stream_);
    }
    gpu_scope(gpu_scope &&other) noexcept : region_(other.region_), stream_(other.stream_)
    {
        other.region_ = nullptr;
    }
    ~gpu_scope()
    {
        if (region_)
            pk_gpu_end(region_, stream_);
    }
    gpu_scope(const gpu_scope &) = delete;
    gpu_scope &operator=(const gpu_scope &) = delete;

  private:
    pk_region *region_;
    void *stream_;
};
} // namespace stream_...

#ifdef PK_DISABLE
} // namespace disabled
#endif
} // namespace pk

#endif
