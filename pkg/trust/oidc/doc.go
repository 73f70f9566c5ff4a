// Package oidc fetches the discovery document (OpenID Connect Discovery 1.0) and the keys
// (RFC 7517) of identity providers.
//
// Invariants: a connection goes only to an address that the Rules allow, checked when it
// is made. What is read has bounds. A result holds public keys only, in one form, so that
// equal answers are equal bytes.
package oidc
