// Package logins says why logins fail, from the lines that an Envoy writes of them, and
// counts it. It also reads which tokens lack a key.
//
// Invariants: what it keeps and says is from a fixed list of reasons, the names of objects
// and the IDs of requests, and it is bounded. It has no clock.
package logins
