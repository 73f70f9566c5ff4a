// Package server speaks the delta protocol of the aggregated discovery service
// with Envoys. Each stream follows its own plan (pkg/xds/plan); this package
// moves messages, keeps the newest snapshot of every proxy, and records what
// Envoys answer.
//
// Invariants: nothing is answered before the first complete publish; a slow
// stream delays no other; a stream has two goroutines, one that receives and
// one that does everything else.
//
// Rate-limit engines get their limits on the same port, with the older
// state-of-the-world protocol: one response for each version, and none after a
// refusal until the limits change.
package server
