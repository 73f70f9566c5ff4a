// Command envoys simulates many Envoys as a control plane sees them: streams of
// the delta protocol, each on its own connection. They request what an Envoy
// requests, acknowledge everything and keep nothing, so that they add little to
// what is measured.
//
// POST /expect?text=TEXT announces a text that the next change adds to the route
// configuration. GET /expected answers when every stream has received it.
package main
