package testkit

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
)

// Ports that are chosen before they are used are below the range from which Linux takes
// the local ports of connections (ip_local_port_range), so that no connection takes one
// in the meantime.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// FreePort returns a TCP port of 127.0.0.1 without a listener. No other caller gets it
// while this process lives, even in another process: suites run at the same time.
func FreePort() (int, error) {
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort) //nolint:gosec // no secret
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		if err := l.Close(); err != nil {
			return 0, err
		}
		if reserve(port) == nil {
			return port, nil
		}
	}
	return 0, errors.New("looking for a free port: 100 tries found none")
}

// reserve binds the UDP port with the same number until the process ends. It does so on
// another address of the loopback, because listeners of HTTP/3 use that of 127.0.0.1.
func reserve(port int) error {
	c, err := net.ListenPacket("udp", fmt.Sprintf("127.254.0.1:%d", port))
	if err != nil {
		return err
	}
	defer c.Close()
	raw, err := c.(*net.UDPConn).SyscallConn()
	if err != nil {
		return err
	}
	// A copy, which nothing closes.
	var held int
	var failed error
	err = raw.Control(func(fd uintptr) {
		if held, failed = syscall.Dup(int(fd)); failed == nil {
			syscall.CloseOnExec(held)
		}
	})
	return errors.Join(err, failed)
}

// freePorts returns n free ports.
func freePorts(n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		var err error
		if ports[i], err = FreePort(); err != nil {
			return nil, err
		}
	}
	return ports, nil
}

// OwnAddress returns an IPv4 address of this machine that is not a loopback address.
func OwnAddress() (string, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range list {
		if ip, ok := a.(*net.IPNet); ok && !ip.IP.IsLoopback() && ip.IP.To4() != nil {
			return ip.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no address but its loopback")
}
