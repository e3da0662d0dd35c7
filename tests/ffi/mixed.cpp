/* mixed.cpp - what each mixed program does, in C++: see seen.py. */
#include <pk/goodput.h>
#include <pk/pk.hpp>

#include <cstdlib>
#include <thread>

extern "C" {
void inner_work(void (*back)(void)); /* inner.c */
void *inner_stream(void);
}

namespace
{

pk_region outer = PK_REGION_OF(PK_COMPUTE, "outer");
pk_region back = PK_REGION_OF(PK_IO, "back");
pk_region first = PK_REGION("first"), second = PK_REGION("second"), moment = PK_REGION("moment");
pk_region span = PK_REGION_OF(PK_COMPUTE, "span");

int failed;

void expect(bool fine, int line)
{
    if (!fine)
        failed = line;
}

void called_back()
{
    pk::scope s(back);
}

void work()
{
    pk::counter number("number", "pieces");
    for (int i = 0; i < 10; i++) {
        pk::scope s(outer);
        s.add(100, 10);
        inner_work(called_back);
        number.set(i);
        pk::step(32);
    }
    pk::scope sized(pk::variant(outer, "n", 3));
    pk::scope phases(first);
    phases.next(second);
    pk_region_note(&second, &first, 7);
    pk_region_note_text(&second, &moment, "seven");
    pk_region_mark(&moment);
    if (void *stream = inner_stream()) {
        pk::gpu_scope on_stream(span, stream);
        pk::gpu_scope on_default(span, nullptr);
    }
}

} // namespace

int main()
{
    pk::options options;
    options.trace_path = "mixed.json";
    options.backends = "cuda";
    options.rank = 1;
    options.world_size = 2;
    pk::session session(options);
    expect(pk::session(options).status() == PK_EBUSY, __LINE__);
    pk::set_limit(outer, 600);
    expect(pk::capture("there is no history") == PK_EOFF, __LINE__);
    pk::step_begin();
    pk::step_kind(nullptr);
    pk_phase_begin(PK_PHASE_RESTORE);
    pk_training_set_step(100);
    pk_phase_end(PK_PHASE_RESTORE);
    work();
    pk_phase_begin(PK_PHASE_CHECKPOINT);
    pk_checkpoint_done(105, 4096);
    pk_phase_end(PK_PHASE_CHECKPOINT);
    std::thread([] {
        pk_thread_set_name("second thread");
        pk::scope s("elsewhere");
    }).join();
    pk::stats stats(outer);
    expect(stats.count() == 10 && stats.bytes() == 1000 && stats.flops() == 100, __LINE__);
    expect(stats.quantile(0.5) >= stats.min() && stats.quantile(0.5) <= stats.max(), __LINE__);
    expect(pk::stats::of_steps().count() == 10, __LINE__);
    expect(session.stop() == PK_OK, __LINE__);
    expect(pk::stats::on_gpu(span).count() == (std::getenv("PK_CUDA_LIBRARY") ? 2 : 0), __LINE__);
    return failed;
}
