// Package ir describes what one proxy must do, with the references of the model
// resolved and the order of routes decided, but without Envoy's types. Values
// are immutable once made.
package ir
