package testkit

import (
	"net"
	"time"
)

// Patience is how long a client of a test waits for an answer, at most: a server that hangs fails the spec.
const Patience = time.Minute

// Dialer is for connections whose first exchange, such as a handshake, ends within Patience.
func Dialer() *net.Dialer { return &net.Dialer{Timeout: Patience} }

// Bounded gives a new connection, the result of a dial, Patience for all that is read and written.
func Bounded[C net.Conn](conn C, err error) (C, error) {
	if err != nil {
		return conn, err
	}
	return conn, conn.SetDeadline(time.Now().Add(Patience))
}
