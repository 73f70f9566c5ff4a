package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// side is a control plane and its Envoy.
type side struct {
	name    string
	program *process
	envoy   *process
	calls
	ports sidePorts
	// adminSocket is the admin endpoint of its Envoy.
	adminSocket string
	// wire sends requests to the Envoy.
	wire wire
}

type sidePorts struct{ api, xds, http, admin int }

// calls change the configuration of a control plane. They return when it has answered.
type calls interface {
	// ready waits until the control plane has something for an Envoy.
	ready(ctx context.Context) error
	// services creates services without routes.
	services(ctx context.Context, names []string) error
	// create creates a route without an upstream: it answers 503.
	create(ctx context.Context, r layout.Route) error
	// attach attaches the route's upstream: it answers 200.
	attach(ctx context.Context, r layout.Route) error
	// add does both with as few calls as possible.
	add(ctx context.Context, r layout.Route) error
	// remove removes the route and its upstream: it answers 404.
	remove(ctx context.Context, r layout.Route) error
	// document returns a document with all routes, for load.
	document(routes []layout.Route) ([]byte, error)
	// load replaces all routes with those of a document, in one call.
	load(ctx context.Context, document []byte) error
}

// setting is how to start a side.
type setting struct {
	routes      []layout.Route
	accessLog   bool
	concurrency int
	// For the floor only: one SetSnapshot for many changes; the same messages as
	// Gatehouse's rather than those that a person would write.
	coalesce, sameMessages bool
	// args are additional arguments of Gatehouse.
	args []string
}

// prepared is a side that is ready to be started, any number of times.
type prepared struct {
	name  string
	lab   *lab
	ports sidePorts
	// adminSocket is the admin endpoint of its Envoy.
	adminSocket string
	// program starts the control plane.
	program     func() (*process, error)
	bootstrap   []byte
	concurrency int
	calls       calls
	// database is the URL of Gatehouse's database.
	database string
}

func (l *lab) prepare(name string) (*prepared, error) {
	list, err := ports(4)
	if err != nil {
		return nil, err
	}
	p := &prepared{name: name, lab: l, ports: sidePorts{list[0], list[1], list[2], list[3]}, adminSocket: l.file("admin.sock")}
	p.bootstrap, err = bootstrap(local(p.ports.xds), p.adminSocket)
	return p, err
}

// prepareGatehouse stores the routes in a database.
func (l *lab) prepareGatehouse(ctx context.Context, s setting) (*prepared, error) {
	p, err := l.prepare("gatehouse")
	if err != nil {
		return nil, err
	}
	database := "sqlite://" + l.file("gatehouse.db")
	if err := seed(ctx, database, p.ports.http, s.routes); err != nil {
		return nil, err
	}
	accessLog := "off"
	if s.accessLog {
		accessLog = "json"
	}
	p.database, p.concurrency = database, s.concurrency
	p.calls = gatehouseCalls{newCaller(p.ports.api), p.ports.http}
	p.program = func() (*process, error) {
		return l.run(p.name, l.opts.gatehouse, append([]string{
			"serve", "--data-dir", dataDirOf(database), "--database-url", database, "--access-log", accessLog,
			"--api-addr", local(p.ports.api), "--xds-addr", local(p.ports.xds),
		}, s.args...)...)
	}
	return p, nil
}

// dataDirOf returns the directory of a database's key, separate from the user's own.
func dataDirOf(database string) string { return strings.TrimPrefix(database, "sqlite://") + ".data" }

// prepareFloor stores the routes in a file.
func (l *lab) prepareFloor(s setting) (*prepared, error) {
	name := "floor"
	if s.coalesce {
		name = "floor, coalescing"
	}
	if s.sameMessages {
		name = "floor, same messages"
	}
	p, err := l.prepare(name)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s.routes)
	if err != nil {
		return nil, err
	}
	file := l.file("routes.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	p.concurrency = s.concurrency
	p.calls = floorCalls{newCaller(p.ports.api)}
	p.program = func() (*process, error) {
		return l.run(p.name, l.opts.floor, "-routes", file, "-http-port", strconv.Itoa(p.ports.http),
			"-access-log="+strconv.FormatBool(s.accessLog), "-coalesce="+strconv.FormatBool(s.coalesce),
			"-by-hand="+strconv.FormatBool(!s.sameMessages), "-api-addr", local(p.ports.api), "-xds-addr", local(p.ports.xds))
	}
	return p, nil
}

// start starts the control plane and its Envoy at the same time, without waiting.
func (p *prepared) start() (*side, error) {
	s, err := p.startProgram()
	if err != nil {
		return nil, err
	}
	return s, p.startEnvoy(s)
}

// startProgram starts the control plane alone.
func (p *prepared) startProgram() (*side, error) {
	program, err := p.program()
	return &side{
		name: p.name, program: program, calls: p.calls, ports: p.ports, adminSocket: p.adminSocket, wire: wire{addr: local(p.ports.http)},
	}, err
}

func (p *prepared) startEnvoy(s *side) (err error) {
	s.envoy, err = p.lab.runEnvoy(p.name+"-envoy", p.bootstrap, p.concurrency)
	return err
}

// startServing returns when the last of the routes is served.
func (p *prepared) startServing(ctx context.Context, routes []layout.Route) (*side, error) {
	s, err := p.start()
	if err != nil {
		return nil, err
	}
	if err := s.served(ctx, routes); err != nil {
		return nil, fmt.Errorf("starting %s: %w", p.name, err)
	}
	return s, nil
}

// both starts Gatehouse and the floor with the same routes, and returns when
// the last of them is served.
func (l *lab) both(ctx context.Context, s setting) ([]*side, error) {
	gatehouse, err := l.prepareGatehouse(ctx, s)
	if err != nil {
		return nil, err
	}
	floor, err := l.prepareFloor(s)
	if err != nil {
		return nil, err
	}
	var list []*side
	for _, p := range []*prepared{gatehouse, floor} {
		side, err := p.startServing(ctx, s.routes)
		if err != nil {
			return nil, err
		}
		list = append(list, side)
	}
	return list, nil
}

// served waits until the Envoy listens and serves the last of the routes.
func (s *side) served(ctx context.Context, routes []layout.Route) error {
	request, want := get("none.bench.example", "/"), http.StatusNotFound
	if len(routes) > 0 {
		request, want = requestFor(routes[len(routes)-1]), http.StatusOK
	}
	_, err := s.wire.until(ctx, request, want, 10*time.Millisecond)
	return err
}

func requestFor(r layout.Route) []byte { return get(r.FQDN(), r.Prefix) }

// stop ends both processes, the Envoy first.
func (s *side) stop(l *lab) error {
	s.wire.close()
	return l.stop(s.program, s.envoy)
}
