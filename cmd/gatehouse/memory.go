package main

import (
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
)

// limitMemory has the garbage collector work harder before the limit of the
// container is reached, where the environment does not say how hard.
func limitMemory(command string, log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	share := 0.9
	if command == "standalone" { // Envoy lives in the same container
		share = 0.7
	}
	if limit := app.MemoryLimit(os.DirFS("/"), share); limit > 0 {
		debug.SetMemoryLimit(limit)
		log.Info("memory is limited by the control group", "limit_mb", limit>>20, "change_with", "GOMEMLIMIT")
	}
}

// collectRarely lets the heap grow to five times its size before garbage is
// collected, until end is called: nearly all that is made while the configuration
// is loaded stays, so that a collection finds little. Where the environment says how
// often to collect, that holds.
func collectRarely() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	const percent = 400
	before := debug.SetGCPercent(percent)
	return func() { debug.SetGCPercent(before) }
}

// sampleMemory switches off the samples of allocations that a profile of memory
// consists of, unless somebody can read one.
func sampleMemory(debugAddr string) {
	if debugAddr == "" {
		runtime.MemProfileRate = 0
	}
}
