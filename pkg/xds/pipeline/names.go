package pipeline

import (
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// names are the resources that the routes of a service name, without duplicates.
type names struct{ clusters, secrets, providers map[string]*snapshot.Resource }

func newNames() names {
	return names{map[string]*snapshot.Resource{}, map[string]*snapshot.Resource{}, map[string]*snapshot.Resource{}}
}

func (n names) add(named snapshot.Named) {
	for _, r := range named.Clusters {
		n.clusters[r.Name] = r
	}
	for _, r := range named.Secrets {
		n.secrets[r.Name] = r
	}
	for _, r := range named.Providers {
		n.providers[r.Name] = r
	}
}

func (n names) sorted() (named snapshot.Named) {
	for _, name := range slices.Sorted(maps.Keys(n.clusters)) {
		named.Clusters = append(named.Clusters, n.clusters[name])
	}
	for _, name := range slices.Sorted(maps.Keys(n.secrets)) {
		named.Secrets = append(named.Secrets, n.secrets[name])
	}
	for _, name := range slices.Sorted(maps.Keys(n.providers)) {
		named.Providers = append(named.Providers, n.providers[name])
	}
	return named
}
