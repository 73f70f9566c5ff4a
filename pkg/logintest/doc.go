// Package logintest tries the login of a service step by step, as far as that goes
// without a user, and says of each step what is wrong and what to do.
//
// Invariants: it connects only to what the login names, within the rules of pkg/oidc, and
// to the Envoy of this process. It uses nothing up at the identity provider: the code that
// it sends is made up. No result has a secret in it.
package logintest
