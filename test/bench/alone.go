package main

import (
	"context"
	"net/http"
	"strconv"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// alone is a `gatehouse standalone` with its own empty store, which starts its Envoy
// itself.
type alone struct {
	program *process
	caller
	ports sidePorts
}

// startAlone returns when the program answers. args are additional flags.
func (l *lab) startAlone(ctx context.Context, args ...string) (*alone, error) {
	list, err := ports(5)
	if err != nil {
		return nil, err
	}
	a := &alone{ports: sidePorts{list[0], list[1], list[2], list[3]}, caller: newCaller(list[0])}
	a.program, err = l.run("standalone", l.opts.gatehouse, append([]string{
		"standalone", "--data-dir", l.file("data"), "--proxy", layout.Node,
		"--envoy", l.opts.envoy, "--access-log", "off", "--api-addr", local(a.ports.api), "--xds-addr", local(a.ports.xds),
		"--admin-addr", local(a.ports.admin), "--http-port", strconv.Itoa(a.ports.http), "--https-port", strconv.Itoa(list[4]),
	}, args...)...)
	if err != nil {
		return nil, err
	}
	return a, a.ready(ctx)
}

// pids returns the program and its Envoy.
func (a *alone) pids() ([]int, error) {
	pid := a.program.cmd.Process.Pid
	list, err := children(pid)
	return append(list, pid), err
}

// put loads a document and returns when Envoy has it, and the rate-limit engine
// if there is one.
func (a *alone) put(ctx context.Context, document []byte) error {
	return a.send(ctx, http.MethodPut, "/config?wait=applied", "application/yaml", document)
}
