package explain

import (
	"fmt"
	"slices"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// TLS describes a TLS connection.
type TLS struct {
	// ServerName is the host name that the client requests (SNI); empty if it sends none.
	ServerName string `json:"server_name,omitempty"`
	// MinVersion and MaxVersion bound the TLS version, such as 1.2 and 1.3.
	MinVersion string `json:"min_version"`
	MaxVersion string `json:"max_version"`
	// ALPN are the protocols that a client can choose from, the preferred one first.
	ALPN []string `json:"alpn"`
	// ClientAuthorities is the secret with the authorities, one of which must have signed
	// the client's certificate; empty if no client certificate is requested.
	ClientAuthorities string `json:"client_authorities,omitempty"`
	// Certificates are the served certificates: one, or one for each type of key; empty
	// if the handshake fails.
	Certificates []Certificate `json:"certificates"`
	// Others are certificates that match the name too, and lose.
	Others []Certificate `json:"other_certificates,omitempty"`
}

// connect accepts the connection and, over TLS, performs the handshake. It returns the
// HTTP connection manager of the listener; nil if the request does not get that far.
func (a *Answer) connect(have State, r Request) (*hcmv3.HttpConnectionManager, error) {
	resource, listener, err := listenerFor(have, r)
	if err != nil {
		return nil, err
	}
	if resource != nil {
		chain, err := findChain(listener, r.ServerName, "")
		if err != nil {
			return nil, err
		}
		a.port = listener.GetAddress().GetSocketAddress().GetPortValue()
		if chain == nil {
			message := fmt.Sprintf("%q is not a host name, so the connection is closed in the handshake", r.ServerName)
			if serviceOfChain(listener.GetFilterChains()[0]) != "" {
				message = fmt.Sprintf("no service has a certificate, and none of mode tls has the name %s, so the connection is closed", nameText(r.ServerName))
			}
			a.endWith(NoCertificate, 0, "tls", message)
			return nil, nil
		}
		if f := listener.GetListenerFilters(); len(f) > 0 && f[0].GetName() == translate.ProxyProtocol {
			a.step("listener", "the connection begins with the PROXY protocol, which says who the client is; only the load "+
				"balancers of the globalconfig_proxyprotocol may connect")
		}
		var l hcmv3.HttpConnectionManager
		filters := chain.GetFilters()
		if service := serviceOfChain(chain); service != "" {
			a.Service, a.Envoy.Listener, a.Envoy.FilterChain = service, resource.Name, chain.GetName()
			how := "without being decrypted, and its backend answers"
			if chain.GetTransportSocket() != nil {
				how = "decrypted, and its backend answers"
			}
			a.endWith(PassedOn, 0, "tls", fmt.Sprintf("service %s of mode tls has the name %s, so the connection is passed on "+
				"%s the request: explain tls://%[2]s", service, r.ServerName, how))
			return nil, nil
		}
		if err := filters[len(filters)-1].GetTypedConfig().UnmarshalTo(&l); err != nil {
			return nil, fmt.Errorf("decoding listener %q: %w", resource.Name, err)
		}
		if !a.takeConnection(have, resource.Name) {
			return nil, nil
		}
		a.Envoy.FilterChain = chain.GetName()
		if r.TLS {
			if ok, err := a.handshake(have, r, chain); err != nil || !ok {
				return nil, err
			}
			if err := a.offerHTTP3(have, r); err != nil {
				return nil, err
			}
		}
		a.Envoy.RouteConfiguration = have.Routes.GetName()
		return &l, nil
	}
	message := "the proxy has no listener for http, so the connection is refused"
	if r.TLS {
		message = "the proxy has no listener for https, so the connection is refused: none of its services has a certificate; " + have.howToCover(r)
	}
	a.endWith(NoListener, 0, "listener", message)
	return nil, nil
}

// handshake reports whether the TLS handshake succeeds, for a client that trusts the
// certificate and presents its own if one is required.
func (a *Answer) handshake(have State, r Request, chain *listenerv3.FilterChain) (bool, error) {
	var socket tlsv3.DownstreamTlsContext
	if err := chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(&socket); err != nil {
		return false, fmt.Errorf("decoding filter chain %q: %w", chain.GetName(), err)
	}
	common := socket.GetCommonTlsContext()
	t := &TLS{
		ServerName: r.ServerName, ALPN: common.GetAlpnProtocols(), Certificates: []Certificate{},
		MinVersion: versionText(common.GetTlsParams().GetTlsMinimumProtocolVersion()),
		MaxVersion: versionText(common.GetTlsParams().GetTlsMaximumProtocolVersion()),
	}
	a.TLS = t
	versions := t.MinVersion
	if t.MaxVersion != versions {
		versions += " to " + t.MaxVersion
	}
	a.step("tls", fmt.Sprintf("the client connects for %s, with TLS %s and %s", nameText(r.ServerName), versions, protocolText(t.ALPN)))
	if err := t.choose(have, r.ServerName, common); err != nil {
		return false, err
	}
	if len(t.Certificates) == 0 {
		a.endWith(NoCertificate, 0, "certificate", fmt.Sprintf(
			"no certificate is for %s, so the handshake fails; %s", nameText(r.ServerName), have.howToCover(r)))
		return false, nil
	}
	for _, c := range t.Certificates {
		a.step("certificate", c.sentence())
	}
	for _, c := range t.Others {
		a.step("certificate", c.sentence())
	}
	if name := common.GetValidationContextSdsSecretConfig().GetName(); name != "" && socket.GetRequireClientCertificate().GetValue() {
		t.ClientAuthorities = objectOf(have, name)
		a.step("client_certificate", fmt.Sprintf(
			"the client must present a certificate that an authority of secret %s has signed, or the connection is closed", t.ClientAuthorities))
	}
	return true, nil
}

// offerHTTP3 says whether the same request may come over HTTP/3. It is answered alike.
func (a *Answer) offerHTTP3(have State, r Request) error {
	for _, resource := range have.Listeners {
		var listener listenerv3.Listener
		if err := resource.Body.UnmarshalTo(&listener); err != nil {
			return fmt.Errorf("decoding listener %q: %w", resource.Name, err)
		}
		if !isHTTP3(&listener) {
			continue
		}
		if at := slices.IndexFunc(have.Refused, func(r RefusedListener) bool { return r.Name == resource.Name }); at >= 0 {
			a.step("http3", fmt.Sprintf("Envoy refused listener %s, so clients stay with HTTP/2: %s", resource.Name, have.Refused[at].Text))
			return nil
		}
		chain, err := findChain(&listener, r.ServerName, "")
		switch {
		case err != nil:
			return err
		case chain == nil:
			a.step("http3", fmt.Sprintf("listener %s closes connections for %s: HTTP/3 cannot verify clients", resource.Name, nameText(r.ServerName)))
		default:
			a.step("http3", fmt.Sprintf("listener %s accepts the connection over HTTP/3 too, with the same answer; alt-svc tells clients", resource.Name))
		}
	}
	return nil
}

// nameText describes a server name in a sentence.
func nameText(serverName string) string {
	if serverName == "" {
		return "an address, which is not a host name (no SNI)"
	}
	return fmt.Sprintf("%q", serverName)
}

func protocolText(alpn []string) string {
	words := map[string]string{"h2": "HTTP/2", "http/1.1": "HTTP/1.1"}
	list := make([]string, len(alpn))
	for i, p := range alpn {
		list[i] = p
		if w, known := words[p]; known {
			list[i] = w
		}
	}
	return strings.Join(list, " or ") + " by ALPN"
}

func versionText(v tlsv3.TlsParameters_TlsProtocol) string {
	return strings.ReplaceAll(strings.TrimPrefix(v.String(), "TLSv"), "_", ".")
}

// howToCover describes what to do for a name without a certificate.
func (have State) howToCover(r Request) string {
	if r.ServerName == "" {
		return `a client that connects to an address gets the certificate of a service whose fqdn is * or that address: attach a secret to such a service`
	}
	hosts := findHosts(have.Hosts, seam.LowerASCII(r.ServerName))
	if len(hosts) == 0 {
		return noHost(have.Hosts, seam.LowerASCII(r.ServerName))
	}
	service := hosts[0].host.Name
	return fmt.Sprintf("attach a secret with a certificate that covers %s to service %s (POST /service/%s/secret/{secret})", r.ServerName, service, service)
}

// objectOf returns the secret object behind a secret that a listener names.
func objectOf(have State, name string) string {
	if r := findResource(have.Secrets, name); r != nil {
		if object := objectName(r, "secret"); object != "" {
			return object
		}
	}
	_, object, _ := strings.Cut(name, "/")
	return object
}

func objectName(r *snapshot.Resource, kind string) string {
	for _, o := range r.Objects {
		if o.Kind == kind {
			return o.Name
		}
	}
	return ""
}
