// Package status keeps what is known of the Envoys that are connected and of
// the objects that are not live as written.
//
// It publishes what happens in a Feed.
//
// Invariants: it only records; nothing that it holds steers anything.
package status
