package testkit

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Redis is a running Redis server that stores nothing on disk.
type Redis struct {
	*Process
	// Addr is where it listens, HOST:PORT.
	Addr string

	dir string
}

// StartRedis runs a Redis server on a free port and returns when it answers.
// dir is an empty directory.
func StartRedis(ctx context.Context, dir string) (*Redis, error) {
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	r := &Redis{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir}
	return r, r.Restart(ctx)
}

// Restart starts it again on its port once it has stopped, with no keys.
func (r *Redis) Restart(ctx context.Context) error {
	path, err := Binary("redis-server")
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(r.Addr)
	if err != nil {
		return err
	}
	r.Process, err = startProcess(path, nil, "--bind", host, "--port", port, "--dir", r.dir, "--save", "", "--appendonly",
		"no")
	if err != nil {
		return err
	}
	if err := r.await(ctx, "Redis answers", func() error { return r.ping(ctx) }); err != nil {
		return errors.Join(err, fmt.Errorf("it says: %s", r.Stdout), r.Kill())
	}
	return nil
}

func (r *Redis) ping(ctx context.Context) (err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Addr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.TrimSpace(line) != "+PONG" {
		err = fmt.Errorf("the answer to PING is %q", line)
	}
	return err
}
