package explain

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// These are the filters of a login, in their order.
const (
	spoofFilter  = "envoy.filters.http.header_mutation/in"
	oauth2Filter = "envoy.filters.http.oauth2"
	jwtFilter    = "envoy.filters.http.jwt_authn"
	claimsFilter = "envoy.filters.http.rbac/claims"
	cleanFilter  = "envoy.filters.http.header_mutation/clean"
)

// messageFor returns the message for a filter: the route's, or else the host's.
func messageFor[T proto.Message](name string, vh *routev3.VirtualHost, r *routev3.Route, into T) (T, error) {
	for _, config := range []map[string]*anypb.Any{r.GetTypedPerFilterConfig(), vh.GetTypedPerFilterConfig()} {
		if packed := config[name]; packed != nil {
			if err := packed.UnmarshalTo(into); err != nil {
				return into, fmt.Errorf("decoding filter %q: %w", name, err)
			}
			return into, nil
		}
	}
	return into, nil
}

// askForLogin does what a host's login does with a request (OAuth2Filter::decodeHeaders).
// answered is false if the request continues.
func (a *Answer) askForLogin(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (answered bool, err error) {
	on := findFilter(l, oauth2Filter)
	if on == nil || vh.GetTypedPerFilterConfig()[oauth2Filter] == nil {
		return false, nil
	}
	by := loginName(vh)
	if isOff(on, vh, r) {
		why := "is public"
		for _, name := range []string{jwtFilter, basicAuthFilter} {
			if f := findFilter(l, name); f != nil && r.GetTypedPerFilterConfig()[name] != nil && !isOff(f, vh, r) {
				why = "decides itself which requests are allowed"
			}
		}
		a.step("login", fmt.Sprintf("route %s %s: %s requires no login there", r.GetName(), why, by))
		return false, nil
	}
	message, err := messageFor(oauth2Filter, vh, r, &oauth2v3.OAuth2PerRoute{})
	if err != nil {
		return false, err
	}
	c := message.GetConfig()
	// Envoy removes the query before it compares the path.
	switch path := s.path; {
	case path == exactPathOf(c.GetSignoutPath()):
		to := "the site's /"
		if c.GetEndSessionEndpoint() != "" {
			to = "the identity provider (" + withoutQuery(c.GetEndSessionEndpoint()) + "), which signs out too"
		}
		a.endWith(SignedOut, http.StatusFound, "login", fmt.Sprintf("%s signs the browser out at %s: its cookies are deleted, and it is sent to %s", by, path, to))
		return true, nil
	case hasSession(s, c):
		a.step("login", fmt.Sprintf("the request has a session cookie of %s, whose validity only Envoy knows; the next steps assume a valid session, and without one the browser is sent to log in", by))
		return false, nil
	case path == exactPathOf(c.GetRedirectPathMatcher()):
		a.endWith(LoginCallback, http.StatusUnauthorized, "login", fmt.Sprintf(
			"%s is the path to which the identity provider sends browsers back, for %s: with a code and the cookies of that login the browser is sent on to the page that it requested, otherwise it gets 401", path, by))
		return true, nil
	}
	for _, m := range c.GetDenyRedirectMatcher() {
		check, err := s.checkHeader(m)
		if err != nil {
			return false, err
		}
		if check.Holds {
			a.endWith(LoginRefused, http.StatusUnauthorized, "login", fmt.Sprintf(
				"%s requires a login, and the request has no session. It gets 401 in place of a redirect to the login, because it is not a browser that opens a page: %s", by, check.Message))
			return true, nil
		}
	}
	if host := a.Request.Host; !isAmong(host, c.GetAllowedRedirectDomains()) {
		a.endWith(LoginRefused, http.StatusUnauthorized, "login", fmt.Sprintf(
			"%s requires a login, and sends no browser back to the Host %q afterwards: the Host is not among %s (a wildcard allows lower case only, and no empty port)",
			by, host, strings.Join(c.GetAllowedRedirectDomains(), ", ")))
		return true, nil
	}
	a.Location = withoutQuery(c.GetAuthorizationEndpoint())
	a.endWith(LoginRequired, http.StatusFound, "login", fmt.Sprintf("%s requires a login, and the request has no session: the browser is sent to %s", by, a.Location))
	return true, nil
}

// isAmong reports whether the host of a request, with or without a port, matches one of
// domains. Envoy does not fold case in wildcards.
func isAmong(host string, domains []string) bool {
	name, port, found := strings.Cut(host, ":")
	if strings.HasPrefix(host, "[") {
		name, port, found = strings.Cut(host[1:], "]")
		port = strings.TrimPrefix(port, ":")
		found = found && strings.HasSuffix(host, ":"+port)
	}
	if _, err := strconv.ParseUint(port, 10, 16); found && err != nil {
		return false
	}
	if !strings.HasPrefix(host, "[") && strings.Contains(name, "_") {
		return false // Envoy parses a URL with this host
	}
	return slices.ContainsFunc(domains, func(d string) bool {
		return strings.EqualFold(d, name) || strings.HasPrefix(d, "*.") && strings.HasSuffix(name, d[1:])
	})
}

// loginName returns the object that requires the login of a host.
func loginName(vh *routev3.VirtualHost) string {
	name := vh.GetMetadata().GetFilterMetadata()["gatehouse"].GetFields()["login"].GetStringValue()
	kind, rest, ok := strings.Cut(name, "/")
	if !ok {
		return "the login of service " + vh.GetName()
	}
	return kind + " " + rest
}

func exactPathOf(m *matcherv3.PathMatcher) string { return m.GetPath().GetExact() }

// withoutQuery removes from a URL what differs from request to request.
func withoutQuery(address string) string {
	before, _, _ := strings.Cut(address, "?")
	return before
}

// hasSession reports whether a request has the cookies of a session.
func hasSession(s subject, c *oauth2v3.OAuth2Config) bool {
	names := c.GetCredentials().GetCookieNames()
	there := map[string]bool{}
	for _, header := range s.headers["cookie"] {
		for pair := range strings.SplitSeq(header, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			there[name] = there[name] || value != ""
		}
	}
	return there[names.GetOauthHmac()] && there[names.GetOauthExpires()]
}

func (f *Filter) describeLogin(p passed) error {
	message, err := messageFor(oauth2Filter, p.vh, p.route, &oauth2v3.OAuth2PerRoute{})
	if err != nil {
		return err
	}
	c := message.GetConfig()
	where := withoutQuery(c.GetAuthorizationEndpoint())
	if u, err := url.Parse(where); err == nil {
		where = u.Host
	}
	f.Message = fmt.Sprintf("requires a session of %s, from a login at %s; callback %s", loginName(p.vh), where, exactPathOf(c.GetRedirectPathMatcher()))
	if path := exactPathOf(c.GetSignoutPath()); path != "/ " {
		f.Message += ", sign-out " + path
	}
	if isSetByHost(p, jwtFilter) {
		return nil
	}
	f.Message += ". The id_token is not verified"
	return nil
}

// isSetByHost reports whether the host or route has a message for a filter.
func isSetByHost(p passed, name string) bool {
	return p.vh.GetTypedPerFilterConfig()[name] != nil || p.route.GetTypedPerFilterConfig()[name] != nil
}

func (f *Filter) describeTokenCheck(p passed) error {
	message, err := messageFor(jwtFilter, p.vh, p.route, &jwtv3.PerRouteConfig{})
	if err != nil {
		return err
	}
	if place := tokenPlaceOf(p.vh, p.route); place != nil {
		f.Message = fmt.Sprintf("verifies the token in %s: signature, issuer, audience and expiry, as %s says. A missing or wrong token gets 401, a token for another audience 403",
			place, message.GetRequirementName())
		return nil
	}
	f.Message = fmt.Sprintf("verifies the id_token of the session: signature, issuer, audience and expiry, as %s says. A wrong id_token gets 401, an id_token for another audience 403",
		message.GetRequirementName())
	return nil
}

func (f *Filter) describeClaims(p passed) error {
	message, err := messageFor(claimsFilter, p.vh, p.route, &rbacv3.RBACPerRoute{})
	if err != nil {
		return err
	}
	of, required := "id_token", []string{}
	for name, policy := range message.GetRbac().GetRules().GetPolicies() {
		if name == claimRefused {
			of = "token"
		}
		for _, principal := range policy.GetPrincipals() {
			required = append(required, requiredClaims(principal))
		}
	}
	f.Message = "requires of the " + of + ": " + strings.Join(required, "; ") + ". Other requests get 403"
	return nil
}

// requiredClaims describes the claims of a principal, which may be negated.
func requiredClaims(p *rbacconfigv3.Principal) string {
	if not := p.GetNotId(); not != nil {
		p = not
	}
	var list []string
	for _, one := range p.GetAndIds().GetIds() {
		list = append(list, requiredClaim(one))
	}
	return strings.Join(list, "; ")
}

func requiredClaim(p *rbacconfigv3.Principal) string {
	m := p.GetSourcedMetadata().GetMetadataMatcher()
	var steps, values []string
	for _, step := range m.GetPath()[min(1, len(m.GetPath())):] {
		steps = append(steps, step.GetKey())
	}
	for _, v := range m.GetValue().GetOrMatch().GetValueMatchers() {
		if text := v.GetStringMatch().GetExact(); text != "" && !slices.Contains(values, text) {
			values = append(values, text)
		}
	}
	return strings.Join(steps, ".") + " is, or has, " + strings.Join(values, " or ")
}

func (f *Filter) describeSpoofed(p passed) error {
	removed, err := requestChanges(spoofFilter, p)
	f.Message = "removes headers that only the gateway may set: " + strings.Join(removed, ", ")
	return err
}

func (f *Filter) describeCleaned(p passed) error {
	message, err := messageFor(cleanFilter, p.vh, p.route, &headermutationv3.HeaderMutationPerRoute{})
	cookies := 0
	for _, m := range message.GetMutations().GetRequestMutations() {
		if m.GetAppend().GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS {
			cookies++
		}
	}
	if f.Message = "removes the API key from the request to the backend"; cookies > 0 {
		f.Message = fmt.Sprintf("removes the gateway's own %d cookies of the login from the request to the backend", cookies)
	}
	return err
}

// requestChanges returns the headers that a filter removes from a request, for the host and then for the route: Envoy
// applies both messages.
func requestChanges(name string, p passed) ([]string, error) {
	var names []string
	for _, of := range []passed{{vh: p.vh}, {route: p.route}} {
		message, err := messageFor(name, of.vh, of.route, &headermutationv3.HeaderMutationPerRoute{})
		if err != nil {
			return names, err
		}
		for _, m := range message.GetMutations().GetRequestMutations() {
			if name := m.GetRemove(); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}
