// What each mixed program does, in Go: see seen.py.
package main

// #cgo LDFLAGS: -linner
// void inner_work(void (*back)(void)); // inner.c
// void *inner_stream(void);
// extern void calledBack(void);
// static void work(void) { inner_work(calledBack); }
import "C"

import (
	"fmt"
	"os"
	"runtime"

	"perfkit/pk"
)

var (
	outer  = pk.NewRegion(pk.Compute, "outer")
	back   = pk.NewRegion(pk.IO, "back")
	number = pk.NewCounter("number", "pieces")
)

func expect(fine bool, what ...any) {
	if !fine {
		fmt.Println(what...)
		os.Exit(1)
	}
}

//export calledBack
func calledBack() {
	defer back.Begin().End()
}

func piece(i int) {
	scope := outer.Begin()
	defer scope.End()
	scope.Add(100, 10)
	C.work()
	number.Set(float64(i))
	pk.Step(32)
}

func work() {
	for i := 0; i < 10; i++ {
		piece(i)
	}
	defer outer.Variant("n", 3).Begin().End()
	phases := pk.NewRegion(pk.Other, "first").Begin()
	phases.Next(pk.NewRegion(pk.Other, "second"))
	moment := pk.NewRegion(pk.Other, "moment")
	phases.Note(pk.NewRegion(pk.Other, "first"), 7)
	phases.NoteText(moment, "seven")
	moment.Mark()
	phases.End()
}

// A thread of its own: the main goroutine keeps the first one.
func elsewhere(done chan<- bool) {
	runtime.LockOSThread()
	pk.ThreadName("second thread")
	pk.NewRegion(pk.Other, "elsewhere").Begin().End()
	done <- true
}

func main() {
	runtime.LockOSThread()
	session, err := pk.Start(pk.Options{TracePath: "mixed.json", Backends: "none", Rank: 1, WorldSize: 2})
	expect(err == nil, err)
	_, err = pk.Start(pk.Options{})
	expect(err != nil && err.(*pk.Error).Status == -2, err)
	outer.Limit(600)
	err = pk.Capture("there is no history", 2)
	expect(err != nil && err.(*pk.Error).Status == -3, err)
	pk.StepBegin()
	pk.StepKind("")
	pk.Restore.Begin()
	pk.TrainingAt(100)
	pk.Restore.End()
	work()
	saving := pk.Checkpoint.Begin()
	pk.CheckpointDone(105, 4096)
	saving.End()
	done := make(chan bool)
	go elsewhere(done)
	<-done
	stats, err := outer.Stats()
	expect(err == nil && stats.Count() == 10 && stats.Bytes() == 1000 && stats.Flops() == 100, stats.Count())
	expect(stats.Quantile(0.5) >= stats.Min() && stats.Quantile(0.5) <= stats.Max(), "quantile")
	never, err := pk.NewRegion(pk.Other, "never").Stats()
	expect(err == nil && never.Count() == 0, err)
	cuda, err := pk.GetBackend("cuda")
	expect(err == nil && !cuda.Live && cuda.Reason != "", err)
	_, err = pk.GetBackend("nonsense")
	expect(err != nil && err.(*pk.Error).Status == -8, err)
	expect(pk.Flush() == nil && session.Stop() == nil, "stop")
	counts, err := pk.GetCounts()
	expect(err == nil && counts.Begun == 34 && counts.Recorded == 34 && counts.Unbalanced == 0, counts, err)
	expect(outer.Begin() == pk.Scope{}, "off")
	session, err = pk.Start(pk.Options{HistorySteps: 4, CapturePath: "kept-%s.json", Tuning: "history_bytes=1M,peak=fp64"})
	expect(err == nil, err)
	pk.Step(1)
	expect(pk.Capture("asked", 1) == nil, "capture")
	pk.Step(1)
	expect(session.Stop() == nil, "stop")
}
