package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
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
	// adminSocket is where its Envoy has its admin endpoint.
	adminSocket string
	// wire asks the Envoy.
	wire wire
}

type sidePorts struct{ api, xds, http, admin int }

// calls change what a control plane holds. They return when it has answered.
type calls interface {
	// services makes services that have no routes yet.
	services(ctx context.Context, names []string) error
	// create makes a route that has no upstream yet: it answers 503.
	create(ctx context.Context, r layout.Route) error
	// attach gives the route its upstream: it answers 200.
	attach(ctx context.Context, r layout.Route) error
	// add does both in as few calls as there are.
	add(ctx context.Context, r layout.Route) error
	// remove takes the route and its upstream away: it answers 404.
	remove(ctx context.Context, r layout.Route) error
}

// setting is how to start a side.
type setting struct {
	routes      []layout.Route
	accessLog   bool
	concurrency int
	// coalesce is for the floor only.
	coalesce bool
}

// prepared is a side that is ready to be started, any number of times.
type prepared struct {
	name  string
	lab   *lab
	ports sidePorts
	// adminSocket is where its Envoy has its admin endpoint.
	adminSocket string
	// program starts the control plane.
	program     func() (*process, error)
	bootstrap   []byte
	concurrency int
	calls       calls
	// database is the URL of Gatehouse's.
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
	p.calls = newGatehouseCalls(p.ports.api)
	p.program = func() (*process, error) {
		return l.run(p.name, l.opts.gatehouse, "serve", "--data-dir", dataDirOf(database), "--database-url", database, "--access-log", accessLog,
			"--api-addr", local(p.ports.api), "--xds-addr", local(p.ports.xds))
	}
	return p, nil
}

// dataDirOf is where the key of a database is, apart from the user's own.
func dataDirOf(database string) string { return strings.TrimPrefix(database, "sqlite://") + ".data" }

// prepareFloor stores the routes in a file.
func (l *lab) prepareFloor(s setting) (*prepared, error) {
	p, err := l.prepare("floor")
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
	p.calls = newFloorCalls(p.ports.api)
	p.program = func() (*process, error) {
		return l.run(p.name, l.opts.floor, "-routes", file, "-http-port", strconv.Itoa(p.ports.http),
			"-access-log="+strconv.FormatBool(s.accessLog), "-coalesce="+strconv.FormatBool(s.coalesce),
			"-api-addr", local(p.ports.api), "-xds-addr", local(p.ports.xds))
	}
	return p, nil
}

// start starts the control plane and its Envoy at once, and waits for
// nothing.
func (p *prepared) start() (*side, error) {
	s := &side{name: p.name, calls: p.calls, ports: p.ports, adminSocket: p.adminSocket, wire: wire{addr: local(p.ports.http)}}
	var err error
	if s.program, err = p.program(); err != nil {
		return nil, err
	}
	s.envoy, err = p.lab.runEnvoy(p.name+"-envoy", p.bootstrap, p.concurrency)
	return s, err
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
		side, err := p.start()
		if err != nil {
			return nil, err
		}
		if err := side.served(ctx, s.routes); err != nil {
			return nil, fmt.Errorf("starting %s: %w", p.name, err)
		}
		list = append(list, side)
	}
	return list, same(ctx, list[0], list[1])
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

// caller sends calls to a control plane.
type caller struct {
	base   string
	client *http.Client
}

func newCaller(port int) caller {
	return caller{"http://" + local(port), &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 16}, Timeout: patience,
	}}
}

// send makes one call and reads its answer to the end.
func (c caller) send(ctx context.Context, method, path, contentType string, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if len(body) > 0 {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: status %d: %s", method, path, resp.StatusCode, text)
	}
	return err
}

// ready waits until the program answers.
func (c caller) ready(ctx context.Context) error {
	return eventually(ctx, "the program to be ready", func() error { return c.send(ctx, http.MethodGet, "/ready", "", nil) })
}

// gatehouseCalls are the calls of the specification.
type gatehouseCalls struct{ caller }

func newGatehouseCalls(port int) calls { return gatehouseCalls{newCaller(port)} }

func (c gatehouseCalls) form(ctx context.Context, path string, fields ...string) error {
	form := url.Values{}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return c.send(ctx, http.MethodPost, path, "application/x-www-form-urlencoded", []byte(form.Encode()))
}

func (c gatehouseCalls) services(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := c.form(ctx, "/service", "Service_Name", name, "fqdn", layout.FQDN(name)); err != nil {
			return err
		}
		if err := c.form(ctx, "/proxy/"+layout.Node+"/service/"+name); err != nil {
			return err
		}
	}
	return nil
}

func (c gatehouseCalls) create(ctx context.Context, r layout.Route) error {
	err := c.form(ctx, "/upstream", "Upstream_name", r.Upstream, "Upstream_ip", layout.Address,
		"Upstream_port", strconv.Itoa(r.Port))
	if err != nil {
		return err
	}
	return c.form(ctx, "/service/"+r.Service+"/route", "Route_Name", r.Name, "Route_prefix", r.Prefix)
}

func (c gatehouseCalls) attach(ctx context.Context, r layout.Route) error {
	return c.form(ctx, "/service/"+r.Service+"/route/"+r.Name+"/upstream/"+r.Upstream)
}

func (c gatehouseCalls) add(ctx context.Context, r layout.Route) error {
	if err := c.create(ctx, r); err != nil {
		return err
	}
	return c.attach(ctx, r)
}

func (c gatehouseCalls) remove(ctx context.Context, r layout.Route) error {
	if err := c.send(ctx, http.MethodDelete, "/service/"+r.Service+"/route/"+r.Name, "", nil); err != nil {
		return err
	}
	return c.send(ctx, http.MethodDelete, "/upstream/"+r.Upstream, "", nil)
}

// handed is when the newest route configuration was handed to gRPC.
func (c gatehouseCalls) handed(ctx context.Context) (time.Time, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+"/status", nil)
	if err != nil {
		return time.Time{}, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return time.Time{}, err
	}
	defer resp.Body.Close()
	type envoy struct {
		Types []struct {
			Type string
			Sent struct{ At time.Time }
		}
	}
	var answer struct {
		Data struct {
			Status []struct{ Proxies []struct{ Envoys []envoy } } `json:"core_db_status"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return time.Time{}, fmt.Errorf("reading the status: %w", err)
	}
	for _, status := range answer.Data.Status {
		for _, proxy := range status.Proxies {
			for _, e := range proxy.Envoys {
				for _, t := range e.Types {
					if t.Type == "route" {
						return t.Sent.At, nil
					}
				}
			}
		}
	}
	return time.Time{}, errors.New("the status tells of no route configuration that was sent")
}

// floorCalls are those of test/bench/floor.
type floorCalls struct{ caller }

func newFloorCalls(port int) calls { return floorCalls{newCaller(port)} }

func (c floorCalls) route(ctx context.Context, call string, r layout.Route) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	method, path, _ := strings.Cut(call, " ")
	return c.send(ctx, method, path, "application/json", text)
}

// services come with their first route.
func (c floorCalls) services(context.Context, []string) error { return nil }

func (c floorCalls) create(ctx context.Context, r layout.Route) error {
	return c.route(ctx, "POST /route", r)
}

func (c floorCalls) attach(ctx context.Context, r layout.Route) error {
	return c.route(ctx, "POST /upstream", r)
}

func (c floorCalls) add(ctx context.Context, r layout.Route) error {
	return c.route(ctx, "POST /both", r)
}

func (c floorCalls) remove(ctx context.Context, r layout.Route) error {
	return c.route(ctx, "DELETE /route", r)
}
