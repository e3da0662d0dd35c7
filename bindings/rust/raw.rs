//! What pk/*.h declares, as C lays it out.

use crate::{Counts, Stats};
use std::mem::size_of;
use std::os::raw::{c_char, c_int, c_void};
use std::sync::atomic::AtomicU32;

#[repr(C)]
pub struct Region {
    pub name: *const c_char,
    pub kind: u32,
    pub id: u32,
    pub file: *const c_char,
    pub line: u32,
    pub reserved: u32,
    pub spare: [u64; 4],
}

#[repr(C)]
pub struct Counter {
    pub name: *const c_char,
    pub unit: *const c_char,
    pub id: u32,
    pub reserved: u32,
    pub spare: [u64; 2],
}

#[repr(C)]
pub struct Options {
    pub size: u32,
    pub trace_path: *const c_char,
    pub report_path: *const c_char,
    pub backends: *const c_char,
    pub rank: i32,
    pub world_size: i32,
    pub warmup_steps: u32,
    pub memory_bytes: u64,
    pub history_steps: u32,
    pub capture: *const c_char,
    pub capture_path: *const c_char,
    pub windows_path: *const c_char,
    pub metrics_path: *const c_char,
    pub hang_seconds: u32,
    pub hang_command: *const c_char,
    pub overhead_max: f64,
    pub costs: *const c_char,
    pub goodput_path: *const c_char,
    pub job_path: *const c_char,
    pub log: *const c_void,
    pub log_user: *mut c_void,
    pub log_level: u32,
    pub tuning: *const c_char,
}

#[repr(C)]
pub struct Backend {
    pub size: u32,
    pub live: u32,
    pub version: [c_char; 32],
    pub reason: [c_char; 192],
}

// What C has (tests/abi); larger ones come with a larger size member.
const _: () = assert!(size_of::<Region>() == 64 && size_of::<Counter>() == 40 && size_of::<Stats>() == 30344);
const _: () = assert!(size_of::<Options>() == 176 && size_of::<Backend>() == 232 && size_of::<Counts>() == 152);

#[link(name = "pk")]
extern "C" {
    pub static pk_gate_: AtomicU32;
    pub static pk_gpu_gate_: AtomicU32;
    // What C's inline functions call while a session is open.
    pub fn pk_region_begin_on_(region: *mut Region);
    pub fn pk_region_end_on_(region: *mut Region);
    pub fn pk_region_next_on_(from: *mut Region, to: *mut Region);
    pub fn pk_region_add_on_(region: *mut Region, bytes: u64, flops: u64);
    pub fn pk_region_note_on_(region: *mut Region, key: *mut Region, value: i64);
    pub fn pk_region_note_text_on_(region: *mut Region, key: *mut Region, value: *const c_char);
    pub fn pk_region_mark_on_(region: *mut Region);
    pub fn pk_step_on_(items: u64);
    pub fn pk_step_begin_on_();
    pub fn pk_step_add_flops_on_(model: f64, hardware: f64);
    pub fn pk_step_kind_on_(kind: *const c_char);
    pub fn pk_phase_begin_on_(phase: c_int);
    pub fn pk_phase_end_on_(phase: c_int);
    pub fn pk_checkpoint_done_on_(step: u64, bytes: u64);
    pub fn pk_training_set_step_on_(step: u64);
    pub fn pk_counter_set_on_(counter: *mut Counter, value: f64);
    pub fn pk_gpu_begin_on_(region: *mut Region, stream: *mut c_void);
    pub fn pk_gpu_end_on_(region: *mut Region, stream: *mut c_void);
    pub fn pk_region_named_of(kind: c_int, name: *const c_char) -> *mut Region;
    pub fn pk_region_variant(region: *mut Region, key: *const c_char, value: i64) -> *mut Region;
    pub fn pk_region_set_limit(region: *mut Region, seconds: f64);
    pub fn pk_capture(reason: *const c_char, steps: u32) -> c_int;
    pub fn pk_region_stats(region: *const Region, stats: *mut Stats) -> c_int;
    pub fn pk_region_gpu_stats(region: *const Region, stats: *mut Stats) -> c_int;
    pub fn pk_step_stats(stats: *mut Stats) -> c_int;
    pub fn pk_stats_quantile(stats: *const Stats, q: f64) -> u64;
    pub fn pk_thread_set_name(name: *const c_char);
    pub fn pk_start(options: *const Options) -> c_int;
    pub fn pk_flush() -> c_int;
    pub fn pk_stop() -> c_int;
    pub fn pk_get_counts(counts: *mut Counts) -> c_int;
    pub fn pk_backend_status(name: *const c_char, info: *mut Backend) -> c_int;
    pub fn pk_status_name(status: c_int) -> *const c_char;
    pub fn pk_error_message() -> *const c_char;
    pub fn pk_version() -> *const c_char;
}
