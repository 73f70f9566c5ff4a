package inspect

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/status"
)

// origin lists the objects that a resource of a proxy came from. A cluster, and
// its assignment, is named by its upstreams, the piece of a route configuration
// by its service; all else is the proxy's own.
func origin(e status.Envoy, r status.Refusal) []model.Key {
	switch {
	case r.TypeURL == ClusterType, r.TypeURL == EndpointType:
		return upstreamsOf(r.Resource)
	case r.TypeURL == RouteType && !isWhole(e, r):
		return []model.Key{model.ServiceKey(r.Resource)}
	}
	return []model.Key{model.ProxyKey(e.Proxy)}
}

// isWhole reports whether a route configuration was refused as a whole, and not
// for one of its hosts, which may have the same name.
func isWhole(e status.Envoy, r status.Refusal) bool {
	return slices.Contains(e.Types[r.TypeURL].Rejected.Resources, status.Resource{Name: r.Resource, Version: r.Version})
}

// upstreamsOf lists the upstreams that the name of a cluster names. A long name
// is cut in the middle of one and ends in a hash; both are left out.
func upstreamsOf(cluster string) []model.Key {
	names := strings.Split(cluster, "+")
	if len(cluster) == cutClusterName && len(names) > 2 && regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(names[len(names)-1]) {
		names = names[:len(names)-2]
	}
	keys := make([]model.Key, len(names))
	for i, name := range names {
		keys[i] = model.UpstreamKey(name)
	}
	return keys
}

// cutClusterName is the length of a cluster's name that was cut.
const cutClusterName = 120

func paths(keys []model.Key) []string {
	list := make([]string, len(keys))
	for i, k := range keys {
		list[i] = k.Path()
	}
	return list
}

// concerned lists the objects that a condition on an object or link is about.
func concerned(k model.Key) []model.Key {
	if attached := k.Attached(); attached != (model.Key{}) {
		return []model.Key{k.Owner(), attached}
	}
	return []model.Key{k}
}
