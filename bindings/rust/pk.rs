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
//! One file, no other crates; rustc 1.63 or later:
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

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString};
use std::fmt;
use std::marker::PhantomData;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

/// What a region's own time is spent on; the report of the steps adds up each.
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

#[repr(C)]
struct RawRegion {
    name: *const c_char,
    kind: u32,
    id: u32,
    file: *const c_char,
    line: u32,
    reserved: u32,
}

#[repr(C)]
struct RawCounter {
    name: *const c_char,
    unit: *const c_char,
    id: u32,
    reserved: u32,
}

#[repr(C)]
struct RawOptions {
    size: u32,
    ring_records: u32,
    trace_path: *const c_char,
    report_path: *const c_char,
    memory_bytes: u64,
    backends: *const c_char,
    arena_path: *const c_char,
    clock: *const c_char,
    trace_max_bytes: u64,
    flush_ms: u32,
    report_threads: u32,
    warmup_steps: u32,
    rank: i32,
    world_size: i32,
    log_level: u32,
    log: *const c_void,
    log_user: *mut c_void,
    cupti_steps: *const c_char,
    cupti_graph_nodes: u32,
    nvtx_consume: u32,
    nvtx_shim: *const c_char,
}

#[repr(C)]
struct RawBackend {
    size: u32,
    live: u32,
    version: [c_char; 32],
    reason: [c_char; 192],
}

#[link(name = "pk")]
extern "C" {
    static pk_gate_: AtomicU32;
    static pk_gpu_gate_: AtomicU32;
    // What C's inline functions call while a session is open.
    fn pk_region_begin_on_(region: *mut RawRegion);
    fn pk_region_end_on_(region: *mut RawRegion);
    fn pk_region_next_on_(from: *mut RawRegion, to: *mut RawRegion);
    fn pk_region_add_on_(region: *mut RawRegion, bytes: u64, flops: u64);
    fn pk_region_mark_on_(region: *mut RawRegion);
    fn pk_step_on_(items: u64);
    fn pk_counter_set_on_(counter: *mut RawCounter, value: f64);
    fn pk_gpu_begin_on_(region: *mut RawRegion, stream: *mut c_void);
    fn pk_gpu_end_on_(region: *mut RawRegion, stream: *mut c_void);
    fn pk_region_named_of(kind: c_int, name: *const c_char) -> *mut RawRegion;
    fn pk_region_variant(region: *mut RawRegion, key: *const c_char, value: i64) -> *mut RawRegion;
    fn pk_region_stats(region: *const RawRegion, stats: *mut Stats) -> c_int;
    fn pk_region_gpu_stats(region: *const RawRegion, stats: *mut Stats) -> c_int;
    fn pk_step_stats(stats: *mut Stats) -> c_int;
    fn pk_stats_quantile(stats: *const Stats, q: f64) -> u64;
    fn pk_thread_name(name: *const c_char);
    fn pk_start(options: *const RawOptions) -> c_int;
    fn pk_flush() -> c_int;
    fn pk_stop() -> c_int;
    fn pk_get_counts(counts: *mut Counts) -> c_int;
    fn pk_backend_status(name: *const c_char, info: *mut RawBackend) -> c_int;
    fn pk_status_name(status: c_int) -> *const c_char;
    fn pk_error_message() -> *const c_char;
    fn pk_version() -> *const c_char;
}

/// Is a session open in this process, whoever started it?
#[inline(always)]
pub fn started() -> bool {
    unsafe { pk_gate_.load(Ordering::Relaxed) != 0 }
}

/// Text for C: it ends at the first NUL byte, if there is one.
fn c_text(text: &str) -> CString {
    CString::new(text.split('\0').next().unwrap_or("")).unwrap_or_default()
}

fn text_of(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

// ---- regions ----

/// A named region: [`region!`] makes a static one, [`Region::named`] one whose name is known at run time only.
#[repr(transparent)]
pub struct Region(UnsafeCell<RawRegion>);

// The library looks after what it changes: its id, atomically.
unsafe impl Sync for Region {}

impl Region {
    /// For statics, which [`region!`] writes for you. Both texts end with a NUL byte.
    pub const fn new(kind: Kind, name: &'static str, file: &'static str, line: u32) -> Region {
        assert!(name.len() > 0 && name.as_bytes()[name.len() - 1] == 0, "the name has to end with \\0");
        assert!(file.len() > 0 && file.as_bytes()[file.len() - 1] == 0, "the file has to end with \\0");
        Region(UnsafeCell::new(RawRegion {
            name: name.as_ptr() as *const c_char,
            kind: kind as u32,
            id: 0,
            file: file.as_ptr() as *const c_char,
            line,
            reserved: 0,
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

    unsafe fn at(raw: *mut RawRegion) -> &'static Region {
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

/// A static region: `static FORWARD: &pk::Region = pk::region!("forward", pk::Kind::Compute);`, or anywhere in a function.
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

/// The distribution of the durations of all steps.
pub fn step_stats() -> Result<Box<Stats>, Error> {
    Stats::from(|stats| unsafe { pk_step_stats(stats) })
}

/// A value over time; made by [`counter!`].
#[repr(transparent)]
pub struct Counter(UnsafeCell<RawCounter>);

unsafe impl Sync for Counter {}

impl Counter {
    /// For statics, which [`counter!`] writes for you. Both texts end with a NUL byte.
    pub const fn new(name: &'static str, unit: &'static str) -> Counter {
        assert!(name.len() > 0 && name.as_bytes()[name.len() - 1] == 0, "the name has to end with \\0");
        assert!(unit.len() > 0 && unit.as_bytes()[unit.len() - 1] == 0, "the unit has to end with \\0");
        Counter(UnsafeCell::new(RawCounter {
            name: name.as_ptr() as *const c_char,
            unit: unit.as_ptr() as *const c_char,
            id: 0,
            reserved: 0,
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
    unsafe { pk_thread_name(c_text(name).as_ptr()) }
}

// ---- sessions ----

/// A control call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The number, as in pk/status.h.
    pub status: i32,
    /// The sentence.
    pub message: String,
}

impl Error {
    fn check(status: c_int) -> Result<(), Error> {
        match status {
            0 => Ok(()),
            _ => Err(Error { status, message: text_of(unsafe { pk_error_message() }) }),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, text_of(unsafe { pk_status_name(self.status) }))
    }
}

impl std::error::Error for Error {}

/// What a session is to do; the fields are those of pk/session.h. What is not set comes from the environment.
pub struct Options {
    raw: RawOptions,
    kept: Vec<CString>,
}

macro_rules! text_options {
    ($($name:ident)+) => { $(
        /// As in pk/session.h.
        pub fn $name(mut self, text: &str) -> Options {
            let text = c_text(text);
            self.raw.$name = text.as_ptr(); // the text stays where it is when its CString moves
            self.kept.push(text);
            self
        }
    )+ };
}

macro_rules! number_options {
    ($($name:ident: $type:ty)+) => { $(
        /// As in pk/session.h.
        pub fn $name(mut self, number: $type) -> Options {
            self.raw.$name = number;
            self
        }
    )+ };
}

impl Options {
    pub fn new() -> Options {
        // All zero is every field's default.
        let mut raw: RawOptions = unsafe { std::mem::zeroed() };
        raw.size = std::mem::size_of::<RawOptions>() as u32;
        Options { raw, kept: Vec::new() }
    }

    text_options! { trace_path report_path backends arena_path clock cupti_steps nvtx_shim }
    number_options! { ring_records: u32 memory_bytes: u64 trace_max_bytes: u64 flush_ms: u32 report_threads: u32
                      warmup_steps: u32 rank: i32 world_size: i32 log_level: u32 cupti_graph_nodes: u32
                      nvtx_consume: u32 }

    /// Begins a session, which ends when it is dropped.
    pub fn start(&self) -> Result<Session, Error> {
        Error::check(unsafe { pk_start(&self.raw) })?;
        Ok(Session { open: true })
    }
}

impl Default for Options {
    fn default() -> Options {
        Options::new()
    }
}

/// An open session. Dropped, it stops without a word; [`Session::stop`] says how that went.
#[must_use = "the session ends when this is dropped"]
pub struct Session {
    open: bool,
}

impl Session {
    /// Ends the session and writes trace and report. Statistics stay readable until the next one.
    pub fn stop(mut self) -> Result<(), Error> {
        self.open = false;
        Error::check(unsafe { pk_stop() })
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.open {
            unsafe { pk_stop() };
        }
    }
}

/// Everything recorded before this call is in the trace file when it returns.
pub fn flush() -> Result<(), Error> {
    Error::check(unsafe { pk_flush() })
}

/// The version of the library in use.
pub fn version() -> String {
    text_of(unsafe { pk_version() })
}

/// What became of what was recorded (pk_counts).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Counts {
    size: u32,
    pub threads: u32,
    pub begun: u64,
    pub recorded: u64,
    pub written: u64,
    pub dropped: u64,
    pub unbalanced: u64,
    pub too_deep: u64,
    pub stray_ends: u64,
    pub points: u64,
    pub points_dropped: u64,
    pub unwritten: u64,
    pub regions: u64,
    pub steps: u64,
    pub memory_bytes: u64,
    pub trace_bytes: u64,
}

/// During a session and after it.
pub fn counts() -> Result<Counts, Error> {
    let mut counts = Counts { size: std::mem::size_of::<Counts>() as u32, ..Counts::default() };
    Error::check(unsafe { pk_get_counts(&mut counts) })?;
    Ok(counts)
}

/// What else may record: whether it does, its version, and the reason.
#[derive(Clone, Debug)]
pub struct Backend {
    pub live: bool,
    pub version: String,
    pub reason: String,
}

/// "cuda", "cupti", "nvtx", "nccl" or "nvml".
pub fn backend(name: &str) -> Result<Backend, Error> {
    let size = std::mem::size_of::<RawBackend>() as u32;
    let mut raw = RawBackend { size, live: 0, version: [0; 32], reason: [0; 192] };
    Error::check(unsafe { pk_backend_status(c_text(name).as_ptr(), &mut raw) })?;
    Ok(Backend { live: raw.live != 0, version: text_of(raw.version.as_ptr()), reason: text_of(raw.reason.as_ptr()) })
}

/// A distribution of durations in ns (pk/stats.h).
#[repr(C)]
pub struct Stats {
    pub count: u64,
    pub sum: u64,
    pub min: u64,
    pub max: u64,
    pub mean: f64,
    pub stddev: f64,
    /// The sum without the time in regions inside this one.
    pub own: u64,
    pub bytes: u64,
    pub flops: u64,
    unit_ns: f64,
    reserved: [u64; 6],
    buckets: [u64; 59 * 64],
}

impl Stats {
    fn from(ask: impl FnOnce(*mut Stats) -> c_int) -> Result<Box<Stats>, Error> {
        const ENOENT: c_int = -8; // no sample yet: count is 0
        // Zeroed where it stays: 30 KiB are much for some stacks.
        let mut stats = unsafe {
            let raw = std::alloc::alloc_zeroed(std::alloc::Layout::new::<Stats>()) as *mut Stats;
            if raw.is_null() {
                return Err(Error { status: -4, message: String::from("no memory for a distribution") });
            }
            Box::from_raw(raw)
        };
        match ask(ptr::addr_of_mut!(*stats)) {
            ENOENT => Ok(stats),
            status => Error::check(status).map(|_| stats),
        }
    }

    /// The smallest duration, in ns, that a share q of all samples does not exceed, within 1 %; 0 without samples.
    pub fn quantile(&self, q: f64) -> u64 {
        unsafe { pk_stats_quantile(self, q) }
    }
}
