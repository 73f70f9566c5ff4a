//go:build !linux

package dataplane

import (
	"errors"
	"os"
)

func memoryFile(string, bool) (*os.File, error) {
	return nil, errors.New("only Linux has files in memory: " +
		"print the bootstrap with `gatehouse bootstrap` and start Envoy with it")
}
