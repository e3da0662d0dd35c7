package pk

// #include <pk/pk.h>
// #include <stdlib.h>
import "C"

import "unsafe"

// Options are those of pk/options.h, whose manual is there, but for the log function, which would call Go under the
// library's lock. What is not set comes from the environment (PK_TRACE_PATH, ...).
type Options struct {
	TracePath, ReportPath, Backends, Capture, CapturePath, WindowsPath, MetricsPath string
	HangCommand, Costs, GoodputPath, JobPath, Tuning                                string
	Rank, WorldSize                                                                 int32
	WarmupSteps, HistorySteps, HangSeconds, LogLevel                                uint32
	MemoryBytes                                                                     uint64
	OverheadMax                                                                     float64
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
		{o.Capture, &to.capture},
		{o.CapturePath, &to.capture_path},
		{o.WindowsPath, &to.windows_path},
		{o.MetricsPath, &to.metrics_path},
		{o.HangCommand, &to.hang_command},
		{o.GoodputPath, &to.goodput_path},
		{o.Costs, &to.costs},
		{o.JobPath, &to.job_path},
		{o.Tuning, &to.tuning},
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
	to.warmup_steps = C.uint32_t(o.WarmupSteps)
	to.log_level = C.uint32_t(o.LogLevel)
	to.history_steps = C.uint32_t(o.HistorySteps)
	to.hang_seconds = C.uint32_t(o.HangSeconds)
	to.memory_bytes = C.uint64_t(o.MemoryBytes)
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
