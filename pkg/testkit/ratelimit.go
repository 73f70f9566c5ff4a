package testkit

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// RatelimitOptions say how the rate-limit engine runs. XDSAddr and RedisAddr
// are required.
type RatelimitOptions struct {
	// XDSAddr is the source of its limits, RedisAddr where it counts, HOST:PORT.
	XDSAddr, RedisAddr string
	// NodeID is its xDS node; empty means that of ratelimit/ratelimit.env.
	NodeID string
	// Env are additional settings of the form NAME=value. They override others.
	Env []string
}

// Ratelimit is a running rate-limit engine, with the settings of
// ratelimit/ratelimit.env and its own ports. Stop it with Kill: after SIGTERM it
// continues while it waits for its first limits or for Redis.
type Ratelimit struct {
	*Process
	// Addr is its gRPC service for Envoy, HOST:PORT.
	Addr string
	// Metrics are at /metrics.
	Metrics API
	// Health is at /healthcheck, and the same service as JSON at /json.
	Health API
	// Debug has the limits in effect at /rlconfig.
	Debug API

	env []string
}

// StartRatelimit runs the engine and returns when it is ready; see WaitReady. The
// control plane must be running.
func StartRatelimit(ctx context.Context, o RatelimitOptions) (*Ratelimit, error) {
	r, err := SpawnRatelimit(o)
	if err != nil {
		return nil, err
	}
	if err := r.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, r.Kill())
	}
	return r, nil
}

// SpawnRatelimit runs the engine without waiting, for example because it starts before
// the control plane.
func SpawnRatelimit(o RatelimitOptions) (*Ratelimit, error) {
	env, err := ratelimitSettings()
	if err != nil {
		return nil, err
	}
	ports, err := freePorts(4)
	if err != nil {
		return nil, err
	}
	addr := func(i int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(ports[i])) }
	env = append(env, "CONFIG_GRPC_XDS_SERVER_URL="+o.XDSAddr, "REDIS_URL="+o.RedisAddr,
		fmt.Sprint("GRPC_PORT=", ports[0]), fmt.Sprint("PORT=", ports[1]), fmt.Sprint("DEBUG_PORT=", ports[2]),
		"PROMETHEUS_ADDR="+addr(3))
	if o.NodeID != "" {
		env = append(env, "CONFIG_GRPC_XDS_NODE_ID="+o.NodeID)
	}
	r := &Ratelimit{
		Addr: addr(0), Health: API{URL: "http://" + addr(1)}, Debug: API{URL: "http://" + addr(2)},
		Metrics: API{URL: "http://" + addr(3)}, env: append(env, o.Env...),
	}
	return r, r.Respawn()
}

// Respawn runs it again, at the same addresses, once it has stopped. It does not wait.
func (r *Ratelimit) Respawn() error {
	path, err := Binary("ratelimit")
	if err != nil {
		return err
	}
	// Without the test's environment: its settings have names like PORT.
	r.Process, err = startProcessWith(path, r.env)
	return err
}

// WaitReady returns when it answers Envoy and reports that it is healthy: it has
// limits, possibly none, and Redis.
func (r *Ratelimit) WaitReady(ctx context.Context) error {
	return r.await(ctx, "the rate-limit engine is ready", func() error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", r.Addr)
		if err != nil {
			return err
		}
		if err := conn.Close(); err != nil {
			return err
		}
		a, err := r.Health.Get(ctx, "/healthcheck")
		if err == nil && a.Status != http.StatusOK {
			err = fmt.Errorf("status %d: %s", a.Status, a.Body)
		}
		return err
	})
}

// ratelimitSettings returns the lines of ratelimit/ratelimit.env.
func ratelimitSettings() ([]string, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	file, err := os.ReadFile(filepath.Join(root, "ratelimit", "ratelimit.env"))
	if err != nil {
		return nil, fmt.Errorf("reading the settings of the rate-limit engine: %w", err)
	}
	var env []string
	for line := range strings.Lines(string(file)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			env = append(env, line)
		}
	}
	return env, nil
}
