// Command floor is what the benchmark measures Gatehouse against: a
// SnapshotCache of go-control-plane, as it comes, with just enough around it
// to change it by HTTP. It keeps nothing, checks nothing and logs nothing.
//
// What it serves is the same as what Gatehouse serves, made by the same
// packages (pkg/compile, pkg/xds/translate), and the messages of hosts and
// clusters that a change does not touch are kept: all that costs time is the
// cache itself.
//
// A call is answered as soon as the change is in memory, and SetSnapshot is
// called at once after the answer has left, before the next call is looked
// at. With -coalesce, SetSnapshot is called by one goroutine, once for all
// the changes that came while it was busy.
package main
