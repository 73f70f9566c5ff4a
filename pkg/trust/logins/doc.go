// Package logins counts why logins fail, from the lines that an Envoy writes about them. It
// also reads which tokens have an unknown key.
//
// Invariants: it stores and returns only reasons of a fixed list, names of objects and IDs of
// requests; its memory is bounded. It has no clock.
package logins
