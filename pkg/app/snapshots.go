package app

import (
	"net"
	"os"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// snapshots shows the API what the Envoys should have.
type snapshots struct{ *server.Server }

// Wanted implements inspect.Snapshots.
func (s snapshots) Wanted(proxy string) int64 {
	if snap := s.Snapshot(proxy); snap != nil {
		return snap.Revision
	}
	return 0
}

// Resources implements inspect.Snapshots.
func (s snapshots) Resources(proxy string, types []string) ([]inspect.Resource, error) {
	snap := s.Snapshot(proxy)
	if snap == nil {
		return nil, nil
	}
	all := slices.Concat(snap.Clusters, snap.Endpoints, snap.Listeners)
	if snap.RouteName() != "" {
		all = append(all, snap.Routes(snap.Hosts))
	}
	all = slices.Concat(all, snap.Secrets, snap.Extensions)
	var list []inspect.Resource
	for _, r := range all {
		if len(types) > 0 && !slices.Contains(types, r.Body.GetTypeUrl()) {
			continue
		}
		body, err := r.JSON()
		if err != nil {
			return nil, err
		}
		list = append(list, inspect.Resource{TypeURL: r.Body.GetTypeUrl(), Name: r.Name, Version: r.Version, JSON: body})
	}
	return list, nil
}

var _ inspect.Snapshots = snapshots{}

// replica names this process in a status: by its host and the port of its API,
// since a host may run several.
func replica(api net.Listener) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	_, port, err := net.SplitHostPort(api.Addr().String())
	if err != nil {
		return host
	}
	return net.JoinHostPort(host, port)
}
