// Package scrape asks stock rate-limit engines what they have counted, by the
// metrics that they have for Prometheus.
//
// Invariants: nothing is asked but on demand, nothing is kept, and an answer
// takes at most 2 seconds and a bounded amount of memory; numbers of several
// engines are added, an engine that cannot be asked is named; what the engines'
// metrics do not tell apart is not told apart here; no URL but those of the
// settings is asked, and no redirection followed.
//
// Every goroutine ends before the call that started it.
package scrape
