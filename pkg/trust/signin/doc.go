// Package signin signs users in with an OpenID provider: the authorization code flow (OpenID Connect Core 1.0, section
// 3.1) with PKCE (RFC 7636).
//
// Invariants: nothing is kept for a sign-in that has only begun; the browser keeps it, sealed. Without an answer of the
// provider that passes every check there is no user. Requests to the provider are bounded, whoever asks for them.
package signin
