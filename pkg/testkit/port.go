package testkit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
)

// Ports that are chosen before somebody listens lie below the range from which
// Linux takes the local ports of connections (ip_local_port_range), so that no
// connection takes one in the meantime.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// FreePort returns a TCP port of 127.0.0.1 on which nobody listens.
func FreePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // no secret
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("looking for a free port: 100 tries found none")
}

// freePorts returns n of them that differ.
func freePorts(n int) ([]int, error) {
	var ports []int
	for len(ports) < n {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	return ports, nil
}
