// Command floor is what the benchmark measures Gatehouse against: an unmodified
// SnapshotCache of go-control-plane, with just enough around it to change it by
// HTTP. It stores nothing, checks nothing and logs nothing.
//
// With -by-hand its messages are what a person would write for these routes:
// bare virtual hosts, no retries, a cluster for each upstream. This is the fair
// form. Without the flag it serves the same messages as Gatehouse, made by the
// same packages (pkg/core/compile, pkg/xds/translate), so that only the control plane
// differs. The listener is Gatehouse's in both forms. The messages of services
// that a change does not touch are kept.
//
// A call is answered as soon as the change is in memory, and SetSnapshot is
// called immediately after the answer was sent, before the next call is
// processed. With -coalesce, one goroutine calls SetSnapshot, once for all
// changes that arrived while it was busy. PUT /routes sets all routes in one
// call, which makes one snapshot; so does the start.
package main
