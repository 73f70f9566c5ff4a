package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// tcp measures a service of mode tcp: what passes through connections, and new connections, beside an Envoy by hand and
// beside HAProxy.
func (l *lab) tcp(ctx context.Context) ([]section, error) {
	b, err := newBackend(ctx, true)
	if err != nil {
		return nil, err
	}
	defer b.close()
	note := fmt.Sprintf("%d clients, %d rounds of %s for each side, in turns; the medians, and the median of the ratios of "+
		"neighboring rounds. One worker thread for each. The clients speak HTTP, which nobody reads on the way.",
		l.opts.rpsConns, l.opts.rpsRounds, l.opts.rpsRound)
	byHand := section{Title: "A service of mode tcp", Beside: "by hand", Notes: []string{note}}
	haproxy := section{Title: "A service of mode tcp, beside HAProxy", Beside: "HAProxy", Notes: []string{note}}
	request := get("any.bench.example", "/")
	list, stop, err := l.tcpTargets(ctx, b.port(), request)
	if err != nil {
		return nil, err
	}
	for _, each := range []bool{false, true} {
		what := map[bool]string{false: "through 1 connection for each client", true: "through a connection for each request"}[each]
		for _, t := range list {
			t.reconnect = each
		}
		results := make([]loads, len(list))
		if err := l.rounds(ctx, l.opts.rpsRounds, list, results); err != nil {
			return nil, err
		}
		byHand.Rows = append(byHand.Rows, besideLoads(what, results[0], results[1])...)
		haproxy.Rows = append(haproxy.Rows, besideLoads(what, results[0], results[2])...)
	}
	return []section{byHand, haproxy}, stop()
}

// tcpTargets starts Gatehouse, an Envoy by hand and HAProxy, in this order.
func (l *lab) tcpTargets(ctx context.Context, backend int, request []byte) (list []*target, stop func() error, err error) {
	free, err := ports(4)
	if err != nil {
		return nil, nil, err
	}
	p, err := l.prepareGatehouse(ctx, setting{concurrency: 1})
	if err != nil {
		return nil, nil, err
	}
	side, err := p.start()
	if err != nil {
		return nil, nil, err
	}
	if err := side.ready(ctx); err != nil {
		return nil, nil, err
	}
	c := gatehouseCalls{newCaller(p.ports.api), p.ports.http}
	for _, call := range [][]string{
		{"/upstream", "Upstream_name", "db", "Upstream_ip", layout.Address, "Upstream_port", strconv.Itoa(backend)},
		{"/service", "Service_Name", "db", "fqdn", "*", "Mode", "tcp", "Port", strconv.Itoa(free[0])},
		{"/service/db/route", "Route_Name", "all", "Route_prefix", "/"},
		{"/service/db/route/all/upstream/db"},
		{"/proxy/" + layout.Node + "/service/db"},
	} {
		if err := c.form(ctx, call[0], call[1:]...); err != nil {
			return nil, nil, err
		}
	}
	other, err := l.runEnvoy("by-hand-envoy", fmt.Appendf(nil, tcpByHand, layout.Address, free[2], layout.Address, free[1],
		layout.Address, backend), 1)
	if err != nil {
		return nil, nil, err
	}
	config := l.file("haproxy.cfg")
	if err := os.WriteFile(config, fmt.Appendf(nil, haproxyConfig, local(free[3]), local(backend)), 0o600); err != nil {
		return nil, nil, err
	}
	third, err := l.run("haproxy", l.opts.haproxy, "-db", "-f", config)
	if err != nil {
		return nil, nil, err
	}
	list = []*target{
		{addr: local(free[0]), envoy: side.envoy, program: side.program, request: request},
		{addr: local(free[1]), envoy: other, request: request},
		{addr: local(free[3]), envoy: third, request: request},
	}
	for _, t := range list {
		w := wire{addr: t.addr}
		_, err := w.until(ctx, request, http.StatusOK, time.Millisecond)
		w.close()
		if err != nil {
			return nil, nil, err
		}
	}
	return list, func() error { return l.stop(side.program, side.envoy, other, third) }, nil
}

// tcpByHand is what somebody would write for the same: addresses and ports of the admin endpoint, the listener and the
// backend.
const tcpByHand = `
admin: {address: {socket_address: {address: %s, port_value: %d}}}
static_resources:
  listeners:
  - address: {socket_address: {address: %s, port_value: %d}}
    per_connection_buffer_limit_bytes: 32768
    filter_chains:
    - filters:
      - name: envoy.filters.network.tcp_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy
          stat_prefix: db
          cluster: db
  clusters:
  - name: db
    connect_timeout: 5s
    per_connection_buffer_limit_bytes: 32768
    load_assignment:
      cluster_name: db
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: %s, port_value: %d}}}}]}]
`

// haproxyConfig has the addresses of the frontend and the backend.
var haproxyConfig = strings.TrimSpace(`
global
  nbthread 1
  maxconn 5000
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen db
  bind %s
  server db %s
`) + "\n"
