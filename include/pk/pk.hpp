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
 *     }
 *
 * Threads: a pk::scope belongs to the thread that made it.
 * Failure: nothing here throws.
 * Cost:    as pk/region.h; a scope made from a string looks the name up each time.
 */
#ifndef PK_PK_HPP
#define PK_PK_HPP

#include <pk/pk.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace pk {

/* pk_options, all zero but its size. */
struct options : pk_options {
    options()
    {
        std::memset(static_cast<pk_options *>(this), 0, sizeof(pk_options));
        size = static_cast<uint32_t>(sizeof(pk_options));
    }
};

/* A session as long as a block. False if pk_start failed; status() says how. */
class session {
public:
    explicit session(const pk_options &wanted) : status_(pk_start(&wanted)) {}
    session() : status_(pk_start(nullptr)) {}
    ~session()
    {
        if (status_ == PK_OK)
            pk_stop();
    }
    session(const session &) = delete;
    session &operator=(const session &) = delete;

    explicit operator bool() const noexcept { return status_ == PK_OK; }
    pk_status status() const noexcept { return status_; }

private:
    pk_status status_;
};

/* A region as long as a block. */
class scope {
public:
    explicit scope(pk_region &region) noexcept : region_(&region) { pk_region_begin(region_); }
    explicit scope(const char *name) noexcept : scope(*pk_region_named(name)) {}
    explicit scope(const std::string &name) noexcept : scope(name.c_str()) {}
    ~scope() { pk_region_end(region_); }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

    void add(uint64_t bytes, uint64_t flops = 0) noexcept { pk_region_add(region_, bytes, flops); }

    /* This scope's region ends and another begins, with one clock read. */
    void next(pk_region &to) noexcept
    {
        pk_region_next(region_, &to);
        region_ = &to;
    }

private:
    pk_region *region_;
};

/* What is put into a stream meanwhile as a region of that stream (pk/gpu.h):
 *
 *     pk::gpu_scope s(forward, stream);
 *
 * Files that differ in what stream 0 is have classes of different names. */
#if PK_GPU_DEFAULT_STREAM_ == 2
inline namespace stream_per_thread {
#else
inline namespace stream_legacy {
#endif
class gpu_scope {
public:
    gpu_scope(pk_region &region, void *stream) noexcept
        : region_(&region), stream_(pk_gpu_stream_(stream))
    {
        pk_gpu_begin(region_, stream_);
    }
    ~gpu_scope() { pk_gpu_end(region_, stream_); }
    gpu_scope(const gpu_scope &) = delete;
    gpu_scope &operator=(const gpu_scope &) = delete;

private:
    pk_region *region_;
    void *stream_;
};
} // namespace stream_...

} // namespace pk

#endif
