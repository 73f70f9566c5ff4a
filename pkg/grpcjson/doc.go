// Package grpcjson reads descriptor sets and their google.api.http rules, to tell which requests with JSON are calls of
// gRPC. It takes nothing that Envoy's transcoder would refuse, and finds calls as that one does.
//
// Invariants: what is read does not depend on what is linked into the program, but for the http rules themselves; the
// files of a set that it returns come after those that they import.
package grpcjson
