//! Sessions: what they are asked for, and what they say.

use crate::raw::*;
use crate::{c_text, raw, text_of};
use std::ffi::CString;
use std::fmt;
use std::os::raw::c_int;
use std::ptr;

/// A control call that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// The number, as in pk/status.h.
    pub status: i32,
    /// The sentence.
    pub message: String,
}

impl Error {
    pub(crate) fn check(status: c_int) -> Result<(), Error> {
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

/// What a session is to do; the fields are those of pk/options.h. What is not set comes from the environment.
pub struct Options {
    raw: raw::Options,
    kept: Vec<CString>,
}

macro_rules! text_options {
    ($($name:ident)+) => { $(
        /// As in pk/options.h.
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
        /// As in pk/options.h.
        pub fn $name(mut self, number: $type) -> Options {
            self.raw.$name = number;
            self
        }
    )+ };
}

impl Options {
    pub fn new() -> Options {
        // All zero is every field's default.
        let mut raw: raw::Options = unsafe { std::mem::zeroed() };
        raw.size = std::mem::size_of::<raw::Options>() as u32;
        Options { raw, kept: Vec::new() }
    }

    text_options! { trace_path report_path backends capture capture_path windows_path metrics_path hang_command costs
                    goodput_path job_path tuning }
    number_options! { rank: i32 world_size: i32 warmup_steps: u32 memory_bytes: u64 history_steps: u32
                      hang_seconds: u32 overhead_max: f64 log_level: u32 }

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

/// Record accounting (pk_counts).
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
    pub other_starts: u64,
    pub not_finite: u64,
    pub untimed: u64,
    pub untraced: u64,
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
    let size = std::mem::size_of::<raw::Backend>() as u32;
    let mut raw = raw::Backend { size, live: 0, version: [0; 32], reason: [0; 192] };
    Error::check(unsafe { pk_backend_status(c_text(name).as_ptr(), &mut raw) })?;
    Ok(Backend { live: raw.live != 0, version: text_of(raw.version.as_ptr()), reason: text_of(raw.reason.as_ptr()) })
}

/// A distribution of durations in ns (pk/stats.h).
#[repr(C)]
pub struct Stats {
    size: u32,
    reserved: u32,
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
    pub untimed: u64,
    pub sampling_error: f64,
    spare: [u64; 4],
    buckets: [u64; 59 * 64],
}

impl Stats {
    pub(crate) fn from(ask: impl FnOnce(*mut Stats) -> c_int) -> Result<Box<Stats>, Error> {
        const ENOENT: c_int = -8; // no sample yet: count is 0
        // Zeroed where it stays: 30 KiB are much for some stacks.
        let mut stats = unsafe {
            let raw = std::alloc::alloc_zeroed(std::alloc::Layout::new::<Stats>()) as *mut Stats;
            if raw.is_null() {
                return Err(Error { status: -4, message: String::from("no memory for a distribution") });
            }
            Box::from_raw(raw)
        };
        stats.size = std::mem::size_of::<Stats>() as u32;
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
