package translate

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	mapperv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_mappers/sni/v3"
	selectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_selectors/on_demand_secret/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// handshakeTimeout bounds a TLS handshake. Envoy may have to request the certificate
// during it.
const handshakeTimeout = 5 * time.Second

// These are prefixes of the names of secrets that resources refer to. A name without a
// slash is a host name that a client requested.
const (
	pairPrefix        = "pair/"
	authoritiesPrefix = "authorities/"
	// DefaultCertificate is the name that Envoy requests when a client sends no host
	// name (see snapshot.DefaultCertificate).
	DefaultCertificate = "default/"
)

// cipherSuites are the suites of TLS 1.2, all with forward secrecy and authenticated
// encryption (Mozilla's intermediate list). Those of TLS 1.3 are fixed.
func cipherSuites() []string {
	return []string{
		"[ECDHE-ECDSA-AES128-GCM-SHA256|ECDHE-ECDSA-CHACHA20-POLY1305]", "[ECDHE-RSA-AES128-GCM-SHA256|ECDHE-RSA-CHACHA20-POLY1305]",
		"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
	}
}

// keyExchanges are Mozilla's of 2025. The first also resists quantum computers, for
// clients that support it (TLS 1.3 only). Envoy's defaults are the second and the
// third.
func keyExchanges() []string { return []string{"X25519MLKEM768", "X25519", "P-256", "P-384"} }

// secureChains makes a listener an HTTPS listener. It replaces the listener's plain
// HTTP filter chain.
func secureChains(out *listenerv3.Listener, l ir.Listener) error {
	inspector, err := tlsInspector()
	if err != nil {
		return err
	}
	out.ListenerFilters = append(out.ListenerFilters, inspector)
	passthrough := &ir.L4Listener{
		Services: l.TLS.Passthrough, AccessLog: l.AccessLog, AccessLogs: l.AccessLogs, Lean: l.Lean, ProxyProtocol: l.ProxyProtocol,
		Clients: l.Clients,
	}
	if out.FilterChainMatcher, err = chainMatcher(l.TLS, passthrough); err != nil {
		return err
	}
	out.FilterChains = nil
	chains := append([]ir.TLSChain{{Name: anyChain}}, l.TLS.Chains...)
	if l.TLS.Only {
		chains = nil
	}
	for _, c := range chains {
		// Filters that look at the chain find their own.
		l.TLS = &ir.TLS{MinVersion: l.TLS.MinVersion, Chains: []ir.TLSChain{c}}
		manager, err := httpConnectionManager(l)
		if err != nil {
			return err
		}
		if c.ClientCA != nil {
			passSubject(manager)
		}
		filters, err := networkFilters(l, manager)
		if err != nil {
			return err
		}
		socket, err := downstreamSocket(l.TLS.MinVersion, c, []string{"h2", "http/1.1"})
		if err != nil {
			return err
		}
		out.FilterChains = append(out.FilterChains, &listenerv3.FilterChain{
			Name: c.Name, Filters: filters, TransportSocket: socket, TransportSocketConnectTimeout: seconds(handshakeTimeout),
		})
	}
	for _, s := range passthrough.Services {
		chain, err := l4Chain(passthrough, s)
		if err != nil {
			return err
		}
		out.FilterChains = append(out.FilterChains, chain)
	}
	return nil
}

// passSubject sends the client's identity to upstreams (X-Forwarded-Client-Cert).
func passSubject(manager *hcmv3.HttpConnectionManager) {
	manager.ForwardClientCertDetails = hcmv3.HttpConnectionManager_SANITIZE_SET
	manager.SetCurrentClientCertDetails = &hcmv3.HttpConnectionManager_SetCurrentClientCertDetails{
		Subject: wrapperspb.Bool(true), Dns: true, Uri: true,
	}
}

// downstreamSocket decrypts connections, whose protocol is one of those of ALPN; nil means that none is agreed on.
func downstreamSocket(minVersion string, c ir.TLSChain, protocols []string) (*corev3.TransportSocket, error) {
	version := tlsv3.TlsParameters_TLSv1_2
	if minVersion == "1.3" {
		version = tlsv3.TlsParameters_TLSv1_3
	}
	tls := unresumed(&tlsv3.CommonTlsContext{
		AlpnProtocols: protocols,
		TlsParams: &tlsv3.TlsParameters{
			TlsMinimumProtocolVersion: version, TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
			CipherSuites: cipherSuites(), EcdhCurves: keyExchanges(),
		},
	})
	common := tls.GetCommonTlsContext()
	if c.ClientCA != nil {
		tls.RequireClientCertificate = wrapperspb.Bool(true)
		common.ValidationContextType = &tlsv3.CommonTlsContext_ValidationContextSdsSecretConfig{
			ValidationContextSdsSecretConfig: seam.SDSSecret(authoritiesPrefix + c.ClientCA.Secret),
		}
	}
	for _, p := range c.Pairs {
		common.TlsCertificateSdsSecretConfigs = append(common.TlsCertificateSdsSecretConfigs, seam.SDSSecret(pairPrefix+p.Secret))
	}
	if len(c.Pairs) == 0 {
		selector, err := certificateSelector()
		if err != nil {
			return nil, err
		}
		common.CustomTlsCertificateSelector = selector
	}
	config, err := pack(tls)
	return tlsSocket(config), err
}

// unresumed is a context without session tickets and session IDs: Envoy refuses to look
// up certificates if either is enabled.
func unresumed(common *tlsv3.CommonTlsContext) *tlsv3.DownstreamTlsContext {
	return &tlsv3.DownstreamTlsContext{
		CommonTlsContext:                 common,
		SessionTicketKeysType:            &tlsv3.DownstreamTlsContext_DisableStatelessSessionResumption{DisableStatelessSessionResumption: true},
		DisableStatefulSessionResumption: true,
	}
}

// certificateSelector looks up the certificate by the host name that the client
// requests. The lookup happens at the first such connection.
func certificateSelector() (*corev3.TypedExtensionConfig, error) {
	mapper, err := pack(&mapperv3.SNI{DefaultValue: DefaultCertificate})
	if err != nil {
		return nil, err
	}
	selector, err := pack(&selectorv3.Config{
		ConfigSource:      seam.ADS(),
		CertificateMapper: &corev3.TypedExtensionConfig{Name: "envoy.tls.certificate_mappers.sni", TypedConfig: mapper},
	})
	return &corev3.TypedExtensionConfig{Name: "envoy.tls.certificate_selectors.on_demand_secret", TypedConfig: selector}, err
}

// chainSecrets returns the secrets that the chains of a listener name.
func chainSecrets(l ir.Listener) []*tlsv3.Secret {
	if l.TLS == nil {
		return nil
	}
	byName := map[string]*tlsv3.Secret{}
	for _, c := range l.TLS.Chains {
		if c.ClientCA != nil {
			s := AuthoritiesSecret(c.ClientCA)
			byName[s.GetName()] = s
		}
		for _, p := range c.Pairs {
			s := PairSecret(pairPrefix+p.Secret, p)
			byName[s.GetName()] = s
		}
	}
	for _, s := range L4Secrets(&ir.L4Listener{Services: l.TLS.Passthrough}) {
		byName[s.GetName()] = s
	}
	var list []*tlsv3.Secret
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}

// PairSecret returns a pair as Envoy's secret with the given name.
func PairSecret(name string, p *ir.Pair) *tlsv3.Secret {
	return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: seam.Inline(p.Chain), PrivateKey: seam.Inline(p.Key),
	}}}
}

// AuthoritiesSecret returns the authorities, one of which must have signed a
// certificate.
func AuthoritiesSecret(a *ir.Authorities) *tlsv3.Secret {
	return &tlsv3.Secret{Name: authoritiesName(a), Type: &tlsv3.Secret_ValidationContext{
		ValidationContext: &tlsv3.CertificateValidationContext{TrustedCa: seam.Inline(a.PEM)},
	}}
}

// SecretObject returns the name of the stored secret behind a resource's name of a
// secret; empty if there is none.
func SecretObject(name string) string {
	_, object, _ := strings.Cut(name, "/")
	return object
}
