// Package embedded is the rate-limit engine of standalone mode: it answers
// Envoy's rate-limit requests like the stock service with Redis, from counters
// in memory. The upstream's own code decides which limit a request meets
// (src/config) and the numbers of the answer (src/limiter); this package has
// the counters, the service around them and the list of who is limited most.
//
// Windows are fixed and begin where their length divides Unix time (a month has
// 30 days, a year 365), so exactly the allowed number passes in each, however
// many requests are concurrent. Limits are per process and start over with it.
//
// Invariants: two values never share a counter, whatever characters are in
// them (a counter is named by two secretly seeded 64-bit hashes over domain,
// unit, keys and values, each after its length; among a million values, the
// probability that two are mistaken for one is far below 1 in 10^9); a request
// sees one configuration; a new configuration keeps counters and statistics; no
// request makes memory grow without bound or ends the process.
//
// Memory. Options.MaxCounters bounds the counters (default 1,048,576, in 64
// shards; once 1,000,000 addresses have been seen, 98 MB of heap without
// pointers, as measured, and no more for 2,000,000). A new value replaces the
// counter that expires first, if that has expired or the table is full. The
// latter is counted in Usage.Evicted: an evicted value may use its limit twice.
// Freed memory is kept for new values and not returned.
// Statistics are one entry for each limit of the configuration. Top holds at
// most 5 x 512 values of 256 bytes: under 2 MB.
//
// Time. A request with one descriptor takes about 3 us and 16 allocations, 12 of
// them upstream's; 1,000 domains of 20 limits load in 65 ms, and in 2 ms when
// only one of them has changed (two shared cores).
//
// Locks. There is one for each shard of the counters and one for Top, none held
// while another is taken; the clock is read under the first. The package starts
// no goroutine.
package embedded
