package app

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// snapshots gives the API what the Envoys should have.
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
	all = append(all, snap.Secrets...)
	for _, c := range snap.Certificates {
		all = append(all, c.Resource())
	}
	all = append(all, snap.Extensions...)
	var list []inspect.Resource
	for _, r := range all {
		if len(types) > 0 && !slices.Contains(types, r.Body.GetTypeUrl()) {
			continue
		}
		body, err := r.JSON()
		if err != nil {
			return nil, err
		}
		list = append(list, inspect.Resource{
			TypeURL: r.Body.GetTypeUrl(), Name: r.Name, Version: r.Version, Objects: keysOf(r.Objects), JSON: body,
		})
	}
	return list, nil
}

func keysOf(objects []snapshot.ObjectRef) []model.Key {
	var keys []model.Key
	for _, o := range objects {
		keys = append(keys, model.NewKey(model.Kind(o.Kind), o.Name))
	}
	return keys
}

// certificates returns the names that the certificates of secrets cover on a proxy.
func (s snapshots) certificates(proxy string, secrets map[string]bool) ([]explain.Use, error) {
	snap := s.Snapshot(proxy)
	if snap == nil {
		return nil, nil
	}
	names := snap.CertificateNames(secrets)
	if len(names) == 0 {
		return nil, nil
	}
	return explain.Uses(stateOf(snap, snap.Hosts), names)
}

var _ inspect.Snapshots = snapshots{}
