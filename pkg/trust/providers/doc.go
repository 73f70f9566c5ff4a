// Package providers keeps the discovery documents and keys of identity providers up to
// date, and adds them to the changes that the build loop reads.
//
// Invariants: no change waits for a provider. A provider that cannot be queried keeps its
// last good answer, even after a restart. Each is queried once for all its users, and only
// while it has any.
package providers
