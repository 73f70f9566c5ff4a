package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	matchingv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/matching/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// These are the kinds of a domain, in the order in which they win.
const (
	exact   = "exact"
	suffix  = "suffix"
	prefix  = "prefix"
	anyHost = "any"
)

const (
	// hostFilter refuses a request without one clear host, or with an ambiguous
	// path.
	hostFilter = "envoy.filters.http.rbac/host"
	// dotSegment is the policy in its refusals of paths.
	dotSegment = "dot_segment"
)

// readHost reads the host as it is sent to the upstream.
func (a *Answer) readHost(h headers, l *hcmv3.HttpConnectionManager) {
	host := h.get(authority)
	if plain := withoutDot(host); l.GetStripTrailingHostDot() && plain != host {
		a.step("host", fmt.Sprintf("host %q is read as %q", host, plain))
		host = plain
		h[authority] = []string{host}
	}
	a.Request.Host = host
}

// withoutDot removes one trailing dot, which may be before a port
// (HeaderUtility::stripTrailingHostDot).
func withoutDot(host string) string {
	i := strings.LastIndexByte(host, '.')
	if i >= 0 && (i == len(host)-1 || host[i+1] == ':') {
		return host[:i] + host[i+1:]
	}
	return host
}

// passHost reports whether the request passes the filter that checks the host,
// which comes before everything about routes.
func (a *Answer) passHost(s subject, l *hcmv3.HttpConnectionManager) (bool, error) {
	rules, err := hostRules(l)
	if err != nil {
		return false, err
	}
	badPath := false // the answer to a request whose Host is bad too is about the Host
	for _, name := range slices.Sorted(maps.Keys(rules.GetPolicies())) {
		policy := rules.GetPolicies()[name]
		if policy.GetCondition() != nil { // see isMisdirected
			continue
		}
		for _, principal := range policy.GetPrincipals() {
			if part := principal.GetUrlPath().GetPath().GetContains(); part != "" {
				badPath = badPath || strings.Contains(s.path, part)
				continue
			}
			c, err := s.checkHeader(principal.GetHeader())
			if err != nil {
				return false, err
			}
			if c.Holds {
				a.endWith(BadRequest, http.StatusBadRequest, "refused",
					fmt.Sprintf("the Host %q is not a single host name or address, optionally with a port", a.Request.Host))
				return false, nil
			}
		}
	}
	if badPath {
		return false, a.endRefused(l, dotSegment, BadRequest, fmt.Sprintf("the path %s has a dot segment with parameters, which only some backends would resolve", s.path))
	}
	if _, wanted := s.headers.upgrade(); wanted {
		return true, nil // no filter runs before the upgrade is allowed
	}
	refused, err := s.isMisdirected(l)
	if err != nil || !refused {
		return err == nil, err
	}
	return false, a.endMisdirected(s, l)
}

// rulesOf returns the rules of a filter that refuses requests. They may be in a filter that skips them for some of the
// requests that they let pass.
func rulesOf(f *hcmv3.HttpFilter) (*rbacconfigv3.RBAC, error) {
	var quick matchingv3.ExtensionWithMatcher
	packed := f.GetTypedConfig()
	if packed.UnmarshalTo(&quick) == nil {
		packed = quick.GetExtensionConfig().GetTypedConfig()
	}
	var rules rbacv3.RBAC
	if err := packed.UnmarshalTo(&rules); err != nil {
		return nil, fmt.Errorf("decoding filter %q: %w", f.GetName(), err)
	}
	if rules.GetRules().GetAction() != rbacconfigv3.RBAC_DENY {
		return nil, fmt.Errorf("explaining filter %q: action %s is not known", f.GetName(), rules.GetRules().GetAction())
	}
	return rules.GetRules(), nil
}

// candidate is a host whose domain matches.
type candidate struct {
	host   *snapshot.Host
	domain string
	kind   string
}

// bareHost returns the host as it is compared with domains: in lower case and
// without a port.
func bareHost(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.LastIndexByte(host, ']') < i {
		host = host[:i]
	}
	return seam.LowerASCII(host)
}

// findHosts returns the hosts that match, the best first: an exact domain, then
// the longest *.suffix, then the longest prefix.*, then *
// (RouteMatcher::findVirtualHost).
func findHosts(hosts []*snapshot.Host, name string) []candidate {
	var list []candidate
	for _, h := range hosts {
		for _, domain := range h.Domains {
			if kind := matchDomain(seam.LowerASCII(domain), name); kind != "" {
				list = append(list, candidate{h, domain, kind})
			}
		}
	}
	order := []string{exact, suffix, prefix, anyHost}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(slices.Index(order, a.kind), slices.Index(order, b.kind)),
			cmp.Compare(len(b.domain), len(a.domain)),
		)
	})
	return list
}

// matchDomain returns how a domain matches, or "". The star matches at least
// one character.
func matchDomain(domain, name string) string {
	switch {
	case domain == "*":
		return anyHost
	case domain == name:
		return exact
	case len(domain) > len(name):
		return ""
	case strings.HasPrefix(domain, "*") && strings.HasSuffix(name, domain[1:]):
		return suffix
	case strings.HasSuffix(domain, "*") && !strings.HasPrefix(domain, "*") && strings.HasPrefix(name, domain[:len(domain)-1]):
		return prefix
	}
	return ""
}

// describeHosts lists the services that were considered.
func (a *Answer) describeHosts(list []candidate) {
	for i, c := range list {
		h := Host{Service: c.host.Name, Domain: c.domain, Kind: c.kind, Chosen: i == 0}
		if h.Message = "is the best match and takes the request"; i > 0 {
			h.Message = fmt.Sprintf("matches too, but %s %s wins, and no other service is tried", list[0].kind, list[0].domain)
		}
		a.Hosts = append(a.Hosts, h)
	}
}

// noHost describes the existing hosts when none matches.
func noHost(hosts []*snapshot.Host, name string) string {
	var domains []string
	for _, h := range hosts {
		domains = append(domains, h.Domains...)
	}
	message := fmt.Sprintf("no service of the proxy has host %q", name)
	switch best, near := suggest.Nearest(name, domains); {
	case len(domains) == 0:
		message += "; it serves none at all"
	case near:
		message += "; the nearest is " + best
	}
	return message
}
