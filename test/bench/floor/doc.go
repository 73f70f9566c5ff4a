// Command floor is what the benchmark measures Gatehouse against: a
// SnapshotCache of go-control-plane, as it comes, with just enough around it
// to change it by HTTP. It keeps nothing, checks nothing and logs nothing.
//
// With -by-hand its messages are what a person would write for these routes:
// bare virtual hosts, no retries, a cluster for each upstream. This is the fair
// form. Without the flag it serves the same messages as Gatehouse, made by the
// same packages (pkg/compile, pkg/xds/translate), so that what differs is the
// control plane alone. The listener is Gatehouse's in both forms. The messages
// of services that a change does not touch are kept.
//
// A call is answered as soon as the change is in memory, and SetSnapshot is
// called at once after the answer has left, before the next call is looked
// at. With -coalesce, SetSnapshot is called by one goroutine, once for all
// the changes that came while it was busy. PUT /routes takes all routes in one
// call, which makes one snapshot; so does the start.
package main
