// example: workers and a training loop under perfkit.
//
//	go run ./example
package main

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"perfkit/pk"
)

const steps = 50

var (
	load     = pk.NewRegion(pk.Data, "load")
	wait     = pk.NewRegion(pk.Wait, "wait for batch")
	forward  = pk.NewRegion(pk.Compute, "forward")
	backward = pk.NewRegion(pk.Compute, "backward")
	loss     = pk.NewCounter("loss", "")
)

func makeBatch(step int) []float64 {
	defer load.Begin().End() // ties the goroutine to its thread until the end
	batch := make([]float64, 1<<12)
	for i := range batch {
		batch[i] = float64(i * step)
	}
	return batch
}

func train(batch []float64) float64 {
	phase := forward.Begin()
	sum := 0.0
	for _, x := range batch {
		sum += x * x
	}
	phase.Add(uint64(8*len(batch)), uint64(2*len(batch)))
	phase.Next(backward)
	time.Sleep(time.Millisecond)
	phase.End()
	return sum
}

func run() error {
	session, err := pk.Start(pk.Options{TracePath: "example.json", ReportPath: "-"})
	if err != nil {
		return err
	}
	runtime.LockOSThread() // the steps' loop stays on one thread, so the report can say what they are made of
	batches := make(chan []float64, 4)
	go func() {
		for step := 0; step < steps; step++ {
			batches <- makeBatch(step)
		}
		close(batches)
	}()
	for {
		waiting := wait.Begin()
		batch, more := <-batches
		waiting.End()
		if !more {
			break
		}
		loss.Set(train(batch))
		pk.Step(uint64(len(batch)))
	}
	stats, err := forward.Stats()
	if err != nil {
		return err
	}
	fmt.Printf("forward: %d calls, p99 %.1f us\n", stats.Count(), float64(stats.Quantile(0.99))/1e3)
	return session.Stop()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
