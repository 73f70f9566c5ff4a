package credential

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// tellExempt tells that a route does not need its service's login.
func tellExempt(r seam.Request) {
	if r.VirtualHost.GetTypedPerFilterConfig()[oauth2Filter] == nil {
		return
	}
	why := "is public"
	for _, name := range []string{seam.TokenFilter, basicAuthFilter} {
		if r.Route.GetTypedPerFilterConfig()[name] != nil && r.Passes(name) {
			why = "decides itself which requests are allowed"
		}
	}
	by := loginName(r.VirtualHost)
	r.Step("login", fmt.Sprintf("route %s %s: %s requires no login there", r.Route.GetName(), why, by))
}

// askForLogin does what a host's login does with a request (OAuth2Filter::decodeHeaders).
func askForLogin(r seam.Request) (*seam.Refusal, error) {
	by := loginName(r.VirtualHost)
	message, err := seam.MessageOf(oauth2Filter, r, &oauth2v3.OAuth2PerRoute{})
	if err != nil {
		return nil, err
	}
	c := message.GetConfig()
	host := r.Header(seam.Authority)
	// Envoy removes the query before it compares the path.
	switch path := r.Path; {
	case path == exactPathOf(c.GetSignoutPath()):
		to := "the site's /"
		if c.GetEndSessionEndpoint() != "" {
			to = "the identity provider (" + withoutQuery(c.GetEndSessionEndpoint()) + "), which signs out too"
		}
		return &seam.Refusal{
			Code: "signed_out", Status: http.StatusFound, Direct: true, Step: "login",
			Message: fmt.Sprintf("%s signs the browser out at %s: its cookies are deleted, and it is sent to %s", by, path, to),
		}, nil
	case hasSession(r, c):
		r.Step("login", fmt.Sprintf("the request has a session cookie of %s, whose validity only Envoy knows; the next "+
			"steps assume a valid session, and without one the browser is sent to log in", by))
		return nil, nil
	case path == exactPathOf(c.GetRedirectPathMatcher()):
		return &seam.Refusal{
			Code: "login_callback", Status: http.StatusUnauthorized, Step: "login",
			Message: fmt.Sprintf("%s is the path to which the identity provider sends browsers back, for %s: with a code and "+
				"the cookies of that login the browser is sent on to the page that it requested, otherwise it gets 401", path, by),
		}, nil
	}
	refused := func(why string) (*seam.Refusal, error) {
		return &seam.Refusal{
			Code: "login_refused", Status: http.StatusUnauthorized, Step: "login",
			Message: by + " requires a login, and " + why,
		}, nil
	}
	for _, m := range c.GetDenyRedirectMatcher() {
		holds, told, err := r.CheckHeader(m)
		if err != nil {
			return nil, err
		}
		if holds {
			return refused("the request has no session. It gets 401 in place of a redirect to the login, because it is not a " +
				"browser that opens a page: " + told)
		}
	}
	if !isAmong(host, c.GetAllowedRedirectDomains()) {
		return refused(fmt.Sprintf("sends no browser back to the Host %q afterwards: the Host is not among %s (a wildcard "+
			"allows lower case only, and no empty port)", host, strings.Join(c.GetAllowedRedirectDomains(), ", ")))
	}
	to := withoutQuery(c.GetAuthorizationEndpoint())
	return &seam.Refusal{
		Code: "login_required", Status: http.StatusFound, Direct: true, Location: to, Step: "login",
		Message: fmt.Sprintf("%s requires a login, and the request has no session: the browser is sent to %s", by, to),
	}, nil
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
	name := seam.Said(vh.GetMetadata(), "login").GetStringValue()
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
func hasSession(r seam.Request, c *oauth2v3.OAuth2Config) bool {
	names := c.GetCredentials().GetCookieNames()
	there := map[string]bool{}
	for _, header := range r.Headers["cookie"] {
		for pair := range strings.SplitSeq(header, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(pair), "=")
			there[name] = there[name] || value != ""
		}
	}
	return there[names.GetOauthHmac()] && there[names.GetOauthExpires()]
}

func describeLogin(r seam.Request) (string, error) {
	message, err := seam.MessageOf(oauth2Filter, r, &oauth2v3.OAuth2PerRoute{})
	if err != nil {
		return "", err
	}
	c := message.GetConfig()
	where := withoutQuery(c.GetAuthorizationEndpoint())
	if u, err := url.Parse(where); err == nil {
		where = u.Host
	}
	does := fmt.Sprintf("requires a session of %s, from a login at %s; callback %s", loginName(r.VirtualHost), where,
		exactPathOf(c.GetRedirectPathMatcher()))
	if path := exactPathOf(c.GetSignoutPath()); path != "/ " {
		does += ", sign-out " + path
	}
	ofHost, ofRoute := r.VirtualHost.GetTypedPerFilterConfig(), r.Route.GetTypedPerFilterConfig()
	if ofHost[seam.TokenFilter] == nil && ofRoute[seam.TokenFilter] == nil {
		does += ". The id_token is not verified"
	}
	return does, nil
}

func describeSpoofed(r seam.Request) (string, error) {
	removed, err := seam.RemovedHeaders(spoofFilter, r)
	return "removes headers that only the gateway may set: " + strings.Join(removed, ", "), err
}

func describeCleaned(r seam.Request) (string, error) {
	message, err := seam.MessageOf(cleanFilter, r, &headermutationv3.HeaderMutationPerRoute{})
	cookies := 0
	for _, m := range message.GetMutations().GetRequestMutations() {
		if m.GetAppend().GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS {
			cookies++
		}
	}
	if cookies > 0 {
		return fmt.Sprintf("removes the gateway's own %d cookies of the login from the request to the backend", cookies), err
	}
	return "removes the gateway's own form of the API key", err
}
