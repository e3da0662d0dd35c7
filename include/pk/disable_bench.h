/* pk/disable_bench.h - what -DPK_DISABLE makes of libpkbench's calls: nothing (pk/disable.h).
 *
 * Benchmarks do not run: pk_bench answers PK_ENOTSUP, since an answer of 0 ns would be wrong, and
 * its result is marked as skipped. PK_BENCH registers nothing, pk_bench_begin says 0 iterations,
 * pk_bench_main returns 0. pk_keep and pk_clobber call nothing and stay as they are.
 *
 * Not for direct use, as pk/disable.h is not.
 */
#ifdef PK_DISABLE

/* clang-format off: a function that does nothing fits on a line. */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

#ifdef PK_DISABLE_BENCH_
#undef PK_DISABLE_BENCH_
PK_API pk_status pk_bench(const char *name, void (*fn)(void *), void *arg,
                          const pk_bench_options *options, pk_bench_result *result)
{
    PK_DISABLE_ZERO_(result);
    if (result && result->size >= sizeof *result) {
        result->outcome = PK_BENCH_OUTCOME_SKIPPED;
        __builtin_memcpy(result->reason, PK_DISABLE_REASON_, sizeof PK_DISABLE_REASON_);
    }
    return PK_ENOTSUP;
}

PK_API int pk_bench_main(int argc, char **argv)
{
    return 0;
}

PK_API pk_status pk_bench_add(const char *name, void (*body)(pk_bench_run *),
                              const pk_bench_options *options)
{
    return PK_OK;
}

PK_API uint64_t pk_bench_begin(pk_bench_run *bench)
{
    return 0;
}

PK_API int64_t pk_bench_arg(const pk_bench_run *bench, unsigned axis)
{
    return 0;
}

PK_API uint32_t pk_bench_threads(const pk_bench_run *bench)
{
    return 0;
}

PK_API uint32_t pk_bench_thread(const pk_bench_run *bench)
{
    return 0;
}

PK_API void *pk_bench_user(const pk_bench_run *bench)
{
    return NULL;
}

PK_API void pk_bench_result_release(pk_bench_result *result) {}
PK_API void pk_bench_end(pk_bench_run *bench) {}
PK_API void pk_bench_pause(pk_bench_run *bench) {}
PK_API void pk_bench_resume(pk_bench_run *bench) {}
PK_API void pk_bench_add_time(pk_bench_run *bench, double ns) {}
PK_API void pk_bench_set_label(pk_bench_run *bench, const char *label) {}
PK_API void pk_bench_give_up(pk_bench_run *bench, pk_bench_outcome outcome, const char *reason) {}
PK_API void pk_bench_set_work(pk_bench_run *bench, uint64_t bytes, uint64_t flops, uint64_t items)
{
}
PK_API void pk_bench_add_counter(pk_bench_run *bench, const char *name, double value,
                                 pk_bench_unit unit)
{
}
PK_API void pk_bench_note_allocation(size_t bytes) {}
#endif

#ifdef PK_DISABLE_BENCH_REGISTER_
#undef PK_DISABLE_BENCH_REGISTER_
PK_API void pk_bench_register_(pk_bench_entry *entry) {}
PK_API void pk_bench_attach_(pk_bench_entry *entry, pk_bench_axis *axis) {}
#endif

#pragma GCC diagnostic pop

#endif
