// Package logins counts and reports why logins fail, from the lines that an Envoy writes about them. It also reads which
// tokens have an unknown key, and has that key fetched.
//
// Invariants: it stores and returns only reasons of a fixed list, names of objects and IDs of requests; its memory is
// bounded.
package logins
