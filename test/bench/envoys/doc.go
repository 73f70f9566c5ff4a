// Command envoys is many Envoys as a control plane sees them: streams of the
// delta protocol, each on a connection of its own. They ask for what an Envoy
// asks for, acknowledge everything and keep nothing, so that little of what is
// measured is theirs.
//
// A text that the route configuration will hold is announced by POST
// /expect?text=TEXT, before the change that brings it. GET /expected answers
// when every stream was sent it.
package main
