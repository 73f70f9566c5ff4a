package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

const (
	// fewServices is the size of the store with which a large one is compared.
	fewServices = 10
	// routesEach is how many routes a service has.
	routesEach = 5
	// pause lets the program build the configuration of one write before the next: only
	// the answer is measured.
	pause = 50 * time.Millisecond
)

// scale measures the cost of the API with a large configuration. There is no Envoy.
func (l *lab) scale(ctx context.Context) ([]section, error) {
	large := l.opts.scale
	var list []*filled
	for _, n := range []int{fewServices, max(1, large/10), large} {
		f, err := l.fill(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("with %d services: %w", n, err)
		}
		list = append(list, f)
	}
	few, middle, most := list[0], list[1], list[2]
	var sections []section
	for _, measure := range []func() (section, error){
		func() (section, error) { return documents(ctx, most, middle) },
		func() (section, error) { return l.writes(ctx, most, few) },
		func() (section, error) { return l.pages(ctx, most) },
	} {
		s, err := measure()
		if err != nil {
			return nil, err
		}
		sections = append(sections, s)
	}
	sections[2].Notes = []string{
		fmt.Sprintf("Each service has %d routes to an upstream of its own, all on one proxy. `gatehouse serve` on SQLite, without an Envoy. Medians of %d samples, in turns.", routesEach, l.opts.scaleSamples),
		"Memory held is the live heap, measured by collecting garbage again and again while the document is written: what is resident depends on when the garbage is collected.",
	}
	return sections, l.stop(most.program, middle.program, few.program)
}

// filled is a program with a number of services.
type filled struct {
	services int
	database string
	program  *process
	caller
	// put is how long the document took that created them, cpu the program's CPU time
	// meanwhile, and bytes its size.
	put, cpu time.Duration
	bytes    int
}

// fill starts a program and loads everything in one document.
func (l *lab) fill(ctx context.Context, services int) (*filled, error) {
	p, err := l.prepareGatehouse(ctx, setting{})
	if err != nil {
		return nil, err
	}
	f := &filled{services: services, database: p.database, caller: newCaller(p.ports.api)}
	if f.program, err = p.program(); err != nil {
		return nil, err
	}
	if err := f.ready(ctx); err != nil {
		return nil, err
	}
	text := documentOf(services, p.ports.http)
	f.bytes = len(text)
	before, err := f.program.usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := f.send(ctx, http.MethodPut, "/config", "application/yaml", text); err != nil {
		return nil, err
	}
	f.put = time.Since(began)
	after, err := f.program.usage()
	if err != nil {
		return nil, err
	}
	f.cpu = after.cpu - before.cpu
	return f, f.program.idle(ctx)
}

// nobodyPort is the port of upstreams without an Envoy that would connect: that of the
// listener would be refused, because it leads to the gateway itself.
const nobodyPort = 9

// documentOf returns a configuration of n services.
func documentOf(n, port int) []byte {
	var b bytes.Buffer
	b.WriteString("version: 1\nupstreams:\n")
	for i := range n {
		fmt.Fprintf(&b, "- upstream_name: %s\n  upstream_ip: %s\n  upstream_port: %d\n", upstreamName(i), layout.Address, nobodyPort)
	}
	b.WriteString("services:\n")
	for i := range n {
		fmt.Fprintf(&b, "- service_name: %s\n  fqdn: %s\n  routes:\n", serviceName(i), layout.FQDN(serviceName(i)))
		for r := range routesEach {
			fmt.Fprintf(&b, "  - route_name: r%d\n    route_prefix: /r%d\n    upstreams: [%s]\n", r, r, upstreamName(i))
		}
	}
	fmt.Fprintf(&b, "proxies:\n- name: %s\n  http_port: %d\n  https_port: %d\n  listen_ip: %s\n  services:\n",
		layout.Node, port, httpsPort(port), layout.Address)
	for i := range n {
		fmt.Fprintf(&b, "  - %s\n", serviceName(i))
	}
	return b.Bytes()
}

func serviceName(i int) string  { return fmt.Sprintf("s%06d", i) }
func upstreamName(i int) string { return fmt.Sprintf("u%06d", i) }

// documents measures the complete configuration as one document, with many services
// compared with a tenth of them.
func documents(ctx context.Context, most, middle *filled) (section, error) {
	const reads = 5
	var first, all [2][]float64
	var held [2]float64
	for k, f := range []*filled{most, middle} {
		var err error
		if held[k], err = heldBy(ctx, f.database); err != nil {
			return section{}, err
		}
	}
	for range reads {
		for k, f := range []*filled{most, middle} {
			r, err := f.read(ctx)
			if err != nil {
				return section{}, fmt.Errorf("reading /config: %w", err)
			}
			first[k] = append(first[k], ms(r.first))
			all[k] = append(all[k], ms(r.all)/float64(f.services))
		}
	}
	each := func(f *filled, d time.Duration) float64 { return ms(d) / float64(f.services) }
	return section{
		Title:  fmt.Sprintf("The configuration of %d services as one document", most.services),
		Beside: fmt.Sprintf("%d services", middle.services),
		Rows: []row{
			beside("its size", "MB", float64(most.bytes)/mb, float64(middle.bytes)/mb),
			beside("PUT /config onto an empty store", "s", most.put.Seconds(), middle.put.Seconds()).below(10),
			beside("the same, CPU of the program for each service", "ms", each(most, most.cpu), each(middle, middle.cpu)).atMost(1.5),
			// The server first reads it to the end: a transaction does not wait for a
			// client.
			beside("GET /config, until the first byte", "ms", quantile(first[0], 0.5), quantile(first[1], 0.5)),
			beside("GET /config, for each service", "ms", quantile(all[0], 0.5), quantile(all[1], 0.5)).atMost(1.5),
			beside("memory held while it is written", "MB", held[0]/mb, held[1]/mb).atMost(1.5),
		},
	}, nil
}

// writes measures single changes of a large configuration compared with a small one.
func (l *lab) writes(ctx context.Context, most, few *filled) (section, error) {
	const patch, post, remove = 0, 1, 2
	var times [2][3][]float64
	for i := range warmUp + l.opts.scaleSamples {
		for turn := range 2 {
			k := (turn + i) % 2
			f := []*filled{most, few}[k]
			at := i * 7919 % f.services // spread over all
			routes := "/service/" + serviceName(at) + "/route"
			form := "application/x-www-form-urlencoded"
			for what, call := range []struct{ method, path, body string }{
				patch:  {http.MethodPatch, "/upstream/" + upstreamName(at), fmt.Sprintf("Upstream_weight=%d", 101+i)},
				post:   {http.MethodPost, routes, "Route_Name=new&Route_prefix=%2Fnew"},
				remove: {http.MethodDelete, routes + "/new", ""},
			} {
				began := time.Now()
				if err := f.send(ctx, call.method, call.path, form, []byte(call.body)); err != nil {
					return section{}, err
				}
				if i >= warmUp {
					times[k][what] = append(times[k][what], ms(time.Since(began)))
				}
				if err := sleep(ctx, pause); err != nil {
					return section{}, err
				}
			}
		}
	}
	median := func(what string, call int) row {
		return beside(what, "ms", quantile(times[0][call], 0.5), quantile(times[1][call], 0.5)).atMost(2)
	}
	return section{
		Title:  fmt.Sprintf("One write with %d services", most.services),
		Beside: fmt.Sprintf("%d services", few.services),
		Rows: []row{
			median("PATCH of an upstream", patch), median("POST of a route", post), median("DELETE of a route", remove),
		},
	}, nil
}
