// Package credential is what clients must show: http_filter_oidc (a login), http_filter_jwt (a token),
// http_filter_apikey, http_filter_basicauth (a password) and http_filter_anyof (one of several), with vh_filter_rbac,
// whose rules check what they found. They are one family, since a route's credential replaces another kind of its host,
// and since which of their refusals a client gets depends on all of them.
package credential

import (
	"fmt"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Filters returns the filters of the family in their order, but for Headers: oauth2 finds the token, jwt_authn verifies
// it and extracts the claims. The filters for one of several credentials come after the strict ones: the key and the
// password filter allow requests without a credential, and rbac/any refuses requests for which none was found.
// rbac/clients, rbac/claims and rbac/access check what was found. clean, key, hide and password at the end remove
// what backends must not see.
func Filters() []seam.Filter {
	return []seam.Filter{
		// explain does not say of a refusal by oauth2 whether this type or a global config caused it.
		{Type: model.FilterOIDC, Config: withClash(seam.Hooks(addLogin, nil))},
		row(oauth2Filter, login, demands.isFree, seam.Filter{
			Listener: noLogin, ChangeHost: sayOfHost, ChangeRoute: sayOfRoute, Logs: loginFailures,
			Identifies: true, Exempt: tellExempt, Refuse: askForLogin, Describe: describeLogin,
		}),
		row(seam.TokenFilter, token, demands.isFree, seam.Filter{
			Type: model.FilterJWT, Config: seam.Hooks(addHostTokens, addRouteTokens),
			Listener: noTokens, Logs: unknownKeys, LogFields: subjectField,
			Identifies: true, Refuse: refuseToken, Describe: describeToken,
			Identity: &seam.Identity{
				Needs: "claims, which neither a http_filter_jwt nor a login verifies there", Find: findClaim,
			},
		}),
		row(seam.KeyFilter, key, demands.isEither, seam.Filter{
			Type: model.FilterAPIKey, Config: withNeeds(seam.Adds(keysKey, addKeys)),
			Listener: noKeys, Resources: keyResources, LogFields: clientField,
			Identifies: true, Refuse: refuseKey, Describe: describeKey,
			Identity: &seam.Identity{
				Needs: "the client of an API key, and no http_filter_apikey requires one there", Find: findClient,
			},
		}),
		row(keyClientsFilter, keyClients, demands.isEither, seam.Filter{
			Listener: refuseAll(keyClientsFilter, clientRefused), Refuse: refuseClient, Describe: describeClients,
		}),
		row(basicAuthFilter, password, demands.isFree, seam.Filter{
			Type: model.FilterBasicAuth, Config: seam.Adds(basicAuthKey, addBasicAuth),
			Listener: refusePasswords, Identifies: true, Refuse: refusePassword, Describe: describePassword,
		}),
		row(AnyKeyFilter, anyKey, demands.isFreeOfAny, seam.Filter{
			Listener: noAnyKeys, Resources: anyKeyResources, Refuse: refuseAnyKey, Describe: describeAnyKey,
		}),
		row(anyBasicAuthFilter, anyPassword, demands.isFreeOfAny, seam.Filter{
			Listener: noAnyPasswords, Refuse: refuseAnyPassword, Describe: describeAnyPassword,
		}),
		row(anyFilter, anyCredential, demands.isFreeOfAny, seam.Filter{
			Type: model.FilterAnyOf, Config: seam.Adds(anyOfKey, addAnyOf),
			Listener: refuseAll(anyFilter, noCredential), Identifies: true, Refuse: refuseNoneOf, Describe: describeAny,
		}),
		row(ConsumerFilter, lookUpConsumer, nil, seam.Filter{
			Type: model.FilterConsumer, Config: consumerConfig(),
			Listener: noConsumers, Resources: consumerResources, Describe: describeConsumer,
			Identity: &seam.Identity{
				Needs: "the consumer, and no http_filter_consumer finds one there", Find: findConsumer,
			},
		}),
		row(consumerAccessFilter, consumers, nil, seam.Filter{
			Listener: refuseAll(consumerAccessFilter, consumerUnknown), Refuse: refuseConsumer, Describe: describeConsumers,
		}),
		row(claimsFilter, claims, demands.isFree, seam.Filter{
			Listener: noClaims, Refuse: refuseClaims, Describe: describeClaims,
		}),
		row(accessFilter, access, demands.isUnruled, seam.Filter{
			Type: model.FilterRBAC, Config: seam.Adds(accessKey, addAccess),
			Listener: refuseAll(accessFilter, accessRefused), Refuse: refuseByRules,
		}),
		row(cleanFilter, clean, nil, seam.Filter{
			Listener: unchanged(cleanFilter), Describe: describeCleaned, Change: withConsumer,
		}),
		row(hideKeyFilter, hideKey, demands.keepsKey, seam.Filter{
			Listener: unchanged(hideKeyFilter), Describe: describeKeyRemoved,
		}),
		row(hideFilter, hide, nil, seam.Filter{
			Listener: hider, ChangeHost: hideOfHost, ChangeRoute: hideOfRoute, Describe: describeHidden,
		}),
		row(passwordFilter, removePassword, demands.saysWho, seam.Filter{
			Listener: unchanged(passwordFilter), Describe: describePasswordRemoved,
		}),
	}
}

// Headers returns the filter before those of Filters. It removes headers that only they may set.
func Headers() seam.Filter {
	f := row(spoofFilter, spoofOfHost, nil, seam.Filter{
		Listener: noneSpoofed, Replies: replies, Refuses: refusedBy(), Describe: describeSpoofed, Identifies: true,
	})
	f.Route = func(r *ir.Route) ([]seam.Message, error) { return spoofOfRoute(ofRoute(r)), nil }
	return f
}

// row completes a filter that has the same messages for hosts and routes. It is off for routes that have none, and are
// exempt from what their host demands; a nil exempt means that no route is.
func row(name string, messages func(demands) []seam.Message, exempt func(demands) bool, f seam.Filter) seam.Filter {
	f.Name, f.Disabled = name, true
	f.Host = func(h *ir.Host) ([]seam.Message, error) { return messages(ofHost(h)), nil }
	f.Route = func(r *ir.Route) ([]seam.Message, error) {
		d := ofRoute(r)
		list := messages(d)
		if list == nil && exempt != nil && exempt(d) {
			list = []seam.Message{{Name: name, Config: &routev3.FilterConfig{Disabled: true}}}
		}
		return list, nil
	}
	return f
}

func withClash(c *seam.Config) *seam.Config {
	c.Clash = clash
	return c
}

func withNeeds(c *seam.Config) *seam.Config {
	c.Needs = keyNeeds
	return c
}

// demands are what a host or route requires of clients. Those of a route replace those of its host: tokens, passwords
// and one of several credentials replace each other and a login, keys replace keys. One of several credentials replaces
// keys too, and keys replace it.
type demands struct {
	login     *Login // of a host
	tokens    *Tokens
	keys      *KeyAccess
	basicAuth *BasicAuth
	anyOf     *AnyOf
	access    []*Access
	consumer  *ConsumerAccess // of a route
	// identity are the headers of a host with which filters say who a client is.
	identity []string
	// public and unruled are settings of a route.
	public, unruled bool
}

func ofHost(h *ir.Host) demands {
	d := demandsOf(h.Filters)
	d.identity = h.Identity
	return d
}

func ofRoute(r *ir.Route) demands {
	d := demandsOf(r.Filters)
	d.public, d.unruled = r.Public, r.Unruled
	return d
}

func demandsOf(f ir.Filters) demands {
	return demands{
		login: loginKey.Of(f), tokens: tokensKey.Of(f), keys: keysKey.Of(f), basicAuth: basicAuthKey.Of(f),
		anyOf: anyOfKey.Of(f), access: accessKey.Of(f), consumer: consumerKey.Of(f),
	}
}

// saysWho reports whether a route sets its own credentials in place of the host's. API keys do not count.
func (d demands) saysWho() bool { return d.tokens != nil || d.basicAuth != nil || d.anyOf != nil }

// isFree reports whether a route needs no login, token or password of its host: it is public, or requires a credential
// of its own. isFreeOfAny reports whether it does not need one of several credentials either, isEither whether it
// accepts several in place of a key, and isUnruled whether the rules of its host do not apply.
func (d demands) isFree() bool      { return d.public || d.saysWho() }
func (d demands) isFreeOfAny() bool { return d.isFree() || d.keys != nil }
func (d demands) isEither() bool    { return d.anyOf != nil }
func (d demands) isUnruled() bool   { return d.unruled }

// allTokens returns the tokens that are required, or accepted as one of several credentials.
func (d demands) allTokens() *Tokens {
	if d.tokens == nil && d.anyOf != nil {
		return d.anyOf.Tokens
	}
	return d.tokens
}

// allKeys returns the API keys that are required, or accepted as one of several credentials.
func (d demands) allKeys() *KeyAccess {
	if d.keys == nil && d.anyOf != nil {
		return d.anyOf.Keys
	}
	return d.keys
}

// allBasicAuth returns the passwords that are required, or accepted as one of several credentials.
func (d demands) allBasicAuth() *BasicAuth {
	if d.basicAuth == nil && d.anyOf != nil {
		return d.anyOf.BasicAuth
	}
	return d.basicAuth
}

// tokenCheck returns the check of the token whose claims the upstream receives in headers; nil if there is none.
func (d demands) tokenCheck() *TokenCheck {
	switch {
	case d.allTokens() != nil:
		return d.allTokens().Check
	case d.login != nil:
		return d.login.Token
	}
	return nil
}

// claimHeaders returns the headers in which the upstream receives claims.
func (d demands) claimHeaders() []string {
	if t := d.allTokens(); t != nil {
		return t.claimHeaders()
	}
	return claimHeaders(d.tokenCheck())
}

// asksWho reports whether a filter identifies the client. Two such filters in one place would
// have to agree.
func asksWho(f *model.ParsedFilter) bool {
	asking := []string{model.FilterOIDC, model.FilterJWT, model.FilterBasicAuth, model.FilterAnyOf}
	return slices.Contains(asking, f.Type)
}

// clash returns the conflict if two filters cannot be in one place. addLogin reports two logins itself.
func clash(filters []*model.ParsedFilter) string {
	var asking []*model.ParsedFilter
	either := slices.ContainsFunc(filters, func(f *model.ParsedFilter) bool { return f.Type == model.FilterAnyOf })
	for _, f := range filters {
		if asksWho(f) || either && f.Type == model.FilterAPIKey {
			asking = append(asking, f)
		}
	}
	other := func(f *model.ParsedFilter) bool { return f.Type != model.FilterOIDC }
	if len(asking) < 2 || !slices.ContainsFunc(asking, other) {
		return ""
	}
	return fmt.Sprintf("has filters %s and %s, of which only one can decide which requests are allowed (attach the other "+
		"one to a route),", asking[0].Name, asking[1].Name)
}
