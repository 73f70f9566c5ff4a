// Command bench measures Gatehouse with real Envoys against the best that is
// possible, in one run and in turns, so that both sides see the same machine.
// Ratios count, not times.
//
//   - latency: from a call that changes one route until Envoy serves it
//   - document: all routes in one PUT /config; the same again; with changes
//   - bulk: thousands of routes, created one by one
//   - start: from nothing to the first answer with thousands of stored routes
//   - streams: a thousand Envoys on one replica
//   - rps: requests per second through an Envoy that Gatehouse configures
//   - accesslog: what forms of the access log cost an Envoy
//   - filters: what each filter costs a request, and all filters when disabled;
//     about 4 s for each row, 3 minutes in all
//   - ratelimit: requests per second with a limit, compared with none: counted by
//     standalone, by the stock engine in Redis, and by Envoy itself
//   - idle: the cost of doing nothing
//   - scale: calls of the API with 10,000 services, compared with a few
//   - domains: rate-limit global configs, 1,000 compared with one, and a million
//     addresses
//   - console: how long lists of the console take to answer a key, in Chromium
//
// The other side is the floor (test/bench/floor), a bare SnapshotCache of
// go-control-plane whose messages are written as a person would write them
// (docs/adr/0049), and for rps an Envoy with a handwritten configuration
// (static.yaml.tmpl). Both sides hold the same routes (test/bench/layout) and
// have an Envoy each, started alike; streams has test/bench/envoys in place of
// them. Latency has a third side, a floor with the same messages as Gatehouse,
// which is checked. Backends and clients are in this process. For accesslog,
// filters, scale, ratelimit, domains and console, the other side is the same program with
// less to hold or to do.
//
// It asserts nothing about time: the exit code is 0 unless something broke.
// It needs Linux for /proc.
package main
