//! mixed.rs - what each mixed program does, in Rust: see seen.py.

use pk::{Kind, Region};
use std::thread;

static OUTER: &Region = pk::region!("outer", Kind::Compute);
static SPAN: &Region = pk::region!("span", Kind::Compute);
static BACK: &Region = pk::region!("back", Kind::Io);

#[link(name = "inner")]
extern "C" {
    fn inner_work(back: extern "C" fn());
    fn inner_stream() -> *mut std::os::raw::c_void;
}

extern "C" fn called_back() {
    let _scope = BACK.enter();
}

fn work() {
    for i in 0..10 {
        let scope = OUTER.enter();
        scope.add(100, 10);
        unsafe { inner_work(called_back) };
        pk::counter!("number", "pieces").set(f64::from(i));
        pk::step(32);
    }
    let _sized = OUTER.variant("n", 3).enter();
    let mut phases = pk::scope!("first");
    phases.next(pk::region!("second"));
    phases.note(pk::region!("first"), 7);
    phases.note_text(pk::region!("moment"), "seven");
    pk::region!("moment").mark();
    unsafe {
        let stream = inner_stream();
        if !stream.is_null() {
            let _on_stream = pk::gpu_scope(SPAN, stream);
            let _on_default = pk::gpu_scope(SPAN, std::ptr::null_mut());
        }
    }
}

fn main() -> Result<(), pk::Error> {
    assert!(!pk::started());
    let session = pk::Options::new().trace_path("mixed.json").backends("cuda").rank(1).world_size(2).start()?;
    let again = pk::Options::new().start().err().expect("a second start");
    assert_eq!(again.status, -2);
    assert!(again.to_string().ends_with("(PK_EBUSY)"), "{}", again);
    OUTER.limit(600.0);
    let none = pk::capture("there is no history", 2).err().expect("a capture");
    assert!(none.to_string().ends_with("(PK_EOFF)"), "{}", none);
    pk::step_begin();
    pk::step_kind("");
    {
        let _restoring = pk::phase(pk::Phase::Restore);
        pk::training_at(100);
    }
    work();
    let saving = pk::phase(pk::Phase::Checkpoint);
    pk::checkpoint_done(105, 4096);
    drop(saving);
    thread::spawn(|| {
        pk::thread_name("second thread");
        let _scope = Region::named(Kind::Other, "elsewhere\0cut").enter();
    })
    .join()
    .expect("a thread");
    let stats = OUTER.stats()?;
    assert_eq!((stats.count, stats.bytes, stats.flops), (10, 1000, 100));
    assert!(stats.quantile(0.5) >= stats.min && stats.quantile(0.5) <= stats.max);
    assert_eq!(pk::step_stats()?.count, 10);
    assert_eq!(pk::region!("never").stats()?.count, 0);
    assert!(!pk::backend("nvml")?.live && !pk::backend("nvml")?.reason.is_empty());
    assert_eq!(pk::backend("nonsense").err().expect("no such backend").status, -8);
    assert!(pk::version().len() >= 5);
    pk::flush()?;
    session.stop()?;
    let spans = if std::env::var_os("PK_CUDA_LIBRARY").is_some() { 2 } else { 0 };
    assert_eq!(SPAN.gpu_stats()?.count, spans);
    let counts = pk::counts()?;
    assert_eq!((counts.begun, counts.recorded, counts.unbalanced, counts.steps), (34, 34, 0, 10));
    Ok(())
}
