package pk

// #include <pk/pk.h>
// #include <stdlib.h>
import "C"

import "unsafe"

// Options are those of pk/options.h, whose manual is there, but for the log function, which would call Go under the
// library's lock. What is not set comes from the environment (PK_TRACE_PATH, ...).
type Options struct {
	TracePath, ReportPath, Backends, ArenaPath, Clock, CuptiSteps, NvtxShim, GpuCapture        string
	Capture, CapturePath, WindowsPath, MetricsPath, HangCommand, Collector, CollectorCpus      string
	MachinePath, GoodputPath, Costs, Peak, JobPath                                             string
	RingRecords, FlushMs, ReportThreads, WarmupSteps, LogLevel, CuptiGraphNodes, NvtxConsume   uint32
	CuptiSyncEvents, HistorySteps, CapturesPerHour, WindowSteps, WindowSeconds, MetricsSeconds uint32
	HangSeconds, TraceKeep                                                                     uint32
	MemoryBytes, TraceMaxBytes, HistoryBytes, CaptureBytesPerHour, WindowsMaxBytes             uint64
	TraceRotateBytes                                                                           uint64
	Rank, WorldSize                                                                            int32
	OverheadMax                                                                                float64
}

// In the order of pk_options' texts; what they point to is C's, too, and freed by the function that is answered.
func (o *Options) texts(to *C.pk_options) func() {
	texts := []struct {
		from string
		to   **C.char
	}{
		{o.TracePath, &to.trace_path},
		{o.ReportPath, &to.report_path},
		{o.Backends, &to.backends},
		{o.ArenaPath, &to.arena_path},
		{o.Clock, &to.clock},
		{o.CuptiSteps, &to.cupti_steps},
		{o.NvtxShim, &to.nvtx_shim},
		{o.GpuCapture, &to.gpu_capture},
		{o.Capture, &to.capture},
		{o.CapturePath, &to.capture_path},
		{o.WindowsPath, &to.windows_path},
		{o.MetricsPath, &to.metrics_path},
		{o.HangCommand, &to.hang_command},
		{o.Collector, &to.collector},
		{o.CollectorCpus, &to.collector_cpus},
		{o.MachinePath, &to.machine_path},
		{o.GoodputPath, &to.goodput_path},
		{o.Costs, &to.costs},
		{o.Peak, &to.peak},
		{o.JobPath, &to.job_path},
	}
	for _, text := range texts {
		if text.from != "" {
			*text.to = C.CString(text.from)
		}
	}
	return func() {
		for _, text := range texts {
			C.free(unsafe.Pointer(*text.to))
		}
	}
}

func (o *Options) numbers(to *C.pk_options) {
	to.ring_records = C.uint32_t(o.RingRecords)
	to.flush_ms = C.uint32_t(o.FlushMs)
	to.report_threads = C.uint32_t(o.ReportThreads)
	to.warmup_steps = C.uint32_t(o.WarmupSteps)
	to.log_level = C.uint32_t(o.LogLevel)
	to.cupti_graph_nodes = C.uint32_t(o.CuptiGraphNodes)
	to.nvtx_consume = C.uint32_t(o.NvtxConsume)
	to.cupti_sync_events = C.uint32_t(o.CuptiSyncEvents)
	to.history_steps = C.uint32_t(o.HistorySteps)
	to.captures_per_hour = C.uint32_t(o.CapturesPerHour)
	to.window_steps = C.uint32_t(o.WindowSteps)
	to.window_seconds = C.uint32_t(o.WindowSeconds)
	to.metrics_seconds = C.uint32_t(o.MetricsSeconds)
	to.hang_seconds = C.uint32_t(o.HangSeconds)
	to.trace_keep = C.uint32_t(o.TraceKeep)
	to.memory_bytes = C.uint64_t(o.MemoryBytes)
	to.trace_max_bytes = C.uint64_t(o.TraceMaxBytes)
	to.history_bytes = C.uint64_t(o.HistoryBytes)
	to.capture_bytes_per_hour = C.uint64_t(o.CaptureBytesPerHour)
	to.windows_max_bytes = C.uint64_t(o.WindowsMaxBytes)
	to.trace_rotate_bytes = C.uint64_t(o.TraceRotateBytes)
	to.rank = C.int32_t(o.Rank)
	to.world_size = C.int32_t(o.WorldSize)
	to.overhead_max = C.double(o.OverheadMax)
}

// Session is an open session.
type Session struct{}

// Start begins a session.
func Start(options Options) (Session, error) {
	wanted := (*C.pk_options)(C.calloc(1, C.sizeof_pk_options)) // C's memory, since it points to more of it
	defer C.free(unsafe.Pointer(wanted))
	wanted.size = C.sizeof_pk_options
	defer options.texts(wanted)()
	options.numbers(wanted)
	return Session{}, check(func() C.pk_status { return C.pk_start(wanted) })
}

// Stop ends the session and writes trace and report. Statistics stay readable until the next one.
func (Session) Stop() error {
	return check(func() C.pk_status { return C.pk_stop() })
}

// Flush returns when everything recorded before is in the trace file.
func Flush() error {
	return check(func() C.pk_status { return C.pk_flush() })
}
