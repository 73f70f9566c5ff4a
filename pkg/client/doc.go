// Package client speaks the REST API of Gatehouse for programs that are not
// Gatehouse: it sends calls, follows lists over all their pages, turns
// problem+json into an Error that a user can read, puts the files of a
// configuration document together, and finds out which server is meant.
//
// Invariants: a token is sent to the server that was chosen and to no other (a
// redirect is an error, a list goes on at the same path); an error never holds
// a token; the contexts file holds no secret and is replaced as a whole.
package client
