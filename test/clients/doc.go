// Package clients calls a gateway with the clients of users. Clients of the API are
// generated from the OpenAPI document of a running program, in Go, Python and
// TypeScript, and one of each is run; testdata has the calls, and the generated code is
// not committed. The HTTPS listener is called by common clients (curl, Go, Python,
// openssl and, see make chromium, Chromium), and a scan lists what it offers.
package clients
