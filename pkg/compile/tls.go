package compile

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// HTTPSListener is where the proxy accepts HTTPS; nil while no service has a
// certificate. names are the hosts without a chain of their own that a wildcard of
// a chain would take.
func HTTPSListener(t *model.ProxyTree, s Settings, needs ir.Needs, names []string) *ir.Listener {
	if !needs.HTTPS {
		return nil
	}
	l := Listener(t, s, needs)
	l.Port = t.Proxy.HTTPSPort
	l.TLS = &ir.TLS{MinVersion: t.Proxy.TLSMinVersion, Chains: needs.Chains}
	if len(names) > 0 {
		l.TLS.Chains = append([]ir.TLSChain{{Name: "named", ServerNames: names}}, needs.Chains...)
	}
	return &l
}

// Opener opens a sealed text that was sealed for a place. Nil opens nothing.
type Opener func(sealed, place string) (string, error)

// Pairs are the secrets of a service that are pairs, the one that is valid for longest
// first. A secret whose key does not open is left out: the store says so.
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

// addTLS adds the certificates of a service to its host. A service whose clients need
// a certificate of an authority that is not there is closed by ClosedHost.
func addTLS(h *ir.Host, s *model.Service, pairs []*ir.Pair) {
	for _, name := range namesOf(h.Domain, pairs) {
		for _, p := range pairsFor(name, pairs) {
			h.Certificates = append(h.Certificates, ir.Certificate{Name: name, Pair: p})
		}
	}
	h.ClientCA = s.ClientCACertificate
	h.HSTSSeconds = s.HSTSSeconds
}

// Rank says whose certificate is shown for a name that several services have one for:
// that of the service with the most exact host. Lower comes first.
func Rank(domain string) int {
	switch {
	case domain == "*":
		return 1 << 10
	case strings.HasPrefix(domain, "*."):
		return 1<<10 - len(domain)
	}
	return 0
}

// namesOf are the names that clients may ask for under a domain, sorted.
func namesOf(domain string, pairs []*ir.Pair) []string {
	_, notIP := netip.ParseAddr(strings.Trim(domain, "[]"))
	switch {
	case notIP == nil:
		return []string{""} // a client names no host then (RFC 6066 section 3)
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

// pairsFor are the pairs for a name, those with the name itself before those with a
// wildcard for it. The first is shown.
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

// tlsNeeds is what a host needs of the HTTPS listener. A host needs a chain if
// clients have to show a certificate, or if it has certificates for clients of
// different abilities.
func tlsNeeds(h *ir.Host, clientCA *model.Secret, pairs []*ir.Pair) ir.Needs {
	needs := ir.Needs{HTTPS: len(h.Certificates) > 0}
	chain := ir.TLSChain{Name: "lookup", ServerNames: []string{h.Domain}}
	if both := bothKinds(h.Domain, pairs); both != nil {
		// With pairs of other services beside them, an Envoy that finds none for a name in
		// its letter case would show the first of all.
		chain.Name, chain.Pairs = "pairs", both
		for _, p := range both {
			chain.Name += " " + p.Secret
		}
	}
	// Without a certificate of its own, too: that of another service may be for its name.
	if ca := clientCA; ca != nil {
		chain.ClientCA = &ir.Authorities{Secret: ca.Name, PEM: ca.Cert}
		chain.Name += " client " + ca.Name
	}
	if chain.ClientCA != nil || chain.Pairs != nil {
		needs.Chains = []ir.TLSChain{chain}
	}
	return needs
}

// bothKinds are the pairs for a domain if they are of both kinds, RSA and elliptic
// curves, sorted by secret; nil if not.
func bothKinds(domain string, pairs []*ir.Pair) []*ir.Pair {
	if domain == "*" {
		return nil // by which name would its connections be told from others?
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

// PlainRoutes are the routes that come before all others of a service, for its
// requests over plain HTTP on a proxy.
func PlainRoutes(s *model.Service, p *model.Proxy) []*ir.Route {
	plain := func(name string, conditions ...ir.ValueMatch) *ir.Route {
		// Who comes over plain HTTP is told so before a login, whose cookies need HTTPS.
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
	// A request that names our own port is told the other one; else there is
	// something in front that knows the ports, and has HTTPS on the usual one.
	direct := ir.ValueMatch{Name: ":authority", Regex: ".*:" + strconv.Itoa(p.HTTPPort)}
	reads := ir.ValueMatch{Name: ":method", Regex: "GET|HEAD"}
	for _, variant := range []struct {
		conditions []ir.ValueMatch
		redirect   ir.Redirect
	}{
		// 308 keeps method and body; 301 is what older clients know.
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
