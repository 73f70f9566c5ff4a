// Package scrape reads what stock rate-limit engines have counted from their
// Prometheus metrics.
//
// Invariants: it reads on demand only and stores nothing; an answer takes at
// most 2 seconds and a bounded amount of memory; numbers of several engines are
// added, and an unreachable engine is named; limits that share a metric of the
// engines are not told apart; only URLs of the settings are called, and no
// redirect is followed.
//
// Every goroutine ends before the call that started it.
package scrape
