// Package ratelimit turns global configs of the kind globalconfig_ratelimit
// into what a rate-limit engine reads, and checks the result with the upstream
// engine's own loader. Both engines, the stock service and the embedded
// one, get the same messages.
//
// Invariants: two global configs never share a counter, because the domain on
// the wire begins with the id of its global config; equal input gives equal
// messages in equal order; the order of the user's rules is kept, since the
// first of several wildcards wins.
//
// It uses only src/config and src/stats of the upstream service: the rest reads
// the environment, exits the process or panics. No goroutines, no clock, no I/O.
package ratelimit
