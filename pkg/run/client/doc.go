// Package client is a client of the REST API of Gatehouse: it sends calls,
// follows lists over all their pages, turns problem+json into an Error that a
// user can read, joins the files of a configuration document, and finds out
// which server to call. It reads names of objects and field=value as users
// write them; which kinds and fields there are, the model says (ADR 0118).
//
// Invariants: a token is sent to the selected server and to no other (a
// redirect is an error, a list continues at the same path); an error never
// contains a token; the contexts file contains no secret and is replaced as a whole.
package client
