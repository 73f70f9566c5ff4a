package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// cluster makes a cluster; edition changes its content and so its version.
func cluster(name string, edition int, warms bool) *snapshot.Resource {
	c := &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       durationpb.New(time.Duration(edition) * time.Second),
	}
	if warms {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
	}
	r, err := snapshot.NewCluster(c, upstream(c.GetName()))
	Expect(err).NotTo(HaveOccurred())
	return r
}

// discovered makes a cluster that has its endpoints in an assignment. checked adds a health
// check.
func discovered(name string, edition int, checked bool) *snapshot.Resource {
	c := &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		ConnectTimeout:       durationpb.New(time.Duration(edition) * time.Second),
	}
	if checked {
		c.HealthChecks = []*corev3.HealthCheck{{
			Timeout: durationpb.New(time.Second), Interval: durationpb.New(time.Second),
			UnhealthyThreshold: wrapperspb.UInt32(1), HealthyThreshold: wrapperspb.UInt32(1),
			HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}},
		}}
	}
	r, err := snapshot.NewCluster(c, upstream(name))
	Expect(err).NotTo(HaveOccurred())
	return r
}

// assignment makes the assignment of a cluster; edition changes its content.
func assignment(name string, edition int) *snapshot.Resource {
	r, err := snapshot.NewAssignment(&endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(edition)}, //nolint:gosec // of a test
			}}},
		}}}},
	}}}, upstream(name))
	Expect(err).NotTo(HaveOccurred())
	return r
}

func upstream(name string) snapshot.ObjectRef {
	return snapshot.ObjectRef{Kind: "upstream", Name: name}
}

func service(name string) snapshot.ObjectRef { return snapshot.ObjectRef{Kind: "service", Name: name} }

// awaited is a cluster with one upstream for which a host waits.
func awaited(name string) plan.Awaited {
	return plan.Awaited{Name: name, Objects: []snapshot.ObjectRef{upstream(name)}}
}

func listener(name string) *snapshot.Resource {
	r, err := snapshot.NewListener(&listenerv3.Listener{
		Name: name,
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
		}}},
	})
	Expect(err).NotTo(HaveOccurred())
	return r
}

// port makes a listener that names clusters itself.
func port(name string, clusters ...*snapshot.Resource) *snapshot.Resource {
	var names []string
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	r, err := snapshot.NewListener(&listenerv3.Listener{
		Name: name, StatPrefix: strings.Join(names, "+"),
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
		}}},
	}, service(name))
	Expect(err).NotTo(HaveOccurred())
	r.Clusters = names
	return r
}

// host makes a host with one route to each of the clusters.
func host(name string, clusters ...*snapshot.Resource) *snapshot.Parts {
	var routes []*snapshot.Route
	for i, c := range clusters {
		r, err := snapshot.NewRoute(&routev3.Route{
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: fmt.Sprintf("/%d", i)}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: c.Name},
			}},
		})
		Expect(err).NotTo(HaveOccurred())
		routes = append(routes, r)
	}
	h, err := snapshot.NewHost(&routev3.VirtualHost{Name: name, Domains: []string{name + ".test"}}, routes, service(name))
	Expect(err).NotTo(HaveOccurred())
	return &snapshot.Parts{Host: h, Domain: name + ".test", Named: snapshot.Named{Clusters: clusters}}
}

// world makes a snapshot of hosts behind one listener.
func world(revision int64, hosts ...*snapshot.Parts) *snapshot.Snapshot {
	return assignedWorld(revision, nil, hosts...)
}

// assignedWorld is world with assignments.
func assignedWorld(revision int64, assignments []*snapshot.Resource, hosts ...*snapshot.Parts) *snapshot.Snapshot {
	return wholeWorld(revision, assignments, nil, hosts...)
}

// wholeWorld is assignedWorld with listeners, by name, that name clusters.
func wholeWorld(
	revision int64, assignments []*snapshot.Resource, ports map[string][]*snapshot.Resource, hosts ...*snapshot.Parts,
) *snapshot.Snapshot {
	head, err := snapshot.NewRouteHead(&routev3.RouteConfiguration{Name: "rc"}, unavailable(), nil)
	Expect(err).NotTo(HaveOccurred())
	b := snapshot.NewBuilder(head, nil)
	listeners, named := []*snapshot.Resource{listener("http")}, snapshot.Named{}
	for name, clusters := range ports {
		listeners, named.Clusters = append(listeners, port(name, clusters...)), append(named.Clusters, clusters...)
	}
	b.SetListeners(listeners, named)
	for _, h := range hosts {
		b.SetHost(h.Host.Name, h)
	}
	b.AssignWith(func(cluster *snapshot.Resource) *snapshot.Resource {
		i := slices.IndexFunc(assignments, func(a *snapshot.Resource) bool { return a.Name == cluster.Name })
		if i < 0 {
			return nil
		}
		return assignments[i]
	})
	return b.Snapshot(revision)
}

// poisoned reports whether an Envoy of these tests refuses the routes.
func poisoned(hosts map[string][]string) bool {
	for _, clusters := range hosts {
		if slices.ContainsFunc(clusters, func(c string) bool { return strings.HasPrefix(c, "poison") }) {
			return true
		}
	}
	return false
}

// clustersByHost decodes a route configuration: the clusters of each host.
func clustersByHost(r *snapshot.Resource) map[string][]string {
	var rc routev3.RouteConfiguration
	Expect(r.Body.UnmarshalTo(&rc)).To(Succeed())
	hosts := map[string][]string{}
	for _, vh := range rc.GetVirtualHosts() {
		set := map[string]bool{}
		for _, route := range vh.GetRoutes() {
			if name := route.GetRoute().GetCluster(); name != "" {
				set[name] = true
			}
		}
		hosts[vh.GetName()] = slices.Sorted(maps.Keys(set))
	}
	return hosts
}

// unavailable is the route of a host that was refused.
func unavailable() *routev3.Route {
	return &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}},
	}
}
