package translate

import (
	"net/netip"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// systemAuthorities is the name that clusters use for the authorities of the system.
// No stored secret can have this name: it has a slash, and another prefix.
const systemAuthorities = "system/authorities"

// UpstreamSecrets returns the names of a cluster's secrets. They are not part of the
// cluster, so that replacing one leaves the cluster and its connections as they are.
func UpstreamSecrets(t *ir.UpstreamTLS) (authorities, pair string) {
	if t == nil {
		return "", ""
	}
	if t.Authorities != nil {
		authorities = authoritiesName(t.Authorities)
	}
	if t.Client != nil {
		pair = pairPrefix + t.Client.Secret
	}
	return authorities, pair
}

func authoritiesName(a *ir.Authorities) string {
	if a.Secret == "" {
		return systemAuthorities
	}
	return authoritiesPrefix + a.Secret
}

// secureUpstreams makes a cluster use TLS if its protocol requires it.
//
// An endpoint's certificate must contain the name that all endpoints share, or the
// endpoint's own name. Endpoints with different names have separate sockets in the
// same cluster, so that it stays one for load balancing. All DNS names share one
// socket, in which Envoy takes the name from the endpoint. Each IP address has its
// own.
func secureUpstreams(out *clusterv3.Cluster, c *ir.Cluster) error {
	alpn := map[string]string{"tls": "http/1.1", "h2": "h2"}[c.Protocol]
	if alpn == "" || c.TLS == nil {
		return nil
	}
	kinds := make([]string, len(c.Endpoints))
	sockets := map[string]*corev3.TransportSocket{}
	for i, e := range c.Endpoints {
		kind := socketKind(c.TLS, e)
		kinds[i] = kind
		if sockets[kind] != nil {
			continue
		}
		config, err := pack(upstreamContext(c.TLS, kind, alpn))
		if err != nil {
			return err
		}
		sockets[kind] = tlsSocket(config)
		// The first socket is for endpoints that no match tells apart.
		if out.TransportSocket == nil {
			out.TransportSocket = sockets[kind]
		}
	}
	if c.Discovered {
		config, err := pack(upstreamContext(c.TLS, namedSocket, alpn))
		out.TransportSocket = tlsSocket(config)
		return err
	}
	if len(sockets) < 2 {
		return nil
	}
	seen := map[string]bool{}
	var endpoints []*endpointv3.LbEndpoint
	for _, locality := range out.GetLoadAssignment().GetEndpoints() {
		endpoints = append(endpoints, locality.GetLbEndpoints()...)
	}
	for i, e := range endpoints {
		kind := kinds[i]
		match := &structpb.Struct{Fields: map[string]*structpb.Value{"name": structpb.NewStringValue(kind)}}
		e.Metadata = &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{"envoy.transport_socket_match": match}}
		if !seen[kind] {
			seen[kind] = true
			out.TransportSocketMatches = append(out.TransportSocketMatches, &clusterv3.Cluster_TransportSocketMatch{
				Name: kind, Match: match, TransportSocket: sockets[kind],
			})
		}
	}
	return nil
}

// The sockets of a cluster that are not for a single IP address.
const (
	namedSocket   = "name" // the name that all endpoints share
	dnsSocket     = "dns"  // the DNS name of the endpoint
	addressSocket = "address"
)

// socketKind returns the name of an endpoint's socket. Endpoints with the same name
// share one.
func socketKind(t *ir.UpstreamTLS, e ir.Endpoint) string {
	switch {
	case t.Name != "":
		return namedSocket
	case e.DNS:
		return dnsSocket
	case t.Authorities == nil:
		return addressSocket
	}
	// This cannot fail: the endpoint has an IP address.
	ip, _ := netip.ParseAddr(e.Address)
	return ip.Unmap().String()
}

// upstreamContext returns the TLS settings of the endpoints of a kind.
func upstreamContext(t *ir.UpstreamTLS, kind, alpn string) *tlsv3.UpstreamTlsContext {
	common := &tlsv3.CommonTlsContext{
		AlpnProtocols: []string{alpn},
		TlsParams: &tlsv3.TlsParameters{
			TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
		},
	}
	// Envoy does not verify a resumed session again.
	tls := &tlsv3.UpstreamTlsContext{CommonTlsContext: common, MaxSessionKeys: wrapperspb.UInt32(0)}
	required := t.AltNames
	require := func(name string) {
		if len(required) == 0 {
			required = []string{name}
		}
	}
	switch kind {
	case namedSocket:
		require(t.Name)
		if !isAddress(t.Name) {
			tls.Sni = t.Name // an address is not a valid SNI (RFC 6066 section 3)
		}
	case dnsSocket:
		tls.AutoHostSni, tls.AutoSniSanValidation = true, t.Authorities != nil && len(required) == 0
	case addressSocket:
	default:
		require(kind)
	}
	authorities, pair := UpstreamSecrets(t)
	if pair != "" {
		common.TlsCertificateSdsSecretConfigs = []*tlsv3.SdsSecretConfig{seam.SDSSecret(pair)}
	}
	if authorities != "" {
		validation := &tlsv3.CertificateValidationContext{}
		for _, name := range required {
			validation.MatchTypedSubjectAltNames = append(validation.MatchTypedSubjectAltNames, subjectAltName(name))
		}
		common.ValidationContextType = &tlsv3.CommonTlsContext_CombinedValidationContext{
			CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
				DefaultValidationContext: validation, ValidationContextSdsSecretConfig: seam.SDSSecret(authorities),
			},
		}
	}
	return tls
}

func isAddress(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}

func subjectAltName(name string) *tlsv3.SubjectAltNameMatcher {
	kind := tlsv3.SubjectAltNameMatcher_DNS
	switch {
	case strings.Contains(name, "://"): // a URI
		kind = tlsv3.SubjectAltNameMatcher_URI
	case isAddress(name):
		kind = tlsv3.SubjectAltNameMatcher_IP_ADDRESS
	}
	return &tlsv3.SubjectAltNameMatcher{
		SanType: kind,
		Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}},
	}
}

// serverName returns a DNS name as a client sends it.
func serverName(name string) string { return strings.ToLower(strings.TrimSuffix(name, ".")) }
