// Package status records the state of connected Envoys and the objects that are
// not live as written.
//
// It publishes what happens in a Feed.
//
// Invariants: it only records; nothing in it influences the program.
package status
