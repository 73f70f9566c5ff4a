package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// filters measures the cost of each filter for a request, and of the filters that are on the
// listener but switched off.
func (l *lab) filters(ctx context.Context) ([]section, error) {
	list, err := measuredFilters()
	if err != nil {
		return nil, err
	}
	list = slices.DeleteFunc(list, func(f measuredFilter) bool { return f.kind != "" && !strings.Contains(f.what, l.opts.filter) })
	b, err := newBackend(ctx, true)
	if err != nil {
		return nil, err
	}
	defer b.close()
	routes := layout.Routes(len(list)+1, 1, b.port())
	alone, err := l.filtersAlone(ctx, list, routes)
	if err != nil {
		return nil, err
	}
	off, err := l.filtersOff(ctx, routes[0])
	if err != nil {
		return nil, err
	}
	s := section{Title: "Filters", Of: "filter", Beside: "none", Notes: []string{
		fmt.Sprintf("One Envoy after another, %d in all, in which the filters are on a service each, and one service has none: %d rounds of %s for each service, in turns. In brackets: the ratio of CPU time, and how much more a request took, when the filter was chosen (on another machine).",
			l.opts.filterStarts, l.opts.filterRounds, l.opts.rpsRound),
		"A token is verified once, and then remembered. The authorization server, the processor and what gets copies are in the process of the benchmark.",
	}}
	large := alone[0]
	for i, f := range list {
		what, base := f.what, alone[0]
		switch {
		case f.kind == "":
			large = alone[i+1]
		case f.large:
			base = large
		}
		if f.before != "" {
			what += " (" + f.before + ")"
		}
		s.Rows = append(s.Rows, besideLoads(what, alone[i+1], base)...)
	}
	rows := besideLoads("all of them switched off", off[1], off[0])
	rows[1] = rows[1].atMost(1.05)
	return []section{s, {Title: "Filters that are switched off", Of: "all filters", Beside: "none", Rows: rows, Notes: []string{
		"Two Envoys that are configured by hand, of which one has on its listener, switched off, what Gatehouse's listener has.",
	}}}, nil
}

// filtersAlone loads services with one filter each; the first has none.
func (l *lab) filtersAlone(ctx context.Context, list []measuredFilter, routes []layout.Route) ([]loads, error) {
	long, err := newBackend(ctx, true)
	if err != nil {
		return nil, err
	}
	defer long.close()
	long.answerWith(strings.Repeat("a line of text, as there are many\n", 121))
	for i, f := range list {
		if f.large {
			routes[i+1].Port = long.port()
		}
	}
	asked, err := testkit.StartProcessor()
	if err != nil {
		return nil, err
	}
	defer asked.Close()
	gatehouse, err := l.prepareGatehouse(ctx, setting{routes: routes, concurrency: 1, args: []string{"--allow-lua"}})
	if err != nil {
		return nil, err
	}
	results := make([]loads, len(routes))
	for start := range l.opts.filterStarts {
		side, err := gatehouse.startServing(ctx, routes)
		if err != nil {
			return nil, err
		}
		if start == 0 {
			if err := attachFilters(ctx, newCaller(side.ports.api), list, routes[1:], asked.Port); err != nil {
				return nil, err
			}
		}
		var targets []*target
		for i, r := range routes {
			t := &target{addr: local(side.ports.http), envoy: side.envoy, request: requestFor(r)}
			if i > 0 {
				t.request = withHeader(t.request, list[i-1].header...)
			}
			targets = append(targets, t)
		}
		if err := l.rounds(ctx, l.opts.filterRounds, targets, results); err != nil {
			return nil, err
		}
		if err := side.stop(l); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// attachFilters creates the filters, each on the service of a route, and the objects that they
// name.
func attachFilters(ctx context.Context, c caller, list []measuredFilter, routes []layout.Route, processorPort int) error {
	calls := gatehouseCalls{caller: c}
	for _, call := range [][]string{
		{"/upstream", "Upstream_name", processor, "Upstream_ip", layout.Address, "Upstream_protocol", "h2c", "Upstream_port", strconv.Itoa(processorPort)},
		{"/keyset", "Keyset_name", keySet},
		{"/keyset/" + keySet + "/key", "Key_name", "web", "Key_hash", benchHash()},
	} {
		if err := calls.form(ctx, call[0], call[1:]...); err != nil {
			return err
		}
	}
	for i, f := range list {
		if f.kind == "" {
			continue
		}
		config, err := json.Marshal(f.config)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(config), ownUpstream, routes[i].Upstream)
		name := fmt.Sprintf("f%02d", i)
		if err := calls.form(ctx, "/filter", "Filter_name", name, "Filter_type", f.kind, "Filter_config", text); err != nil {
			return fmt.Errorf("%s: %w", f.what, err)
		}
		if err := calls.form(ctx, "/service/"+routes[i].Service+"/filter/"+name+"?wait=applied&timeout=30s"); err != nil {
			return fmt.Errorf("%s: %w", f.what, err)
		}
	}
	return nil
}

func withHeader(request []byte, lines ...string) []byte {
	head := strings.TrimSuffix(string(request), "\r\n")
	for _, line := range lines {
		head += line + "\r\n"
	}
	return []byte(head + "\r\n")
}

// filtersOff loads two Envoys, the second of which has the filters.
func (l *lab) filtersOff(ctx context.Context, route layout.Route) ([]loads, error) {
	filters, err := switchedOff()
	if err != nil {
		return nil, err
	}
	results := make([]loads, 2)
	for range l.opts.rpsStarts {
		var targets []*target
		for _, has := range [][]string{nil, filters} {
			t, err := l.startByHand(route, byHand{concurrency: 1, filters: has})
			if err != nil {
				return nil, err
			}
			targets = append(targets, &t.target)
		}
		if err := l.rounds(ctx, l.opts.rpsRounds, targets, results); err != nil {
			return nil, err
		}
		if err := l.stop(targets[0].envoy, targets[1].envoy); err != nil {
			return nil, err
		}
	}
	return results, nil
}

// switchedOff lists, as JSON, the filters on Gatehouse's listener that are switched off, except
// those that a control plane must deliver.
func switchedOff() (list []string, err error) {
	listener, err := translate.Listener(ir.Listener{Address: layout.Address, Port: 1})
	if err != nil {
		return nil, err
	}
	var hcm hcmv3.HttpConnectionManager
	if err := listener.GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(&hcm); err != nil {
		return nil, err
	}
	for _, f := range slices.DeleteFunc(hcm.GetHttpFilters(), func(f *hcmv3.HttpFilter) bool { return !f.GetDisabled() || f.GetConfigDiscovery() != nil }) {
		text, err := protojson.Marshal(f)
		if err != nil {
			return nil, err
		}
		list = append(list, string(text))
	}
	return list, nil
}
