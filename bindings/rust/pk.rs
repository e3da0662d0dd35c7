//! pk - perfkit for Rust: regions, steps and counters of a program, in one trace with those of its C and C++.
//!
//! ```no_run
//! fn main() -> Result<(), pk::Error> {
//!     let session = pk::Options::new().trace_path("run.json").report_path("-").start()?;
//!     for batch in 0..1000 {
//!         {
//!             let _scope = pk::scope!("forward", pk::Kind::Compute); // until the end of the block
//!         }
//!         pk::step(32); // this step is over, the next one begins
//!     }
//!     session.stop()
//! }
//! ```
//!
//! No other crates; rustc 1.63 or later:
//!
//! ```text
//! rustc -O --crate-type rlib --crate-name pk pk.rs
//! rustc -O run.rs --extern pk=libpk.rlib -L /usr/local/lib
//! ```
//!
//! or with cargo: `pk = { path = "/usr/local/share/perfkit/rust" }`.
//!
//! - Threads: everything from any thread. A [`Scope`] ends on the thread where it began, so it is not `Send`; a
//!   future that holds one across an `await` is not either.
//! - Failure: recording never fails visibly; what could not be recorded is in [`counts`]. Control calls answer an
//!   [`Error`]. Nothing here panics.
//! - Unsafe: none for callers, but for [`gpu_scope`], whose stream is a pointer. A scope that is forgotten
//!   (`mem::forget`) is closed by the next end around it, and counted as unbalanced.
//! - Cost: off, a load and a branch, inlined; on, that of C (docs/ffi.md).

mod raw;
mod session;

pub use session::{backend, counts, flush, version, Backend, Counts, Error, Options, Session, Stats};

use raw::*;
use std::cell::UnsafeCell;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int, c_void};
use std::sync::atomic::Ordering;

/// What a region's self time is spent on; the report of the steps adds up each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Kind {
    Other = 0,
    Compute = 1,
    Data = 2,
    Comm = 3,
    Io = 4,
    Wait = 5,
}

/// Is a session open in this process, whoever started it?
#[inline(always)]
pub fn started() -> bool {
    unsafe { pk_gate_.load(Ordering::Relaxed) != 0 }
}

/// Text for C: it ends at the first NUL byte, if there is one.
pub(crate) fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}

pub(crate) fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

// ---- regions ----

/// A named region: [`region!`] makes a static one, [`Region::named`] one whose name is known at run time only.
#[repr(transparent)]
pub struct Region(UnsafeCell<raw::Region>);

// The library looks after what it changes: its id, atomically.
unsafe impl Sync for Region {}

impl Region {
    /// For statics, which [`region!`] writes for you. Both texts end with a NUL byte.
    pub const fn new(kind: Kind, name: &'static str, file: &'static str, line: u32) -> Region {
        assert!(!name.is_empty() && name.as_bytes()[name.len() - 1] == 0, "the name has to end with \\0");
        assert!(!file.is_empty() && file.as_bytes()[file.len() - 1] == 0, "the file has to end with \\0");
        Region(UnsafeCell::new(raw::Region {
            name: name.as_ptr() as *const c_char,
            kind: kind as u32,
            id: 0,
            file: file.as_ptr() as *const c_char,
            line,
            reserved: 0,
            spare: [0; 4],
        }))
    }

    /// The region of that name and kind, for the process's life: a look-up, so keep it.
    pub fn named(kind: Kind, name: &str) -> &'static Region {
        unsafe { Region::at(pk_region_named_of(kind as c_int, c_text(name).as_ptr())) }
    }

    /// `"attention[seq=512]"`: a region of its own, hence a distribution of its own, for each value.
    pub fn variant(&'static self, key: &str, value: i64) -> &'static Region {
        unsafe { Region::at(pk_region_variant(self.0.get(), c_text(key).as_ptr(), value)) }
    }

    /// How long a call of it may take, in seconds, before the watchdog says that the program hangs.
    pub fn limit(&'static self, seconds: f64) {
        unsafe { pk_region_set_limit(self.0.get(), seconds) }
    }

    unsafe fn at(raw: *mut raw::Region) -> &'static Region {
        &*(raw as *const Region)
    }

    /// Begins it; it ends when the scope is dropped.
    #[inline(always)]
    pub fn enter(&'static self) -> Scope {
        if started() {
            unsafe { pk_region_begin_on_(self.0.get()) }
        }
        Scope { region: self, here: PhantomData }
    }

    /// A mark at this moment in the trace, under the region's name.
    #[inline]
    pub fn mark(&'static self) {
        if started() {
            unsafe { pk_region_mark_on_(self.0.get()) }
        }
    }

    /// The distribution of all calls so far, on all threads; count is 0 if there was none.
    pub fn stats(&self) -> Result<Box<Stats>, Error> {
        Stats::from(|stats| unsafe { pk_region_stats(self.0.get(), stats) })
    }

    /// The same of its spans on CUDA streams.
    pub fn gpu_stats(&self) -> Result<Box<Stats>, Error> {
        Stats::from(|stats| unsafe { pk_region_gpu_stats(self.0.get(), stats) })
    }
}

/// An open region. It belongs to the thread that made it.
#[must_use = "the region ends when this is dropped: let _scope = ..."]
pub struct Scope {
    region: &'static Region,
    here: PhantomData<*const ()>,
}

impl Scope {
    /// Work done inside: throughput in report and trace.
    #[inline]
    pub fn add(&self, bytes: u64, flops: u64) {
        if started() {
            unsafe { pk_region_add_on_(self.region.0.get(), bytes, flops) }
        }
    }

    /// What is special about the open call: an argument of it in the trace, under the key's name.
    #[inline]
    pub fn note(&self, key: &'static Region, value: i64) {
        if started() {
            unsafe { pk_region_note_on_(self.region.0.get(), key.0.get(), value) }
        }
    }

    /// The same with a text.
    pub fn note_text(&self, key: &'static Region, value: &str) {
        if started() {
            unsafe { pk_region_note_text_on_(self.region.0.get(), key.0.get(), c_text(value).as_ptr()) }
        }
    }

    /// This region ends and another one begins, with one clock read between them.
    #[inline]
    pub fn next(&mut self, to: &'static Region) {
        if started() {
            unsafe { pk_region_next_on_(self.region.0.get(), to.0.get()) }
        }
        self.region = to;
    }
}

impl Drop for Scope {
    #[inline(always)]
    fn drop(&mut self) {
        if started() {
            unsafe { pk_region_end_on_(self.region.0.get()) }
        }
    }
}

/// A static region: `static FORWARD: &pk::Region = pk::region!("forward", pk::Kind::Compute);`, or anywhere in a
/// function.
#[macro_export]
macro_rules! region {
    ($name:literal) => {
        $crate::region!($name, $crate::Kind::Other)
    };
    ($name:literal, $kind:expr) => {{
        static REGION: $crate::Region =
            $crate::Region::new($kind, concat!($name, "\0"), concat!(file!(), "\0"), line!());
        &REGION
    }};
}

/// From here to the end of the block: `let _scope = pk::scope!("load", pk::Kind::Data);`
#[macro_export]
macro_rules! scope {
    ($($region:tt)+) => {
        $crate::region!($($region)+).enter()
    };
}

/// What is put into a CUDA stream while this lives, as a region of that stream (pk/gpu.h).
#[must_use = "the span ends when this is dropped: let _span = ..."]
pub struct GpuScope {
    region: &'static Region,
    stream: *mut c_void,
}

/// # Safety
/// `stream` is a cudaStream_t (or null for the legacy default stream) that outlives the scope.
pub unsafe fn gpu_scope(region: &'static Region, stream: *mut c_void) -> GpuScope {
    let stream = if stream.is_null() { 1 as *mut c_void } else { stream };
    if pk_gpu_gate_.load(Ordering::Relaxed) != 0 {
        pk_gpu_begin_on_(region.0.get(), stream);
    }
    GpuScope { region, stream }
}

impl Drop for GpuScope {
    fn drop(&mut self) {
        unsafe {
            if pk_gpu_gate_.load(Ordering::Relaxed) != 0 {
                pk_gpu_end_on_(self.region.0.get(), self.stream);
            }
        }
    }
}

// ---- steps, counters, threads ----

/// Ends the current step of the training loop, in which there were so many samples, and begins the next.
#[inline]
pub fn step(items: u64) {
    if started() {
        unsafe { pk_step_on_(items) }
    }
}

/// The next step begins here, not where the last one ended; what lies between is in none.
#[inline]
pub fn step_begin() {
    if started() {
        unsafe { pk_step_begin_on_() }
    }
}

/// Of the step that runs: "evaluation", say, which has figures of its own. "": the usual kind.
pub fn step_kind(kind: &str) {
    if started() {
        unsafe { pk_step_kind_on_(c_text(kind).as_ptr()) }
    }
}

/// Floating-point operations of the step that runs: what the model needs, and what was done (0: as many).
pub fn step_flops(model: f64, hardware: f64) {
    if started() {
        unsafe { pk_step_add_flops_on_(model, hardware) }
    }
}

/// What the training waits for (pk/goodput.h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Phase {
    Startup = 1,
    Compile,
    Checkpoint,
    Restore,
    Evaluation,
}

/// A phase of the training until it is dropped; the one around it goes on then.
#[must_use = "the phase ends when this is dropped"]
pub struct InPhase(Phase);

/// From here on the training is in that phase, until what this returns is dropped.
pub fn phase(phase: Phase) -> InPhase {
    if started() {
        unsafe { pk_phase_begin_on_(phase as c_int) }
    }
    InPhase(phase)
}

impl Drop for InPhase {
    fn drop(&mut self) {
        if started() {
            unsafe { pk_phase_end_on_(self.0 as c_int) }
        }
    }
}

/// A checkpoint is complete that has `step` steps behind it. bytes: its size; 0: unknown.
pub fn checkpoint_done(step: u64, bytes: u64) {
    if started() {
        unsafe { pk_checkpoint_done_on_(step, bytes) }
    }
}

/// The training has `step` steps behind it, and the step that runs is the next one.
pub fn training_at(step: u64) {
    if started() {
        unsafe { pk_training_set_step_on_(step) }
    }
}

/// A trace of what the history holds, and of so many steps more.
pub fn capture(reason: &str, steps: u32) -> Result<(), Error> {
    Error::check(unsafe { pk_capture(c_text(reason).as_ptr(), steps) })
}

/// The distribution of the durations of all steps.
pub fn step_stats() -> Result<Box<Stats>, Error> {
    Stats::from(|stats| unsafe { pk_step_stats(stats) })
}

/// A value over time; made by [`counter!`].
#[repr(transparent)]
pub struct Counter(UnsafeCell<raw::Counter>);

unsafe impl Sync for Counter {}

impl Counter {
    /// For statics, which [`counter!`] writes for you. Both texts end with a NUL byte.
    pub const fn new(name: &'static str, unit: &'static str) -> Counter {
        assert!(!name.is_empty() && name.as_bytes()[name.len() - 1] == 0, "the name has to end with \\0");
        assert!(!unit.is_empty() && unit.as_bytes()[unit.len() - 1] == 0, "the unit has to end with \\0");
        Counter(UnsafeCell::new(raw::Counter {
            name: name.as_ptr() as *const c_char,
            unit: unit.as_ptr() as *const c_char,
            id: 0,
            reserved: 0,
            spare: [0; 2],
        }))
    }

    /// A point in the trace, a sample of the report's distribution.
    #[inline]
    pub fn set(&'static self, value: f64) {
        if started() {
            unsafe { pk_counter_set_on_(self.0.get(), value) }
        }
    }
}

/// A static counter: `pk::counter!("queue", "batches").set(3.0)`
#[macro_export]
macro_rules! counter {
    ($name:literal) => {
        $crate::counter!($name, "")
    };
    ($name:literal, $unit:literal) => {{
        static COUNTER: $crate::Counter = $crate::Counter::new(concat!($name, "\0"), concat!($unit, "\0"));
        &COUNTER
    }};
}

/// Names the calling thread in trace and report.
pub fn thread_name(name: &str) {
    unsafe { pk_thread_set_name(c_text(name).as_ptr()) }
}
