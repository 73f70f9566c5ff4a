package translate

import (
	"fmt"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// These are the limits of Envoy's guide for edge proxies ("Configuring Envoy as an
// edge proxy").
const (
	connectionBufferBytes = 32 * 1024
	maxConcurrentStreams  = 100
	streamWindowBytes     = 64 * 1024
	connectionWindowBytes = 1024 * 1024
	streamIdleTimeout     = 300 * time.Second
	connectionIdleTimeout = time.Hour
	// requestTimeout bounds the time to receive a whole request.
	requestTimeout = 300 * time.Second
	// requestHeadersTimeout bounds the time to receive a request's headers.
	requestHeadersTimeout = 10 * time.Second
)

// Listener translates a listener. It accepts HTTP/1.1 and HTTP/2, plain or over TLS,
// and takes its routes from the proxy's route configuration.
func Listener(l ir.Listener) (*listenerv3.Listener, error) {
	out := &listenerv3.Listener{
		Name:                          ListenerName(l),
		Address:                       socketAddress(l.Address, l.Port),
		PerConnectionBufferLimitBytes: u32(connectionBufferBytes),
		Metadata:                      pageOf(l).metadata(),
	}
	if !l.HTTP3 {
		boundSockets(l.Clients, out)
	}
	var err error
	if out.ListenerFilters, err = readProxyProtocol(l.ProxyProtocol); err != nil {
		return nil, err
	}
	switch {
	case l.HTTP3:
		return out, quicChains(out, l)
	case l.TLS != nil:
		return out, secureChains(out, l)
	}
	manager, err := httpConnectionManager(l)
	if err != nil {
		return nil, err
	}
	filters, err := networkFilters(l, manager)
	out.FilterChains = []*listenerv3.FilterChain{{Filters: filters}}
	return out, err
}

func networkFilters(l ir.Listener, manager *hcmv3.HttpConnectionManager) ([]*listenerv3.Filter, error) {
	filters, err := onlyBalancers(l.ProxyProtocol)
	if err != nil {
		return nil, err
	}
	if !l.HTTP3 { // Envoy has no other filters for the connections of QUIC
		limit, err := boundConnections(l.Clients)
		if err != nil {
			return nil, err
		}
		named, err := namePort(l)
		if err != nil {
			return nil, err
		}
		filters = append(append(filters, limit...), named...)
	}
	config, err := pack(manager)
	return append(filters, &listenerv3.Filter{
		Name:       "envoy.filters.network.http_connection_manager",
		ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config},
	}), err
}

func httpConnectionManager(l ir.Listener) (*hcmv3.HttpConnectionManager, error) {
	filters, err := listenerFilters(l)
	if err != nil {
		return nil, err
	}
	replies, err := localReplies(l)
	if err != nil {
		return nil, err
	}
	out := &hcmv3.HttpConnectionManager{
		StatPrefix: "http",
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
			ConfigSource: seam.ADS(), RouteConfigName: RouteConfigName,
		}},
		HttpFilters:                  filters,
		UpgradeConfigs:               []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: websocket}},
		UseRemoteAddress:             wrapperspb.Bool(true),
		XffNumTrustedHops:            uint32(l.TrustedHops), //nolint:gosec // at most 10
		NormalizePath:                wrapperspb.Bool(true),
		MergeSlashes:                 true,
		StripTrailingHostDot:         true,
		PathWithEscapedSlashesAction: escapedSlashes(l.EscapedSlashes),
		StreamIdleTimeout:            seconds(streamIdleTimeout),
		RequestTimeout:               seconds(requestTimeout),
		RequestHeadersTimeout:        seconds(requestHeadersTimeout),
		ServerName:                   "gatehouse",
		LocalReplyConfig:             replies,
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{
			IdleTimeout:                  seconds(connectionIdleTimeout),
			HeadersWithUnderscoresAction: underscoreHeaders(l.UnderscoreHeaders),
		},
		Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
			MaxConcurrentStreams:        u32(maxConcurrentStreams),
			InitialStreamWindowSize:     u32(streamWindowBytes),
			InitialConnectionWindowSize: u32(connectionWindowBytes),
		},
	}
	boundRequests(l, out)
	if out.Tracing, err = tracing(l.Tracing); err != nil {
		return nil, err
	}
	if out.AccessLog, err = accessLogs(l); err != nil {
		return nil, err
	}
	for _, f := range rows {
		if f.Manager != nil {
			if err := f.Manager(l, out); err != nil {
				return nil, fmt.Errorf("configuring filter %s: %w", f.Name, err)
			}
		}
		if f.Logs != nil {
			log, err := f.Logs()
			if err != nil {
				return nil, fmt.Errorf("configuring the log of filter %s: %w", f.Name, err)
			}
			out.AccessLog = append(out.AccessLog, log)
		}
	}
	return out, nil
}
