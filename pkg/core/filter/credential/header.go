package credential

import (
	"fmt"
	"slices"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// spoofFilter is the name of the filter that removes headers that only the gateway may set, also on routes without a
	// login.
	spoofFilter = "envoy.filters.http.header_mutation/in"
	// cleanFilter is the name of the filter that keeps the cookies of logins from backends.
	cleanFilter = "envoy.filters.http.header_mutation/clean"
)

func noneSpoofed(ir.Listener) []seam.Message {
	// A route's message is applied after the host's, which removes more.
	return []seam.Message{{Name: spoofFilter, Config: &headermutationv3.HeaderMutation{
		MostSpecificHeaderMutationsWins: true,
	}}}
}

// spoofOfHost removes the headers that only the gateway may set, on all routes of the host, and passes a key to the
// filter that reads it.
func spoofOfHost(d demands) []seam.Message {
	names := d.identity
	if slices.Contains(names, clientHeader) {
		names = slices.Concat(names, []string{keyHeader, anyKeyHeader})
	}
	list := seam.RemoveHeaders(seam.WithoutNames(d.claimHeaders(), names)...)
	list = append(list, seam.RemoveHeaders(names...)...)
	return seam.RequestMutations(spoofFilter, append(list, passKeys(d.keys, d.anyOf)...))
}

// spoofOfRoute also removes the host's key headers that no filter on the route reads. The replies would otherwise take
// a refusal of another credential for a refusal of a key.
func spoofOfRoute(d demands) []seam.Message {
	var list []*mutationv3.HeaderMutation
	if t := d.allTokens(); t != nil {
		list = seam.RemoveHeaders(t.claimHeaders()...)
	}
	if d.keys != nil || d.saysWho() {
		list = append(list, seam.RemoveHeaders(anyKeyHeader)...)
	}
	if d.keys != nil || d.anyOf != nil {
		list = append(list, seam.RemoveHeaders(keyHeader)...)
	}
	return seam.RequestMutations(spoofFilter, append(list, passKeys(d.keys, d.anyOf)...))
}

// claimHeaders returns the headers that carry the token's claims.
func claimHeaders(t *TokenCheck) []string {
	if t == nil {
		return nil
	}
	var names []string
	for _, c := range t.ClaimHeaders {
		names = append(names, c.Header)
	}
	return names
}

// passKeys sets the header that a filter reads. A key consists of the client's name and its secret, in the format of
// Basic. An optional key that is missing sets no header.
func passKeys(needed *KeyAccess, either *AnyOf) []*mutationv3.HeaderMutation {
	var list []*mutationv3.HeaderMutation
	if needed != nil {
		list = append(list, set(keyHeader, "Basic "+firstKey(needed.From)))
	}
	if either == nil || either.Keys == nil {
		return list
	}
	if header := either.Keys.From[0].Header; len(either.Keys.From) == 1 && header != "" {
		const given = `%%CEL('%[1]s' in request.headers ? ` +
			`re.extract(request.headers['%[1]s'], r'^(.*)$', r'Basic \1') : '')%%`
		return append(list, set(anyKeyHeader, fmt.Sprintf(given, header)))
	}
	return append(list, set(anyKeyHeader, firstKey(either.Keys.From)),
		overwrite(anyKeyHeader, "Basic %REQ("+anyKeyHeader+")%"))
}

// maxKey is the size to which a longer key is cut, which no filter then knows.
const maxKey = 8192

// firstKey is the format for the first of several places that has a key. Envoy decodes the query.
func firstKey(from []model.KeySource) string {
	if header := from[0].Header; len(from) == 1 && header != "" {
		return "%REQ(" + header + ")%"
	}
	var list []seam.Command
	for _, s := range from {
		switch {
		case s.Header != "":
			list = append(list, seam.Command{Name: "REQ", Parameter: s.Header})
		case s.Query != "":
			list = append(list, seam.Command{Name: "QUERY_PARAM", Parameter: s.Query})
		default:
			list = append(list, seam.Command{Name: "CEL", Parameter: cookieBefore + s.Cookie + cookieAfter})
		}
	}
	return seam.FirstOf(maxKey, list...)
}

// cookieBefore and cookieAfter enclose the name of a cookie in an expression for its value.
const (
	cookieBefore = `'cookie' in request.headers ? re.extract(request.headers['cookie'], r'^(?:.*?; *)??`
	cookieAfter  = `="?([^;"]*).*$', r'\1') : ''`
)

// unchanged is a filter of a listener that changes no header.
func unchanged(filter string) func(ir.Listener) []seam.Message {
	return func(ir.Listener) []seam.Message {
		return []seam.Message{{Name: filter, Config: &headermutationv3.HeaderMutation{}}}
	}
}

// clean removes what backends must not see, except for credentials as clients send them, and tells them who the
// consumer is.
func clean(d demands) []seam.Message {
	list := removeKey(d.allKeys())
	if d.login != nil {
		list = append(list, cleanLogin(d.login)...)
	}
	return seam.RequestMutations(cleanFilter, append(list, tellConsumer(d.consumer)...))
}

// removeKey removes a key in the form in which a filter has read it.
func removeKey(a *KeyAccess) []*mutationv3.HeaderMutation {
	if a == nil {
		return nil
	}
	return seam.RemoveHeaders(keyHeader, anyKeyHeader)
}

// cleanLogin removes the gateway's own cookies.
func cleanLogin(l *Login) []*mutationv3.HeaderMutation {
	names := cookieNames(l)
	// On routes without a login, the request still has all of them from the browser.
	cookies := []string{names.GetOauthHmac(), names.GetOauthExpires(), names.GetRefreshToken()}
	if !l.ForwardTokens {
		cookies = slices.Concat(cookies, []string{names.GetBearerToken(), names.GetIdToken()})
	}
	var list []*mutationv3.HeaderMutation
	for _, cookie := range cookies {
		list = append(list, removeCookie(cookie))
	}
	return append(list, tidyCookies()...)
}

// cookieHeader carries the cookies while Cookie is removed.
const cookieHeader = "x-gatehouse-cookie"

// tidyCookies removes what separated removed cookies from others. Envoy does not set a header to an empty value, so
// Cookie is removed, and set again if cookies are left.
func tidyCookies() []*mutationv3.HeaderMutation {
	const left = `%CEL('cookie' in request.headers ? ` +
		`re.extract(request.headers['cookie'], r'^[; ]*(.*?)[; ]*$', r'\1') : '')%`
	return []*mutationv3.HeaderMutation{
		seam.RemoveHeader(cookieHeader), set(cookieHeader, left), seam.RemoveHeader("cookie"),
		set("cookie", "%REQ("+cookieHeader+")%"), seam.RemoveHeader(cookieHeader),
	}
}

func set(name, value string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: seam.SetHeader(name, value)}}
}

// overwrite changes a header that is there.
func overwrite(name, value string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header: &corev3.HeaderValue{Key: name, Value: value}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS,
	}}}
}

// removeCookie removes one cookie from the Cookie header.
func removeCookie(name string) *mutationv3.HeaderMutation {
	const cookie = "request.headers['cookie']"
	return overwrite("cookie", fmt.Sprintf(`%%CEL(%[1]s.matches(r'(^|; *)%[2]s=') ? `+
		`re.extract(%[1]s, r'^(?:(.*); *)?%[2]s=[^;]*(?:; *(.*))?$', r'\1; \2') : %[1]s)%%`, cookie, name))
}
