// Package acme orders certificates for services from an authority (ACME, RFC 8555) and renews them. All replicas serve
// them and answer the challenges of the authority; the one that holds a lease orders. Each step of an order is stored
// before the next one begins, so another replica continues where one has died.
//
// What is wanted follows from the configuration (set), and what to do next from what is stored and the time (schedule):
// both are pure. Nothing here is a part of the configuration: it has no revision, and is in no document. No error, event
// or line of the log has a key.
package acme
