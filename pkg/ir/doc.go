// Package ir says what one proxy must do: the references of the model are
// resolved and the order of routes is decided, and nothing of it is a type of
// Envoy's. Values are immutable once made.
package ir
