package explain

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// UpstreamTLS is how connections to an endpoint are secured.
type UpstreamTLS struct {
	// SNI is the name that the endpoint is asked for; empty means none.
	SNI string
	// Protocols are those that it is offered (ALPN).
	Protocols []string
	// Authorities is the resource with those that must have signed its certificate;
	// empty means that the certificate is not verified.
	Authorities string
	// Name is what this certificate must carry.
	Name string
	// ClientCertificate is the resource with the pair that it is shown; empty means
	// none.
	ClientCertificate string
}

// socketMatch is where endpoints say which socket is theirs.
const socketMatch = "envoy.transport_socket_match"

// tlsOf reads the TLS of an endpoint of a cluster; nil if there is none, or of a form
// that Gatehouse does not make.
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
	}
	for _, s := range common.GetTlsCertificateSdsSecretConfigs() {
		t.ClientCertificate = s.GetName()
	}
	return t
}

func socketOf(c *clusterv3.Cluster, e *endpointv3.LbEndpoint) *corev3.TransportSocket {
	kind := e.GetMetadata().GetFilterMetadata()[socketMatch].GetFields()["name"].GetStringValue()
	for _, m := range c.GetTransportSocketMatches() {
		if kind != "" && m.GetMatch().GetFields()["name"].GetStringValue() == kind {
			return m.GetTransportSocket()
		}
	}
	return c.GetTransportSocket()
}

// ReadAuthorities returns the certificates of a resource with authorities, in PEM.
func ReadAuthorities(r *snapshot.Resource) (string, error) {
	var secret tlsv3.Secret
	if err := r.Body.UnmarshalTo(&secret); err != nil {
		return "", fmt.Errorf("decoding secret %q: %w", r.Name, err)
	}
	return secret.GetValidationContext().GetTrustedCa().GetInlineString(), nil
}
