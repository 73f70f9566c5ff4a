//go:build !linux

package testkit

import "errors"

// SpawnOnTerminal needs Linux.
func SpawnOnTerminal([]string, ...string) (*Process, error) {
	return nil, errors.New("making a terminal: not on this system")
}
