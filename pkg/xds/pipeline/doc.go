// Package pipeline has the build loop, which turns changes of the configuration into
// published snapshots: read what changed, compile, translate, publish.
//
// Invariants: a signal says only "changed" and the loop reads again, so no
// signal can be lost; work is in proportion to the change; what it publishes
// after many changes equals what it would publish from scratch.
package pipeline
