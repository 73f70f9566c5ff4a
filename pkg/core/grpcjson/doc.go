// Package grpcjson reads descriptor sets and their google.api.http rules, to find which JSON requests are gRPC calls.
// It accepts nothing that Envoy's transcoder would refuse, and matches calls as the transcoder does.
//
// Invariants: the result does not depend on the descriptors linked into the program, except for the http rules
// themselves; each file of a returned set follows its dependencies.
package grpcjson
