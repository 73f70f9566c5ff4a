// Package importer makes a service with its routes from a description of an
// HTTP API: an OpenAPI 3 document. It also reads the users of a file of htpasswd.
//
// Invariants: it reads only what the caller passes in (a reference to another
// file or server is an error); the same description, options and state of the
// server give the same plan; a route that no import created is neither changed
// nor removed; every error names the operation, and the line if it is known; no
// error has a password or a hash.
package importer
