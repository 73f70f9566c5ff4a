// Package contract has schemathesis call a running program with what
// api/openapi.yaml allows and with what it does not, and judge every answer by
// that document.
package contract
