package compile

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// HTTPSListener compiles the proxy's HTTPS listener; nil while no service has a
// certificate. names are the hosts without their own chain that a chain's wildcard would
// otherwise match.
func HTTPSListener(t *model.ProxyTree, s Settings, needs ir.Needs, names []string) *ir.Listener {
	if !needs.HTTPS {
		return nil
	}
	l := Listener(t, s, needs)
	l.Port, l.AltSvc = t.Proxy.HTTPSPort, altSvc(&l, t.Proxy)
	l.TLS = &ir.TLS{MinVersion: t.Proxy.TLSMinVersion, Chains: needs.Chains}
	if len(names) > 0 {
		l.TLS.Chains = append([]ir.TLSChain{{Name: "named", ServerNames: names}}, needs.Chains...)
	}
	return &l
}

// MaxHTTP3Certificates bounds the chains of a listener of HTTP/3. Each costs Envoy 1 MB of memory, and each change of
// the listener 7 ms of CPU time for each chain.
const MaxHTTP3Certificates = 100

// HTTP3Listener compiles the proxy's listener of HTTP/3, which has a chain for each
// certificate; nil if the proxy has none. Envoy can neither look up certificates nor
// verify clients over QUIC: the names of services that verify clients are closed.
func HTTP3Listener(https *ir.Listener, certificates []ir.Certificate) *ir.Listener {
	if https == nil || https.AltSvc == 0 || len(certificates) == 0 {
		return nil
	}
	l := *https
	l.HTTP3, l.TLS = true, &ir.TLS{MinVersion: model.TLS13}
	for _, c := range https.TLS.Chains {
		if c.ClientCA != nil {
			l.TLS.Closed = append(l.TLS.Closed, c.ServerNames...)
		}
	}
	bySecret := map[string]ir.TLSChain{}
	for _, c := range certificates {
		chain := bySecret[c.Pair.Secret]
		chain.Name, chain.Pairs = "pair "+c.Pair.Secret, []*ir.Pair{c.Pair}
		chain.ServerNames = append(chain.ServerNames, c.Name)
		bySecret[c.Pair.Secret] = chain
	}
	for i, secret := range slices.Sorted(maps.Keys(bySecret)) {
		if i < MaxHTTP3Certificates {
			l.TLS.Chains = append(l.TLS.Chains, bySecret[secret])
		} else {
			l.TLS.Closed = append(l.TLS.Closed, slices.DeleteFunc(bySecret[secret].ServerNames, func(n string) bool { return n == "" })...)
		}
	}
	slices.Sort(l.TLS.Closed)
	return &l
}

// altSvc returns the port that the HTTPS listener names as the one of HTTP/3; 0 names
// none. QUIC has no PROXY protocol, so the clients' addresses would be unknown, and no filter that says at which port a
// connection came.
func altSvc(l *ir.Listener, p *model.Proxy) int {
	if !p.HTTP3 || l.ProxyProtocol != nil || len(p.MorePorts()) > 0 {
		return 0
	}
	return cmp.Or(p.AltSvcPort, p.HTTPSPort)
}

// NoHTTP3 says why a proxy does not serve HTTP/3 although it should, or not with all certificates.
func NoHTTP3(t *model.ProxyTree, certificates []ir.Certificate) []model.Condition {
	if !t.Proxy.HTTP3 {
		return nil
	}
	secrets := map[string]bool{}
	for _, c := range certificates {
		secrets[c.Pair.Secret] = true
	}
	c := model.Condition{Key: t.Proxy.Key(), Code: model.NoHTTP3}
	var l ir.Listener
	addProxyProtocol(&l, t, Settings{}, ir.Needs{})
	switch {
	case l.ProxyProtocol != nil:
		c.Message = "HTTP/3 is not served: the proxy reads the PROXY protocol, which QUIC does not have; " +
			"set Http3=false, or remove the global config of type " + model.GlobalConfigProxyProtocol
	case len(t.Proxy.MorePorts()) > 0:
		c.Message = "HTTP/3 is not served: the proxy has several ports for requests, which routes cannot distinguish over QUIC"
	case len(secrets) > MaxHTTP3Certificates:
		c.Message = fmt.Sprintf("HTTP/3 is served with the certificates of the first %d secrets by name, and not with those of %d more: "+
			"use certificates for several names, or spread the services over several proxies",
			MaxHTTP3Certificates, len(secrets)-MaxHTTP3Certificates)
	default:
		return nil
	}
	return []model.Condition{c}
}

// Opener opens a text that was sealed for a place. A nil Opener opens nothing.
type Opener func(sealed, place string) (string, error)

// Pairs returns the certificates of a service with their keys, the one that is valid
// longest first. It omits a secret whose key cannot be opened: the store reports it.
func Pairs(t *model.ServiceTree, open Opener) []*ir.Pair {
	var pairs []*ir.Pair
	for _, s := range t.Secrets {
		if s.Cert == "" || s.PrivateKey == "" || open == nil {
			continue
		}
		if p, err := pairOf(s, open); err == nil {
			pairs = append(pairs, p)
		}
	}
	slices.SortStableFunc(pairs, func(a, b *ir.Pair) int { return b.NotAfter.Compare(a.NotAfter) })
	return pairs
}

func pairOf(s *model.Secret, open Opener) (*ir.Pair, error) {
	key, err := s.OpenKey(open)
	if err != nil {
		return nil, err
	}
	leaf, err := tls.X509KeyPair([]byte(s.Cert), []byte(key))
	if err != nil {
		return nil, fmt.Errorf("secret %q: %w", s.Name, err)
	}
	return &ir.Pair{
		Secret: s.Name, Chain: s.Cert, Key: key, Names: s.HostNames(leaf.Leaf),
		RSA: leaf.Leaf.PublicKeyAlgorithm == x509.RSA, NotAfter: leaf.Leaf.NotAfter,
	}, nil
}

// addTLS adds the certificates of a service to its host. ClosedHost closes a service that
// verifies clients if the authority does not exist.
func addTLS(h *ir.Host, s *model.Service, pairs []*ir.Pair) {
	for _, name := range namesOf(h.Domain, pairs) {
		for _, p := range pairsFor(name, pairs) {
			h.Certificates = append(h.Certificates, ir.Certificate{Name: name, Pair: p})
		}
	}
	h.ClientCA = s.ClientCACertificate
	if s.HSTSSeconds != 0 {
		h.HSTS = fmt.Sprintf("max-age=%d", s.HSTSSeconds)
		if s.HSTSSubdomains {
			h.HSTS += "; includeSubDomains"
		}
	}
}

// Rank orders services that have a certificate for the same name: the certificate of the
// service with the most exact host is served. Lower comes first.
func Rank(domain string) int {
	switch {
	case domain == "*":
		return 1 << 10
	case strings.HasPrefix(domain, "*."):
		return 1<<10 - len(domain)
	}
	return 0
}

// namesOf returns the names that clients may request under a domain, sorted.
func namesOf(domain string, pairs []*ir.Pair) []string {
	_, notIP := netip.ParseAddr(strings.Trim(domain, "[]"))
	switch {
	case notIP == nil:
		return []string{""} // then clients send no host name (RFC 6066 section 3)
	case domain != "*" && !strings.HasPrefix(domain, "*."):
		return []string{domain}
	}
	var names []string
	if domain == "*" {
		names = []string{""}
	}
	for _, p := range pairs {
		for _, name := range p.Names {
			if domain == "*" || strings.HasSuffix(name, domain[1:]) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// pairsFor returns the pairs for a name: first those with the name itself, then those with
// a wildcard for it. The first one is served.
func pairsFor(name string, pairs []*ir.Pair) []*ir.Pair {
	if name == "" {
		return pairs
	}
	_, parent, _ := strings.Cut(name, ".")
	var list []*ir.Pair
	for _, wanted := range []string{name, "*." + parent} {
		for _, p := range pairs {
			if slices.Contains(p.Names, wanted) && !slices.Contains(list, p) {
				list = append(list, p)
			}
		}
	}
	return list
}

// tlsNeeds returns what a host needs from the HTTPS listener. A host needs a chain if it
// requires client certificates, or if it has both RSA and elliptic-curve certificates.
func tlsNeeds(h *ir.Host, clientCA *model.Secret, pairs []*ir.Pair) ir.Needs {
	needs := ir.Needs{HTTPS: len(h.Certificates) > 0}
	chain := ir.TLSChain{Name: "lookup", ServerNames: []string{h.Domain}}
	if both := bothKinds(h.Domain, pairs); both != nil {
		// A chain must not include pairs of other services: Envoy would serve the first
		// pair of all if a name does not match in its letter case.
		chain.Name, chain.Pairs = "pairs", both
		for _, p := range both {
			chain.Name += " " + p.Secret
		}
	}
	// This applies even without a certificate: another service's certificate may be for
	// the same name.
	if ca := clientCA; ca != nil {
		chain.ClientCA = &ir.Authorities{Secret: ca.Name, PEM: ca.Cert}
		chain.Name += " client " + ca.Name
	}
	if chain.ClientCA != nil || chain.Pairs != nil {
		needs.Chains = []ir.TLSChain{chain}
	}
	return needs
}

// bothKinds returns the pairs for a domain, sorted by secret, if they include both RSA and
// elliptic-curve keys; nil otherwise.
func bothKinds(domain string, pairs []*ir.Pair) []*ir.Pair {
	if domain == "*" {
		return nil // no name would distinguish its connections from others
	}
	kinds := map[bool]bool{}
	var both []*ir.Pair
	for _, p := range pairs {
		if len(pairsFor(domain, []*ir.Pair{p})) > 0 {
			kinds[p.RSA] = true
			both = append(both, p)
		}
	}
	if len(kinds) < 2 {
		return nil
	}
	slices.SortFunc(both, func(a, b *ir.Pair) int { return cmp.Compare(a.Secret, b.Secret) })
	return both
}

// ChallengeRoutes returns the route that answers an authority while it verifies that the host of a service is the
// gateway's. It comes before all others, and no filter applies to it.
func ChallengeRoutes(t *model.ServiceTree) []*ir.Route {
	if t == nil || t.Automatic == nil || t.Automatic.Challenge == nil {
		return nil
	}
	return []*ir.Route{{
		Name: "acme-challenge", Bare: true,
		Match: ir.Match{
			PathKind: ir.PathExact, Path: model.ChallengePath + t.Automatic.Challenge.Token, Methods: []string{http.MethodGet, http.MethodHead},
		},
		Respond: &ir.Respond{Status: http.StatusOK, Body: t.Automatic.Challenge.Answer},
	}}
}

// PlainRoutes returns the routes that come before all others of a service, for its
// requests over plain HTTP on a proxy.
func PlainRoutes(s *model.Service, p *model.Proxy) []*ir.Route {
	plain := func(name string, conditions ...ir.ValueMatch) *ir.Route {
		// These answer before a login, whose cookies need HTTPS.
		return &ir.Route{Name: name, Public: true, Unruled: true, Match: ir.Match{
			PathKind: ir.PathPrefix, Path: "/", Headers: append([]ir.ValueMatch{{Name: ":scheme", Exact: "http"}}, conditions...),
		}}
	}
	if s.HTTPS == model.HTTPSOnly {
		refused := plain("https-only")
		refused.Respond = &ir.Respond{Status: http.StatusForbidden, Body: "this host is served over HTTPS only\n"}
		return []*ir.Route{refused}
	}
	if s.HTTPS != model.HTTPSRedirect {
		return nil
	}
	var list []*ir.Route
	// A request with our own port is redirected to our HTTPS port. Otherwise a proxy in
	// front maps the ports and serves HTTPS on the default one.
	direct := ir.ValueMatch{Name: ":authority", Regex: ".*:" + strconv.Itoa(p.HTTPPort)}
	reads := ir.ValueMatch{Name: ":method", Regex: "GET|HEAD"}
	for _, variant := range []struct {
		conditions []ir.ValueMatch
		redirect   ir.Redirect
	}{
		// 308 keeps the method and body; older clients understand only 301.
		{[]ir.ValueMatch{direct, reads}, ir.Redirect{Status: http.StatusMovedPermanently, Scheme: "https", Port: p.HTTPSPort}},
		{[]ir.ValueMatch{direct}, ir.Redirect{Status: http.StatusPermanentRedirect, Scheme: "https", Port: p.HTTPSPort}},
		{[]ir.ValueMatch{reads}, ir.Redirect{Status: http.StatusMovedPermanently, Scheme: "https"}},
		{nil, ir.Redirect{Status: http.StatusPermanentRedirect, Scheme: "https"}},
	} {
		r := plain("https-redirect", variant.conditions...)
		r.Redirect, r.Unverified = &variant.redirect, true
		list = append(list, r)
	}
	return list
}
