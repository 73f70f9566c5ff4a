// Package rest is the REST API of Gatehouse: Gin handlers that turn requests
// into store transactions, and model errors into problem+json.
//
// Invariants: a request is at most one store.Read or one store.Write, so an
// answer is one consistent view and a write happens as a whole or not at all;
// nothing is written before the whole request was found valid; every error
// is sent as application/problem+json, through one function (server.fail).
//
// The order of checks, if several things are wrong: Host, Origin, token and
// role (403, 401, 429; auth.go), Accept (406), path and
// method (404, 405), query parameters (400), body (413, 415, 400), then the
// names in the path (404, the first unknown one) and the rules between objects
// (409). So a wrong body under an unknown parent is a 400.
//
// A kind is one file: a table of form fields, how its path leads to it, and
// its routes. The handlers (objects.go, links.go) are the same for
// all kinds.
//
// A request lasts as long as its transaction, except for a wait for the Envoys
// (wait.go) and a stream of events (events.go): those end when the client
// disconnects, when their time is over, and when the server begins to stop.
//
// A handler reads the request, calls the package that answers it (pkg/state/store,
// pkg/input/document, pkg/diagnostics/inspect) and writes the answer.
//
// The package starts no goroutine.
package rest
