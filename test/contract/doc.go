// Package contract runs schemathesis against a running program, with requests
// that api/openapi.yaml allows and requests that it does not, and checks every
// answer against that document.
package contract
