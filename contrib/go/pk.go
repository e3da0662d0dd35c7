// Package pk is perfkit for Go: regions, steps and counters of a program, in one trace with those of its C.
//
//	var forward = pk.NewRegion(pk.Compute, "forward")
//
//	func train(batch []float32) {
//		defer forward.Begin().End()
//		...
//	}
//
//	session, err := pk.Start(pk.Options{TracePath: "run.json", ReportPath: "-"})
//	...
//	pk.Step(uint64(len(batch)))	// this step is over, the next one begins
//	err = session.Stop()
//
// In a go.mod: require perfkit/pk v0.0.0, and replace perfkit/pk => /usr/local/share/perfkit/go. It is built by cgo,
// with the flags that pkg-config has for pk.
//
// Goroutines move between threads, and perfkit's regions belong to threads. So Begin ties the goroutine to its thread
// until End (runtime.LockOSThread, which nests). Goroutines that are started inside a region run on other threads,
// and their regions stand on those. While a region is open its thread serves one goroutine only: open regions around
// work, not around waiting for thousands of others.
//
// Recording never fails visibly; what could not be recorded is in GetCounts. Off, a region takes a load and a
// branch; on, two calls into C, tens of nanoseconds each, which is Go's price for them (docs/ffi.md).
package pk

/*
#cgo pkg-config: pk
#include <pk/pk.h>
#include <stdlib.h>

// Go has no word for a function that is inline in C, nor for a macro's compound literal.
static void begin(pk_region *r) { pk_region_begin_on_(r); }
static void end(pk_region *r) { pk_region_end_on_(r); }
static void next(pk_region *from, pk_region *to) { pk_region_next_on_(from, to); }
*/
import "C"

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"unsafe"
)

// Kind is what a region's self time is spent on; the report of the steps adds up each.
type Kind int32

// The kinds.
const (
	Other Kind = iota
	Compute
	Data
	Comm
	IO
	Wait
)

// Error is a control call that failed: its number as in pk/status.h, and a sentence.
type Error struct {
	Status  int
	Message string
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s (%s)", e.Message, C.GoString(C.pk_status_name(C.pk_status(e.Status))))
}

// The sentence is kept per thread, so whoever calls and asks stays on one.
func check(call func() C.pk_status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if status := call(); status != C.PK_OK {
		return &Error{int(status), C.GoString(C.pk_error_message())}
	}
	return nil
}

// Started tells whether a session is open in this process, whoever started it.
func Started() bool {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&C.pk_gate_))) != 0
}

// Region is a named region. It may be used by all goroutines at once.
type Region struct{ c *C.pk_region }

// NewRegion is the region of that name and kind, for the process's life; make it once, as a package's variable.
func NewRegion(kind Kind, name string) Region {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return Region{C.pk_region_named_of(C.pk_kind(kind), text)}
}

// Variant is "attention[seq=512]": a region of its own, hence a distribution of its own, for each value.
func (r Region) Variant(key string, value int64) Region {
	text := C.CString(key)
	defer C.free(unsafe.Pointer(text))
	return Region{C.pk_region_variant(r.c, text, C.int64_t(value))}
}

// Limit says how long a call of it may take, in seconds, before the watchdog says that the program hangs.
func (r Region) Limit(seconds float64) {
	C.pk_region_set_limit(r.c, C.double(seconds))
}

// Scope is an open region. It belongs to the goroutine that began it.
type Scope struct{ c *C.pk_region }

// Begin begins the region and ties the goroutine to its thread until End: defer forward.Begin().End()
func (r Region) Begin() Scope {
	if Started() { // all that is compiled into the caller
		return r.begin()
	}
	return Scope{}
}

func (r Region) begin() Scope {
	runtime.LockOSThread()
	C.begin(r.c)
	return Scope{r.c}
}

// End ends what Begin began.
func (s Scope) End() {
	if s.c != nil {
		s.end()
	}
}

func (s Scope) end() {
	C.end(s.c)
	runtime.UnlockOSThread()
}

// Next ends the scope's region and begins another one, with one clock read between them.
func (s *Scope) Next(to Region) {
	if s.c != nil {
		C.next(s.c, to.c)
		s.c = to.c
	}
}

// Add says what work was done inside the scope: throughput in report and trace.
func (s Scope) Add(bytes, flops uint64) {
	if s.c != nil {
		C.pk_region_add_on_(s.c, C.uint64_t(bytes), C.uint64_t(flops))
	}
}

// Note says what is special about the open call: an argument of it in the trace, under the key's name.
func (s Scope) Note(key Region, value int64) {
	if s.c != nil {
		C.pk_region_note_on_(s.c, key.c, C.int64_t(value))
	}
}

// NoteText is the same with a text.
func (s Scope) NoteText(key Region, value string) {
	if s.c != nil {
		text := C.CString(value)
		defer C.free(unsafe.Pointer(text))
		C.pk_region_note_text_on_(s.c, key.c, text)
	}
}

// Mark sets a mark at this moment in the trace, under the region's name.
func (r Region) Mark() {
	if Started() {
		C.pk_region_mark_on_(r.c)
	}
}

// Stats is a distribution of durations in ns.
type Stats struct{ c C.pk_stats }

func (s *Stats) Count() uint64   { return uint64(s.c.count) }
func (s *Stats) Sum() uint64     { return uint64(s.c.sum) }
func (s *Stats) Min() uint64     { return uint64(s.c.min) }
func (s *Stats) Max() uint64     { return uint64(s.c.max) }
func (s *Stats) Mean() float64   { return float64(s.c.mean) }
func (s *Stats) Stddev() float64 { return float64(s.c.stddev) }
func (s *Stats) Self() uint64    { return uint64(s.c.self) }
func (s *Stats) Bytes() uint64   { return uint64(s.c.bytes) }
func (s *Stats) Flops() uint64   { return uint64(s.c.flops) }

// Untimed is how many of the calls were counted and not timed (overhead_max), and SamplingError what their times may be
// off by: see pk_stats.
func (s *Stats) Untimed() uint64        { return uint64(s.c.untimed) }
func (s *Stats) SamplingError() float64 { return float64(s.c.sampling_error) }

// Quantile is the smallest duration that a share q of all samples does not exceed, within 1 %; 0 without samples.
func (s *Stats) Quantile(q float64) uint64 {
	return uint64(C.pk_stats_quantile(&s.c, C.double(q)))
}

func distribution(ask func(*C.pk_stats) C.pk_status) (*Stats, error) {
	s := new(Stats)
	s.c.size = C.uint32_t(unsafe.Sizeof(s.c))
	err := check(func() C.pk_status {
		if status := ask(&s.c); status != C.PK_ENOENT { // no sample yet: Count is 0
			return status
		}
		return C.PK_OK
	})
	return s, err
}

// Stats is the distribution of all calls so far, on all threads.
func (r Region) Stats() (*Stats, error) {
	return distribution(func(s *C.pk_stats) C.pk_status { return C.pk_region_stats(r.c, s) })
}

// StepStats is the distribution of the durations of all steps.
func StepStats() (*Stats, error) {
	return distribution(func(s *C.pk_stats) C.pk_status { return C.pk_step_stats(s) })
}

// Step ends the current step of the training loop, in which there were so many samples, and begins the next. Steps
// are told apart by regions on the thread that calls it, so that goroutine should be locked to it all the while.
func Step(items uint64) {
	if Started() {
		C.pk_step_on_(C.uint64_t(items))
	}
}

// StepBegin says that the next step begins here, not where the last one ended; what lies between is in none.
func StepBegin() {
	if Started() {
		C.pk_step_begin_on_()
	}
}

// StepKind is the kind of the step that runs: "evaluation", say, which has figures of its own. "": the usual one.
func StepKind(kind string) {
	if Started() {
		text := C.CString(kind)
		C.pk_step_kind_on_(text)
		C.free(unsafe.Pointer(text))
	}
}

// StepFlops tells floating-point operations of the step that runs: what the model needs, and what was done (0: as many).
func StepFlops(model, hardware float64) {
	if Started() {
		C.pk_step_add_flops_on_(C.double(model), C.double(hardware))
	}
}

// Capture asks for a trace of what the history holds, and of so many steps more.
func Capture(reason string, steps uint32) error {
	text := C.CString(reason)
	defer C.free(unsafe.Pointer(text))
	return check(func() C.pk_status { return C.pk_capture(text, C.uint32_t(steps)) })
}

// Counter is a value over time.
type Counter struct{ c *C.pk_counter }

// NewCounter is the counter of that name, for the process's life.
func NewCounter(name, unit string) Counter {
	n, u := C.CString(name), C.CString(unit)
	defer C.free(unsafe.Pointer(n))
	defer C.free(unsafe.Pointer(u))
	return Counter{C.pk_counter_named(n, u)}
}

// Set is a point in the trace, a sample of the report's distribution.
func (c Counter) Set(value float64) {
	if Started() {
		C.pk_counter_set_on_(c.c, C.double(value))
	}
}

// Counts is the record accounting (pk_counts).
type Counts struct {
	Threads uint32

	Begun, Recorded, Written, Dropped, Unbalanced, TooDeep, StrayEnds uint64
	Points, PointsDropped, Unwritten, Regions, Steps                  uint64
	MemoryBytes, TraceBytes, OtherStarts, NotFinite                   uint64
	Untimed, Untraced                                                 uint64
}

// GetCounts is for during a session and after it.
func GetCounts() (Counts, error) {
	c := C.pk_counts{size: C.sizeof_pk_counts}
	err := check(func() C.pk_status { return C.pk_get_counts(&c) })
	return Counts{
		Threads: uint32(c.threads), Begun: uint64(c.begun), Recorded: uint64(c.recorded), Written: uint64(c.written),
		Dropped: uint64(c.dropped), Unbalanced: uint64(c.unbalanced), TooDeep: uint64(c.too_deep),
		StrayEnds: uint64(c.stray_ends), Points: uint64(c.points), PointsDropped: uint64(c.points_dropped),
		Unwritten: uint64(c.unwritten), Regions: uint64(c.regions), Steps: uint64(c.steps),
		MemoryBytes: uint64(c.memory_bytes), TraceBytes: uint64(c.trace_bytes), OtherStarts: uint64(c.other_starts),
		NotFinite: uint64(c.not_finite), Untimed: uint64(c.untimed), Untraced: uint64(c.untraced),
	}, err
}

// Backend is what else may record: whether it does, its version, and the reason.
type Backend struct {
	Live            bool
	Version, Reason string
}

// GetBackend knows "cuda", "cupti", "nvtx", "nccl" and "nvml".
func GetBackend(name string) (Backend, error) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	info := C.pk_backend_info{size: C.sizeof_pk_backend_info}
	err := check(func() C.pk_status { return C.pk_backend_status(text, &info) })
	return Backend{info.live != 0, C.GoString(&info.version[0]), C.GoString(&info.reason[0])}, err
}

// ThreadName names the calling thread in trace and report, for as long as this goroutine is locked to it.
func ThreadName(name string) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	C.pk_thread_set_name(text)
}

// Version is that of the library in use.
func Version() string {
	return C.GoString(C.pk_version())
}
