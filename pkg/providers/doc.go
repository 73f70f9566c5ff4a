// Package providers keeps up to date what identity providers say of themselves, and puts
// it into the changes that the build loop reads.
//
// Invariants: no change waits for a provider. A provider that cannot be asked keeps its
// last good answer, also over a restart. Each is asked once for all who use it, and only
// while somebody does.
package providers
