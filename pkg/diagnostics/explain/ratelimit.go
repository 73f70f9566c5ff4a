package explain

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	exprv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rate_limit_descriptors/expr/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	rateLimitFilter = "envoy.filters.http.ratelimit"
	// claimLimitFilter counts by claims and API clients. It comes after all filters that
	// identify the client.
	claimLimitFilter = "envoy.filters.http.ratelimit_claims"
	// urlPath is the only expression in descriptors.
	urlPath = "request.url_path"
)

// Descriptor is what Envoy sends to the rate-limit engine.
type Descriptor struct {
	// Domain is the engine's name of the domain, "<id>/<name>", or the name alone if the
	// proxy does not have the domain (Unknown).
	Domain  string `json:"domain"`
	Unknown bool   `json:"-"`
	// Sent is false if the request lacks a part, which Message names. This descriptor
	// then limits nothing.
	Sent    bool    `json:"sent"`
	Message string  `json:"message"`
	Entries []Entry `json:"entries"`
	// Limit is the limit that it meets; nil means none, or unknown.
	Limit *Limit `json:"limit,omitempty"`
}

// Limit is a rate that descriptors meet.
type Limit struct {
	// Limit is its path, such as "generic_key=shop > remote_address".
	Limit string `json:"limit"`
	// Unit is second, minute and so on; empty if Unlimited.
	Unit            string `json:"unit,omitempty"`
	RequestsPerUnit uint32 `json:"requests_per_unit"`
	// Unlimited allows all requests. Shadow counts and never limits.
	Unlimited bool `json:"unlimited"`
	Shadow    bool `json:"shadow"`
}

// Entry is one part of a descriptor.
type Entry struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// isRateLimit reports whether a filter asks the rate-limit engine. Each domain has its
// own filter.
func isRateLimit(name string) bool {
	return name == rateLimitFilter || strings.HasPrefix(name, rateLimitFilter+"/") ||
		name == claimLimitFilter || strings.HasPrefix(name, claimLimitFilter+"/")
}

// describeAbsentDomains lists the domains that the route names and the listener does not
// have.
func (a *Answer) describeAbsentDomains(s subject, l *hcmv3.HttpConnectionManager, r *routev3.Route) error {
	has := func(name string) bool {
		return slices.ContainsFunc(l.GetHttpFilters(), func(f *hcmv3.HttpFilter) bool { return f.GetName() == name })
	}
	for _, name := range slices.Sorted(maps.Keys(r.GetTypedPerFilterConfig())) {
		if has(name) || !isRateLimit(name) {
			continue
		}
		f := Filter{Name: name}
		domain := strings.TrimPrefix(strings.TrimPrefix(strings.TrimPrefix(name, claimLimitFilter), rateLimitFilter), "/")
		why := "no rates of domain " + domain + " apply to the proxy"
		if !has(rateLimitFilter) {
			why = "there is no rate-limit engine"
		}
		if err := f.limitNothing(s, r, domain, why); err != nil {
			return err
		}
		a.Filters = append(a.Filters, f)
	}
	return nil
}

// limitNothing lists the descriptors of a route in a domain for which the engine is not asked.
func (f *Filter) limitNothing(s subject, r *routev3.Route, domain, why string) error {
	limits, err := rateLimits(f.Name, r)
	if err != nil {
		return err
	}
	for _, limit := range limits {
		d, err := s.descriptor(limit.GetActions())
		if err != nil {
			return fmt.Errorf("explaining the rate limits of route %q: %w", r.GetName(), err)
		}
		d.Domain, d.Unknown = domain, true
		if d.Sent {
			d.Sent, d.Message = false, d.Message+" is not sent: "+why
		}
		f.Descriptors = append(f.Descriptors, d)
	}
	f.Message = "limits nothing: " + why
	return nil
}

// rateLimits returns the rate limits of a route for a filter.
func rateLimits(filter string, r *routev3.Route) ([]*routev3.RateLimit, error) {
	var route ratelimitv3.RateLimitPerRoute
	if config := r.GetTypedPerFilterConfig()[filter]; config != nil {
		if err := config.UnmarshalTo(&route); err != nil {
			return nil, fmt.Errorf("decoding the rate limits of route %q: %w", r.GetName(), err)
		}
	}
	return route.GetRateLimits(), nil
}

// rateLimit returns the configuration of a filter. That of the proxy's own domain is delivered on its own.
func (s State) rateLimit(on *hcmv3.HttpFilter) (*ratelimitv3.RateLimit, error) {
	out := &ratelimitv3.RateLimit{}
	if has, err := s.discovered(on.GetName(), out); has || err != nil {
		return out, err
	}
	packed := on.GetTypedConfig()
	if discovery := on.GetConfigDiscovery(); discovery != nil {
		packed = discovery.GetDefaultConfig()
	}
	if err := packed.UnmarshalTo(out); err != nil {
		return nil, fmt.Errorf("decoding the rate-limit filter: %w", err)
	}
	return out, nil
}

// describeRateLimits lists the descriptors that the rate-limit engine receives.
func (f *Filter) describeRateLimits(p passed) error {
	listener, err := p.have.rateLimit(p.on)
	if err != nil {
		return err
	}
	limits, err := rateLimits(f.Name, p.route)
	switch {
	case err != nil:
		return err
	case p.route.GetRoute() == nil:
		f.Message = "limits nothing: the gateway answers by itself"
		return nil
	}
	if f.Message = uncounted(p, limits); f.Message != "" {
		return nil
	}
	domain := listener.GetDomain()
	if listener.GetFilterEnabled() != nil { // it is never on for a part of the requests
		return f.limitNothing(p.request, p.route, "", "no rates apply to the proxy")
	}
	sent := 0
	for _, limit := range limits {
		d, err := p.request.descriptor(limit.GetActions())
		if err != nil {
			return fmt.Errorf("explaining the rate limits of route %q: %w", p.route.GetName(), err)
		}
		if d.Domain = domain; d.Sent {
			sent++
		}
		f.Descriptors = append(f.Descriptors, d)
	}
	f.Message = fmt.Sprintf("checks %d of %d descriptors in domain %s", sent, len(f.Descriptors), domain)
	return f.findLimits(p.have, domain)
}

// findLimits adds the limits that the descriptors meet.
func (f *Filter) findLimits(have State, domain string) error {
	if have.Limits == nil {
		return nil
	}
	var sent []*Descriptor
	var entries [][]Entry
	for i := range f.Descriptors {
		if d := &f.Descriptors[i]; len(d.Entries) > 0 {
			sent, entries = append(sent, d), append(entries, d.Entries)
		}
	}
	limits, err := have.Limits(domain, entries)
	if err != nil {
		return fmt.Errorf("finding the limits of domain %q: %w", domain, err)
	}
	for i, d := range sent {
		if d.Limit = limits[i]; d.Limit == nil {
			d.Message += " meets no rate"
			continue
		}
		d.Message += " meets " + d.Limit.Limit + ": " + d.Limit.rate()
	}
	return nil
}

// rate describes the limit.
func (l *Limit) rate() string {
	text := fmt.Sprintf("%d each %s", l.RequestsPerUnit, l.Unit)
	if l.Unlimited {
		text = "no limit"
	}
	if l.Shadow {
		text += ", counted only"
	}
	return text
}

func (s subject) descriptor(actions []*routev3.RateLimit_Action) (Descriptor, error) {
	d := Descriptor{Sent: true, Entries: []Entry{}}
	for _, action := range actions {
		e, missing, err := s.entry(action)
		switch {
		case err != nil:
			return d, err
		case missing == "":
			d.Entries = append(d.Entries, e)
		case !skipsIfAbsent(action):
			return Descriptor{Message: "is not sent: " + missing, Entries: []Entry{}}, nil
		}
	}
	if len(d.Entries) == 0 {
		return Descriptor{Message: "is empty", Entries: d.Entries}, nil
	}
	parts := make([]string, len(d.Entries))
	for i, e := range d.Entries {
		parts[i] = e.Key + "=" + e.Value
	}
	d.Message = strings.Join(parts, " > ")
	return d, nil
}

// skipsIfAbsent reports whether the descriptor omits a missing part.
func skipsIfAbsent(action *routev3.RateLimit_Action) bool {
	return action.GetRequestHeaders().GetSkipIfAbsent() || action.GetQueryParameters().GetSkipIfAbsent()
}

// entry returns what an action sends for the request. If it sends nothing, missing is the
// reason.
func (s subject) entry(action *routev3.RateLimit_Action) (e Entry, missing string, err error) {
	switch a := action.GetActionSpecifier().(type) {
	case *routev3.RateLimit_Action_RemoteAddress_:
		return Entry{sentKey("remote_address", ""), s.client}, "", nil
	case *routev3.RateLimit_Action_MaskedRemoteAddress_:
		network, err := maskAddress(s.client, a.MaskedRemoteAddress)
		return Entry{sentKey("masked_remote_address", ""), network}, "", err
	case *routev3.RateLimit_Action_GenericKey_:
		return Entry{sentKey("generic_key", a.GenericKey.GetDescriptorKey()), a.GenericKey.GetDescriptorValue()}, "", nil
	case *routev3.RateLimit_Action_RequestHeaders_:
		name := seam.LowerASCII(a.RequestHeaders.GetHeaderName())
		if name == "host" {
			name = authority
		}
		values, there := s.headers[name]
		if !there {
			return e, "header " + name + " is missing", nil
		}
		return Entry{a.RequestHeaders.GetDescriptorKey(), values[0]}, "", nil
	case *routev3.RateLimit_Action_QueryParameters_:
		name := a.QueryParameters.GetQueryParameterName()
		value, there := decodeParameter(s.query, name)
		if !there {
			return e, "query parameter " + name + " is missing", nil
		}
		return Entry{a.QueryParameters.GetDescriptorKey(), value}, "", nil
	case *routev3.RateLimit_Action_Metadata:
		value, missing, err := s.metadata(a.Metadata.GetMetadataKey())
		return Entry{a.Metadata.GetDescriptorKey(), value}, missing, err
	case *routev3.RateLimit_Action_HeaderValueMatch_:
		return s.headerMatch(a.HeaderValueMatch)
	case *routev3.RateLimit_Action_Extension:
		var d exprv3.Descriptor
		if err := a.Extension.GetTypedConfig().UnmarshalTo(&d); err != nil {
			return e, "", fmt.Errorf("reading action %q: %w", a.Extension.GetName(), err)
		}
		if d.GetText() != urlPath {
			return e, "", fmt.Errorf("expression %q is not known", d.GetText())
		}
		return Entry{d.GetDescriptorKey(), s.path}, "", nil
	default:
		return e, "", fmt.Errorf("action %T is not known", a)
	}
}

func (s subject) headerMatch(m *routev3.RateLimit_Action_HeaderValueMatch) (e Entry, missing string, err error) {
	var checks []Check
	for _, h := range m.GetHeaders() {
		c, err := s.checkHeader(h)
		if err != nil {
			return e, "", err
		}
		checks = append(checks, c)
	}
	wanted := m.GetExpectMatch() == nil || m.GetExpectMatch().GetValue()
	failed := slices.IndexFunc(checks, func(c Check) bool { return !c.Holds })
	switch {
	case wanted && failed >= 0:
		return e, checks[failed].Message, nil
	case !wanted && failed < 0:
		return e, "all conditions on headers hold", nil
	}
	return Entry{sentKey("header_value_match", m.GetDescriptorKey()), m.GetDescriptorValue()}, "", nil
}

// sentKey returns the key that Envoy sends for an action.
func sentKey(kind, key string) string { return model.RateLimitEntry{Kind: kind, Key: key}.SentKey() }

// maskAddress returns the network of an address.
func maskAddress(address string, m *routev3.RateLimit_Action_MaskedRemoteAddress) (string, error) {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return "", fmt.Errorf("reading the address of the client: %w", err)
	}
	bits := 128
	mask := m.GetV6PrefixMaskLen()
	if addr.Is4() {
		bits, mask = 32, m.GetV4PrefixMaskLen()
	}
	if mask != nil {
		bits = int(mask.GetValue())
	}
	network, err := addr.Prefix(bits)
	if err != nil {
		return "", fmt.Errorf("masking the address of the client: %w", err)
	}
	return network.String(), nil
}

// decodeParameter returns the first value of a query parameter, percent-decoded. Rate
// limits decode it; the conditions of a route do not.
func decodeParameter(query, name string) (value string, there bool) {
	for pair := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		if n, v, _ := strings.Cut(pair, "="); pair != "" && decodeEscapes(n) == name {
			return decodeEscapes(v), true
		}
	}
	return "", false
}

// decodeEscapes decodes percent escapes. Invalid escapes stay unchanged.
func decodeEscapes(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if v, ok := hexValue(s[i+1 : i+3]); ok {
				b.WriteByte(v)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}
