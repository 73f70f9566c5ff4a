// Package precheck compiles what a transaction has changed before it is stored.
// It refuses what cannot become a working configuration, with the reason, and
// warns of what works but limits nothing.
//
// It collects the written objects and what they need in a model.Config, whose
// trees go through the code of the build loop.
//
// Invariants: the work is in proportion to the change, not to the
// configuration; deleted objects are not checked.
package precheck
