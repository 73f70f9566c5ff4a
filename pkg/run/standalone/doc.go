// Package standalone turns a control plane into a whole gateway: it starts,
// watches and stops its Envoy, and holds the demo.
//
// Invariants: the Envoy never outlives the program, however the program ends;
// Envoy's standard output (the access log) is passed on unchanged, and Envoy's
// log becomes records of the program's own log.
package standalone
