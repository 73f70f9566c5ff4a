package translate

import (
	"cmp"
	"slices"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tracev3 "github.com/envoyproxy/go-control-plane/envoy/config/trace/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	tracingv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// forceTrace is the header whose requests Envoy traces whatever their share is (HttpConnectionManager.Tracing,
// client_sampling).
const forceTrace = "x-client-trace-id"

// Collectors are the clusters that receive spans and logs of a listener. A collector may be there twice.
func Collectors(l ir.Listener) []*ir.Cluster {
	var list []*ir.Cluster
	if l.Tracing != nil {
		list = append(list, l.Tracing.Collector.Cluster)
	}
	for _, log := range l.AccessLogs {
		if log.Collector != nil {
			list = append(list, log.Collector.Cluster)
		}
	}
	return list
}

// credentialPrefix begins the names of secrets with the credential of a collector.
const credentialPrefix = "telemetry/"

// credentialSecrets are those of Collectors.
func credentialSecrets(l ir.Listener) []*tlsv3.Secret {
	var list []*tlsv3.Secret
	for _, c := range Collectors(l) {
		if k := c.Credential; k != nil {
			list = append(list, &tlsv3.Secret{Name: credentialPrefix + k.Secret, Type: &tlsv3.Secret_GenericSecret{
				GenericSecret: &tlsv3.GenericSecret{Secret: seam.Inline(k.Value)},
			}})
		}
	}
	slices.SortFunc(list, func(a, b *tlsv3.Secret) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return slices.CompactFunc(list, func(a, b *tlsv3.Secret) bool { return a.GetName() == b.GetName() })
}

// otlp is how a collector is reached: one of the two is nil.
func otlp(c *ir.Collector) (*corev3.GrpcService, *corev3.HttpService) {
	if c.Path == "" {
		return &corev3.GrpcService{
			TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{
				ClusterName: c.Cluster.Name, Authority: c.Host,
			}},
			Timeout: seconds(c.Cluster.MaxDuration),
		}, nil
	}
	return nil, &corev3.HttpService{HttpUri: &corev3.HttpUri{
		Uri: "http://" + c.Host + c.Path, Timeout: seconds(c.Cluster.MaxDuration),
		HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: c.Cluster.Name},
	}}
}

// tracing makes a span for each request. A nil Tracing has none.
func tracing(t *ir.Tracing) (*hcmv3.HttpConnectionManager_Tracing, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // Envoy does not trace then
	}
	provider := &tracev3.OpenTelemetryConfig{ServiceName: t.ServiceName}
	provider.GrpcService, provider.HttpService = otlp(t.Collector)
	config, err := pack(provider)
	if err != nil {
		return nil, err
	}
	return &hcmv3.HttpConnectionManager_Tracing{
		Provider: &tracev3.Tracing_Http{
			Name: "envoy.tracers.opentelemetry", ConfigType: &tracev3.Tracing_Http_TypedConfig{TypedConfig: config},
		},
		RandomSampling:    &typev3.Percent{Value: t.Sampling},
		SpawnUpstreamSpan: wrapperspb.Bool(t.UpstreamSpans),
		Operation:         "%REQ(:METHOD):32% %ROUTE_NAME%",
		CustomTags:        append(ownTags(), seam.TraceTags(t.Tags)...),
	}, nil
}

// ownTags are in every span. The first one replaces Envoy's, which has the query, where tokens and other secrets may be.
func ownTags() []*tracingv3.CustomTag {
	return []*tracingv3.CustomTag{
		seam.TraceTag("http.url", "%REQ(:SCHEME):8%://%REQ(:AUTHORITY):256%%PATH(NQ):1024%"),
		seam.TraceTag("gatehouse.service", "%CEL(xds.virtual_host_name)%"),
		seam.TraceTag("gatehouse.route", "%ROUTE_NAME%"),
	}
}

// traceHeaders change the headers of a request before it is decided whether it is traced. A request with a traceparent
// is, as far as its share is concerned: the tracer then does what the traceparent says.
func traceHeaders(t *ir.Tracing) []*mutationv3.HeaderMutation {
	if t == nil {
		return nil
	}
	remove, forcing := []string{forceTrace}, []string{"traceparent"}
	if t.IgnoreParent {
		remove, forcing = append(remove, "traceparent", "tracestate"), nil
	}
	if t.ForceHeader != "" {
		forcing = append(forcing, t.ForceHeader)
	}
	var list []*mutationv3.HeaderMutation
	for _, name := range remove {
		list = append(list, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: name}})
	}
	for _, name := range forcing {
		list = append(list, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{
			Append: seam.SetHeader(forceTrace, "%REQ("+name+"):64%"),
		}})
	}
	if t.B3 {
		list = append(list, b3Headers()...)
	}
	return list
}
