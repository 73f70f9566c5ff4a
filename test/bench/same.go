package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
)

// same checks that two Envoys have the same routes and clusters.
func same(ctx context.Context, a, b *side) error {
	for _, resource := range []string{"dynamic_route_configs", "dynamic_active_clusters"} {
		var dumps [2][]string
		for i, s := range []*side{a, b} {
			var err error
			if dumps[i], err = dump(ctx, s.adminSocket, resource); err != nil {
				return fmt.Errorf("asking the Envoy of %s what it holds: %w", s.name, err)
			}
		}
		if !slices.Equal(dumps[0], dumps[1]) {
			return fmt.Errorf("%s and %s are not the same thing: their Envoys differ in %s", a.name, b.name, resource)
		}
	}
	return nil
}

// dump returns a part of an Envoy's configuration, sorted, without what may differ.
func dump(ctx context.Context, adminSocket, resource string) ([]string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://envoy/config_dump?resource="+resource, nil)
	if err != nil {
		return nil, err
	}
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", adminSocket)
	}}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	var answer struct{ Configs []map[string]any }
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, err
	}
	if len(answer.Configs) == 0 {
		return nil, fmt.Errorf("%s: nothing", resource)
	}
	var list []string
	for _, c := range answer.Configs {
		delete(c, "version_info")
		delete(c, "last_updated")
		one, err := json.Marshal(c)
		if err != nil {
			return nil, err
		}
		list = append(list, string(one))
	}
	slices.Sort(list)
	return list, nil
}
