// Package precheck compiles what a transaction has changed before it is stored,
// so that what cannot become a working configuration is refused with the
// reason, and what works but limits nothing is told.
//
// What was written is gathered with what it needs into a model.Config, whose
// trees go through the code of the build loop.
//
// Invariants: the work is in proportion to the change, not to the
// configuration; what is deleted is not looked at.
package precheck
