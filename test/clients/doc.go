// Package clients has the programs that call a gateway from outside. Clients of the
// API are generated from the OpenAPI document of a running program, in Go, Python and
// TypeScript, and one of each is run; what they do is in testdata, and the generated
// code is in no repository. Clients of the HTTPS listener are those that everybody has:
// curl, Go, Python, openssl and (see make chromium) Chromium, and a scan of what the listener offers.
package clients
