package main

import (
	"net/http"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// byHand writes messages as in test/bench/static.yaml.tmpl: the minimum that serves the
// routes.
type byHand struct{}

func (byHand) routeConfiguration() *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{Name: translate.RouteConfigName} // the listener requests this name
}

func (byHand) build(s *service) error {
	s.host = &routev3.VirtualHost{Name: s.name, Domains: []string{layout.FQDN(s.name)}}
	s.clusters = nil
	for _, r := range s.routes {
		out := &routev3.Route{
			Name:  r.Name,
			Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: r.Prefix}},
		}
		if r.attached {
			// Routes with the same upstream share its cluster: the snapshot has
			// clusters by name.
			s.clusters = append(s.clusters, handCluster(r.Route))
			out.Action = &routev3.Route_Route{Route: &routev3.RouteAction{
				ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: r.Upstream}, Timeout: durationpb.New(0),
			}}
		} else {
			out.Action = &routev3.Route_DirectResponse{
				DirectResponse: &routev3.DirectResponseAction{Status: http.StatusServiceUnavailable},
			}
		}
		s.host.Routes = append(s.host.Routes, out)
	}
	return nil
}

func handCluster(r layout.Route) *clusterv3.Cluster {
	const bufferBytes = 32 << 10
	address := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       layout.Address,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(r.Port)}, //nolint:gosec // a port
	}}}
	endpoint := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
		Endpoint: &endpointv3.Endpoint{Address: address},
	}}
	return &clusterv3.Cluster{
		Name:                          r.Upstream,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:                durationpb.New(5 * time.Second),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(bufferBytes),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: r.Upstream,
			Endpoints:   []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{endpoint}}},
		},
	}
}
