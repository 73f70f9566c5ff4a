package explain

import (
	"fmt"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// Use is a host name that a service's certificate matches.
type Use struct {
	Secret  string
	Service string
	// Name is an exact name, a wildcard, or empty for clients that send no host name.
	Name string
	// Answers means that clients receive this certificate. Message explains why, or
	// why they receive another one.
	Answers bool
	Message string
}

// Uses returns for which names the certificates of some secrets are served, and for
// which of their names another one is. names are the names of Certificates by secret.
func Uses(have State, names map[string][]string) ([]Use, error) {
	listeners := make([]*listenerv3.Listener, len(have.Listeners))
	for i, r := range have.Listeners {
		listeners[i] = &listenerv3.Listener{}
		if err := r.Body.UnmarshalTo(listeners[i]); err != nil {
			return nil, fmt.Errorf("decoding listener %q: %w", r.Name, err)
		}
	}
	var list []Use
	for secret, patterns := range names {
		for _, name := range patterns {
			shown := name
			if name == snapshot.DefaultCertificate {
				shown = ""
			}
			t, err := have.chooseFor(listeners, shown)
			if err != nil {
				return nil, err
			}
			for _, side := range []struct {
				certificates []Certificate
				answers      bool
			}{{t.Certificates, true}, {t.Others, false}} {
				for _, c := range side.certificates {
					if c.Secret == secret {
						list = append(list, Use{secret, c.Service, shown, side.answers, c.sentence()})
					}
				}
			}
		}
	}
	return list, nil
}

// chooseFor chooses the certificates for a name.
func (have State) chooseFor(listeners []*listenerv3.Listener, name string) (*TLS, error) {
	t := &TLS{}
	for _, l := range listeners {
		if !isHTTP(l) || !isSecure(l) {
			continue
		}
		// For a wildcard, look up a name below it.
		chain, err := findChain(l, strings.Replace(name, "*", "__any__", 1), "")
		if err != nil || chain == nil || serviceOfChain(chain) != "" {
			return t, err
		}
		var socket tlsv3.DownstreamTlsContext
		if err := chain.GetTransportSocket().GetTypedConfig().UnmarshalTo(&socket); err != nil {
			return nil, fmt.Errorf("decoding filter chain %q: %w", chain.GetName(), err)
		}
		return t, t.choose(have, name, socket.GetCommonTlsContext())
	}
	return t, nil
}
