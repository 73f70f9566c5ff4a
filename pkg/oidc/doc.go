// Package oidc asks identity providers what they say of themselves: their discovery
// document (OpenID Connect Discovery 1.0) and their keys (RFC 7517).
//
// Invariants: a connection goes only to an address that the Rules allow, judged when it
// is made. What is read has bounds. What is returned holds public keys only, in one form,
// so that equal answers are equal bytes.
package oidc
