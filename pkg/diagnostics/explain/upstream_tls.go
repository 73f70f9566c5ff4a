package explain

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	upstreamproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// UpstreamTLS describes how connections to an endpoint are secured.
type UpstreamTLS struct {
	// SNI is the name that Envoy requests; empty means none.
	SNI string
	// Protocols are the protocols that Envoy offers (ALPN).
	Protocols []string
	// Authorities is the resource with the authorities, one of which must have signed
	// the endpoint's certificate; empty means that the certificate is not verified.
	Authorities string
	// Name is the name that the certificate must contain; if AltNames are set, it must contain one of them instead.
	Name     string
	AltNames []string
	// ClientCertificate is the resource with Envoy's client certificate and key;
	// empty means none.
	ClientCertificate string
}

// socketMatch is the metadata key with which endpoints select their socket.
const socketMatch = "envoy.transport_socket_match"

// tlsOf reads the TLS settings of an endpoint of a cluster; nil if there are none, or
// if Gatehouse did not make them.
func tlsOf(c *clusterv3.Cluster, e *endpointv3.LbEndpoint) *UpstreamTLS {
	var context tlsv3.UpstreamTlsContext
	if err := socketOf(c, e).GetTypedConfig().UnmarshalTo(&context); err != nil {
		return nil
	}
	common := context.GetCommonTlsContext()
	validation := common.GetCombinedValidationContext()
	t := &UpstreamTLS{
		SNI: context.GetSni(), Protocols: common.GetAlpnProtocols(),
		Authorities: validation.GetValidationContextSdsSecretConfig().GetName(),
	}
	if context.GetAutoHostSni() {
		t.SNI = e.GetEndpoint().GetHostname()
	}
	if context.GetAutoSniSanValidation() {
		t.Name = t.SNI
	}
	for _, m := range validation.GetDefaultValidationContext().GetMatchTypedSubjectAltNames() {
		t.Name = m.GetMatcher().GetExact()
		t.AltNames = append(t.AltNames, t.Name)
	}
	if len(t.AltNames) == 1 && !model.IsURI(t.Name) {
		t.AltNames = nil
	}
	for _, s := range common.GetTlsCertificateSdsSecretConfigs() {
		t.ClientCertificate = s.GetName()
	}
	return t
}

func socketOf(c *clusterv3.Cluster, e *endpointv3.LbEndpoint) *corev3.TransportSocket {
	socket := c.GetTransportSocket()
	kind := e.GetMetadata().GetFilterMetadata()[socketMatch].GetFields()["name"].GetStringValue()
	for _, m := range c.GetTransportSocketMatches() {
		if kind != "" && m.GetMatch().GetFields()["name"].GetStringValue() == kind {
			socket = m.GetTransportSocket()
			break
		}
	}
	var first upstreamproxyv3.ProxyProtocolUpstreamTransport
	if socket.GetTypedConfig().UnmarshalTo(&first) == nil {
		socket = first.GetTransportSocket() // what comes after the PROXY protocol
	}
	return socket
}

// ReadAuthorities returns the certificates of a resource with authorities in PEM.
func ReadAuthorities(r *snapshot.Resource) (string, error) {
	var secret tlsv3.Secret
	if err := r.Body.UnmarshalTo(&secret); err != nil {
		return "", fmt.Errorf("decoding secret %q: %w", r.Name, err)
	}
	return secret.GetValidationContext().GetTrustedCa().GetInlineString(), nil
}
