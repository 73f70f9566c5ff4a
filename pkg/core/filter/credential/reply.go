package credential

import (
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// browserChallenge is a challenge for which browsers ask their user. A host has one realm: Envoy's own contains the
// path, so browsers would ask again for each path.
const browserChallenge = `Basic realm="gateway", charset="UTF-8"`

// ofCredentials is the condition that a filter for users or keys refused a request.
const ofCredentials = seam.Details + ".endsWith('_for_basic_auth')"

// refusedBy says which types refuse, by seam.RefusalDetails. A login whose token is refused counts as a filter for
// tokens. Of several credentials, a wrong one is refused by the filter for its kind.
func refusedBy() map[string]string {
	types := map[string]string{
		seam.Denied(clientRefused): model.FilterAPIKey,
		seam.Denied(noPassword):    model.FilterAnyOf,
		seam.Denied(noCredential):  model.FilterAnyOf,
		seam.Denied(claimRefused):  model.FilterJWT,
		"jwt_authn_access_denied":  model.FilterJWT,
		seam.Denied("none"):        model.FilterOIDC,
		seam.Denied(accessRefused): model.FilterRBAC,
		// Nobody that is known, and somebody that is not accepted.
		seam.Denied(consumerUnknown): model.FilterConsumer,
		seam.Denied(consumerRefused): model.FilterConsumer,
	}
	for _, words := range []string{"no_credential", "invalid_credential", "invalid_scheme", "invalid_format"} {
		types[words+"_for_basic_auth"] = model.FilterBasicAuth
		types[words+"_for_basic_auth"+seam.KeyRefused] = model.FilterAPIKey
	}
	for _, words := range loginFailed() {
		types[words] = model.FilterOIDC
	}
	return types
}

// reply is what a client receives in place of a refusal.
type reply struct {
	// when is a CEL condition. If cheap is set, it is evaluated only for responses up to 403; otherwise only for those
	// with the status from.
	when   string
	cheap  bool
	from   uint32
	status uint32
	// scheme is the scheme of a challenge. For one that is not Basic, no browser asks its user for a password.
	scheme  string
	headers []*corev3.HeaderValueOption
	body    string
	// format replaces body.
	format *corev3.SubstitutionFormatString
}

// refusals are the replies to all refusals, in the order in which Envoy tries them. The first whose condition is true
// is used. Keys come before passwords, whose refusals look alike, and all of them before logins, which match every
// other 401. Those for tokens come before those for logins, since a host with a login may have a route with tokens.
func refusals() []reply {
	denied := func(policy string) string { return seam.Details + " == '" + seam.Denied(policy) + "'" }
	const several = "a credential that is accepted here is required\n"
	ofLogin := "response.code == 401 && !(" + ofOthers() + ") || " + unverified() + " || " + notAllowed
	return []reply{
		{
			when: ofCredentials + " && ('" + keyHeader + "' in request.headers || '" + anyKeyHeader +
				"' in request.headers) && !('" + clientHeader + "' in request.headers)",
			from: http.StatusUnauthorized, status: http.StatusUnauthorized, scheme: "ApiKey", body: "a valid API key is required\n",
		},
		{
			when: denied(clientRefused), from: http.StatusForbidden, status: http.StatusForbidden,
			body: "this API key is not valid here\n",
		},
		{
			when: ofCredentials, from: http.StatusUnauthorized, status: http.StatusUnauthorized, scheme: browserChallenge,
			body: "a valid user name and password are required\n",
		},
		// Where a password can help, browsers ask their user for it.
		{
			when: denied(noPassword), from: http.StatusForbidden, status: http.StatusUnauthorized, scheme: browserChallenge,
			body: several,
		},
		{
			when: denied(noCredential), from: http.StatusForbidden, status: http.StatusUnauthorized, scheme: "Bearer",
			body: several,
		},
		// Programs are told why their token is refused, in Envoy's words. Envoy adds its own WWW-Authenticate.
		{when: unverified() + " && " + asksForTokens(), cheap: true, format: seam.PlainText("%LOCAL_REPLY_BODY%")},
		{
			when: denied(claimRefused), from: http.StatusForbidden, status: http.StatusForbidden,
			body: "the token does not have the claims that are required here\n",
		},
		// A page for browsers and a line of text for others. The request ID is all that they contain of the request. They
		// have no WWW-Authenticate, since no Authorization header logs a client in.
		{when: ofLogin, cheap: true, headers: seam.PageHeaders(seam.NothingElse), format: seam.Page(loginPage())},
		{
			when: ofLogin, cheap: true, headers: seam.NoStore(),
			format: seam.PlainText(chosen(func(r loginReply) string { return r.problem }) + seam.InRequest),
		},
		{
			when: denied(accessRefused), from: http.StatusForbidden, status: http.StatusForbidden,
			body: "this is not allowed here\n",
		},
		{
			when: denied(consumerRefused), from: http.StatusForbidden, status: http.StatusForbidden,
			body: "this consumer is not allowed here\n",
		},
		{
			when: denied(consumerUnknown), from: http.StatusForbidden, status: http.StatusForbidden,
			body: "no consumer is known here by what the request shows\n",
		},
	}
}

func replies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	var list []*hcmv3.ResponseMapper
	for _, r := range refusals() {
		m, err := seam.Reply(r.from, r.when, r.status, r.body)
		if err != nil {
			return nil, err
		}
		if r.format != nil {
			m.Body, m.BodyFormatOverride = nil, r.format
		}
		if m.HeadersToAdd = r.headers; r.scheme != "" {
			m.HeadersToAdd = []*corev3.HeaderValueOption{seam.SetHeader("www-authenticate", r.scheme)}
		}
		if r.cheap {
			m.Filter = seam.AllOf(seam.StatusAtMost(http.StatusForbidden), m.GetFilter())
		}
		list = append(list, m)
	}
	return list, nil
}
