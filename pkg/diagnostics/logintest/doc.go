// Package logintest tries the login of a service step by step, as far as possible
// without a user, and reports for each step what is wrong and what to do.
//
// Invariants: it connects only to what the login names, within the rules of pkg/trust/oidc, and
// to the Envoy of this process. It changes nothing at the identity provider: the code that
// it sends is made up. No result contains a secret.
package logintest
