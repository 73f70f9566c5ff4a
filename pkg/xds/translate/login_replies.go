package translate

import (
	"html"
	"net/http"
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// details is Envoy's description of how a response came about. It contains parts of the request and of the
// identity provider's answer, so it must not leave Envoy unchanged.
const details = "response.code_details"

// begins is the condition that the details begin with one of words. Envoy bounds the size of regular
// expressions in CEL, so the alternatives do not fit in one.
func begins(words ...string) string {
	var list []string
	for _, w := range words {
		list = append(list, details+".startsWith('"+w+"')")
	}
	return strings.Join(list, " || ")
}

// notLoggedIn is the condition that a request has no session and cannot be redirected to a login.
func notLoggedIn() string {
	return begins("Unauthorized, and redirecting", "Failed to refresh the access token, and redirecting")
}

// unverified is the condition that the id_token is invalid. notAllowed is the condition that it lacks a
// claim: of all RBAC filters, only ClaimsFilter refuses without a policy.
func unverified() string { return begins("jwt_authn_access_denied") }

const notAllowed = details + " == 'rbac_access_denied_matched_policy[none]'"

// ofOthers is the condition that a response is not a login's: it is a route's, an authorization server's,
// that of a filter for keys or passwords, or an external processor's, which has no details.
func ofOthers() string {
	return begins("via_upstream", "direct_response", "ext_") + " || " + ofCredentials + " || " + details + " == ''"
}

// loginReply is what a client receives when a login stops its request.
type loginReply struct {
	// when is a CEL condition.
	when string
	// title and what are for people. problem is for programs.
	title, what, problem string
}

// loginReplyTexts returns the replies. The first one whose condition is true is used.
func loginReplyTexts() []loginReply {
	const forAdmin = " If it happens again, tell the administrator of this site the request ID."
	return []loginReply{
		{
			notLoggedIn(), "You are not logged in", "Your session has ended, or you have not logged in yet. Log in and try again.",
			"the request has no valid session, and is not one that a browser can be sent to log in with: log in with a browser first",
		},
		{
			begins("OAuth server returned an error"), "You are not logged in", "The login was canceled, or the identity provider refused it. Try again." + forAdmin,
			"the identity provider ended the login with an error",
		},
		{
			begins("Code or state", "State ", "CSRF ", "Malformed oauth", "Code verifier", "Failed to decrypt"), "This login is no longer valid", "It took too long, began in another browser, or is already complete. Try again." + forAdmin,
			"the answer of the identity provider does not belong to a login of this client",
		},
		{
			unverified(), "Your login cannot be verified", "Your session may have ended. Try again." + forAdmin,
			"the id_token of the session cannot be verified",
		},
		{
			notAllowed, "You have no access", "You are logged in, but your account may not use this site. Ask its administrator for access.",
			"the account does not have the claims that are required",
		},
		{
			"true", "The login failed", "This site could not complete the login with the identity provider. Try again in a moment." + forAdmin,
			"the login could not be completed with the identity provider",
		},
	}
}

// loginReplies are a page for browsers and a line of text for others. The request ID is all that they
// contain of the request. They have no WWW-Authenticate, since no Authorization header logs a client in. A
// 401 from elsewhere stays unchanged.
func loginReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	some, err := celFilter("response.code == 401 && !(" + ofOthers() + ") || " + unverified() + " || " + notAllowed)
	if err != nil {
		return nil, err
	}
	tokens, err := tokenReplies()
	if err != nil {
		return nil, err
	}
	byLogin := []*accesslogv3.AccessLogFilter{statusAtMost(http.StatusForbidden), some}
	return append(tokens, []*hcmv3.ResponseMapper{
		{
			Filter: allOf(append(byLogin, acceptsHTML())...), HeadersToAdd: pageHeaders(),
			BodyFormatOverride: &corev3.SubstitutionFormatString{
				ContentType: "text/html; charset=utf-8",
				Format:      &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: inline(loginPage())},
			},
		},
		{
			Filter: allOf(byLogin...), HeadersToAdd: noStore(),
			BodyFormatOverride: plainText(chosen(func(r loginReply) string { return r.problem }) + " (request " + requestID + ")"),
		},
	}...), nil
}

// tokenReplies tell programs why their token is refused, in Envoy's words. Envoy adds its own
// WWW-Authenticate. They come before the replies of logins, since a host with a login may have a route with
// tokens.
func tokenReplies() ([]*hcmv3.ResponseMapper, error) {
	refused, err := celFilter(unverified() + " && " + asksForTokens())
	if err != nil {
		return nil, err
	}
	lacking, err := refusalReply(claimRefused, http.StatusForbidden, "the token does not have the claims that are required here\n")
	return []*hcmv3.ResponseMapper{{
		Filter:             allOf(statusAtMost(http.StatusForbidden), refused),
		BodyFormatOverride: plainText("%LOCAL_REPLY_BODY%"),
	}, lacking}, err
}

// chosen is a format for the text of the first reply whose condition is true.
func chosen(text func(loginReply) string) string {
	list := loginReplyTexts()
	last := len(list) - 1
	expression := "'" + text(list[last]) + "'"
	for _, r := range slices.Backward(list[:last]) {
		expression = r.when + " ? '" + text(r) + "' : " + expression
	}
	return "%CEL(" + expression + ")%"
}

// requestID is a format for the request ID. A client on a private network may choose it.
const requestID = `%CEL(request.headers['x-request-id'].matches('^[0-9A-Za-z-]+$') ? request.headers['x-request-id'] : 'none')%`

// loginPage is a page without styles, scripts and references, so that no browser policy (CSP) blocks it. It
// does not redirect.
func loginPage() string {
	title := chosen(func(r loginReply) string { return html.EscapeString(r.title) })
	return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>` + title + `</title>
</head>
<body>
<h1>` + title + `</h1>
<p>` + chosen(func(r loginReply) string { return html.EscapeString(r.what) }) + `</p>
<p><a href="/">Try again</a></p>
<p>Request ID: <code>` + requestID + `</code></p>
</body>
</html>
`
}

func pageHeaders() []*corev3.HeaderValueOption {
	return append(noStore(),
		setHeader("content-security-policy", "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
		setHeader("x-content-type-options", "nosniff"),
		// The page's address may contain a code of the identity provider.
		setHeader("referrer-policy", "no-referrer"))
}

func noStore() []*corev3.HeaderValueOption {
	return []*corev3.HeaderValueOption{setHeader("cache-control", "no-store")}
}

// acceptsHTML matches a browser that loads a page.
func acceptsHTML() *accesslogv3.AccessLogFilter {
	return matchesHeader(&routev3.HeaderMatcher{Name: "accept", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{
		StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Contains{Contains: "text/html"}},
	}})
}

func matchesHeader(m *routev3.HeaderMatcher) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_HeaderFilter{HeaderFilter: &accesslogv3.HeaderFilter{Header: m}}}
}

// celFilter matches if a CEL expression is true. An error in it, such as missing details, is no match.
func celFilter(expression string) (*accesslogv3.AccessLogFilter, error) {
	config, err := pack(&celv3.ExpressionFilter{Expression: expression})
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{
		ExtensionFilter: &accesslogv3.ExtensionFilter{
			Name:       "envoy.access_loggers.extension_filters.cel",
			ConfigType: &accesslogv3.ExtensionFilter_TypedConfig{TypedConfig: config},
		},
	}}, err
}

// allOf matches if all filters match. Put cheap ones first.
func allOf(filters ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_AndFilter{AndFilter: &accesslogv3.AndFilter{Filters: filters}}}
}

func statusAtMost(status uint32) *accesslogv3.AccessLogFilter {
	return statusFilter(accesslogv3.ComparisonFilter_LE, status)
}

// statusFilter compares the status. Envoy requires a runtime key that may override the value; nothing sets
// it.
func statusFilter(op accesslogv3.ComparisonFilter_Op, status uint32) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_StatusCodeFilter{
		StatusCodeFilter: &accesslogv3.StatusCodeFilter{Comparison: &accesslogv3.ComparisonFilter{
			Op: op, Value: &corev3.RuntimeUInt32{DefaultValue: status, RuntimeKey: "gatehouse.login_status"},
		}},
	}}
}
