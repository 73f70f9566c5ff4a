// Package feature drives the REST API of a running program and asserts what an
// xDS client receives: the resources, and the order in which they come.
package feature
