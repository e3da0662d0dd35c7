package main

import "C"
import "perfkit/pk"

var region = pk.NewRegion(pk.Other, "Go")

//export ffi_pairs
func ffi_pairs(n uint64) {
	for i := uint64(0); i < n; i++ {
		region.Begin().End()
	}
}

func main() {}
