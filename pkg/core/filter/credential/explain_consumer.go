package credential

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// foundConsumer is the consumer of a request.
type foundConsumer struct {
	// name is empty if nobody is known. credential is by what it was found.
	name, groups, credential string
	// several means that the request has credentials of several consumers.
	several bool
	// hidden is what only Envoy sees of the request; empty means that nothing is.
	hidden string
}

// consumerOf returns the consumer of a request, from the list that the Envoy has.
func consumerOf(r seam.Request) (found foundConsumer, err error) {
	ids, hidden, err := credentialsOf(r)
	if err != nil || !isOn(r, ConsumerFilter) {
		return found, err
	}
	found.hidden = hidden
	var list luav3.Lua
	if has, err := r.Discovered(ConsumerFilter, &list); err != nil || !has {
		return found, err
	}
	for _, id := range ids {
		name, groups, known := findInScript(list.GetDefaultSourceCode().GetInlineString(), id)
		switch {
		case !known:
		case found.name != "" && found.name != name:
			return foundConsumer{several: true, hidden: hidden}, nil
		default:
			found.name, found.groups, found.credential = name, groups, id
		}
	}
	return found, nil
}

// credentialsOf returns the identities of the credentials of a request, and what else may identify it that only Envoy
// sees. Like the other filters, it assumes that a token is valid.
func credentialsOf(r seam.Request) (ids []string, hidden string, err error) {
	client, err := clientOf(r)
	if err != nil {
		return nil, "", err
	}
	if client != "" {
		ids = append(ids, model.CredentialID("key", client))
	}
	for _, filter := range []string{basicAuthFilter, anyBasicAuthFilter} {
		if !r.Passes(filter) {
			continue
		}
		users, err := seam.MessageOf(filter, r, &basicauthv3.BasicAuthPerRoute{})
		if err != nil {
			return nil, "", err
		}
		if user, _ := userAmong(r, users); user != "" {
			ids = append(ids, model.CredentialID("user", saidForScript(r, "users").GetStringValue()+"/"+user))
		}
	}
	if r.Passes(seam.TokenFilter) {
		place := tokenPlaceOf(r)
		if place == nil {
			hidden = "the id_token of the session"
		} else {
			claims, _ := claimsOf(place.find(r))
			issuer, _ := claims["iss"].(string)
			ids = append(ids, claimIDs(issuer, "", claims)...)
		}
	}
	if saidForScript(r, "certificates").GetBoolValue() {
		hidden = "the certificate of the client"
	}
	return ids, hidden, nil
}

// claimIDs returns the identities for all claims that are texts.
func claimIDs(issuer, at string, claims map[string]any) (ids []string) {
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		switch value := claims[name].(type) {
		case string:
			ids = append(ids, model.CredentialID("token", issuer, at+name, value))
		case map[string]any:
			ids = append(ids, claimIDs(issuer, at+name+".", value)...)
		}
	}
	return ids
}

// findInScript returns the consumer of a credential in the tables of the script.
func findInScript(script, id string) (name, groups string, found bool) {
	var line strings.Builder
	luaEscape(&line, id+"\x01")
	for _, before := range []string{`"`, `\010`} { // the first of a block, and others
		if _, rest, found := strings.Cut(script, before+line.String()); found {
			name, rest, _ = strings.Cut(rest, `\001`)
			groups, _, _ = strings.Cut(rest, `\010`)
			return name, groups, true
		}
	}
	return "", "", false
}

// refuseConsumer refuses a request whose consumer is not allowed, or not known.
func refuseConsumer(r seam.Request) (*seam.Refusal, error) {
	message, err := seam.MessageOf(consumerAccessFilter, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return nil, err
	}
	found, err := consumerOf(r)
	if err != nil {
		return nil, err
	}
	who := caller{Request: r, consumer: found}
	policies := message.GetRbac().GetRules().GetPolicies()
	for _, name := range slices.Sorted(maps.Keys(policies)) {
		refused, err := who.is(policies[name].GetPrincipals()[0])
		if err != nil {
			return nil, err
		}
		if refused == yes {
			refusal := &seam.Refusal{Code: "consumer_unknown"}
			if name == consumerRefused {
				refusal = &seam.Refusal{Code: "consumer_refused"}
			}
			refusal.Type, refusal.Details, refusal.Status = model.FilterConsumer, seam.Denied(name), http.StatusForbidden
			refusal.Body, refusal.Message = seam.DeniedBody, "a http_filter_consumer refuses the request: "+found.sentence()
			return refusal, nil
		}
		if refused == unknown {
			r.Step("consumer", "whether a http_filter_consumer allows the request depends on "+found.hidden+
				", which only Envoy sees; the next steps assume that it does")
			return nil, nil
		}
	}
	r.Step("consumer", "a http_filter_consumer allows the request: "+found.sentence())
	return nil, nil
}

// sentence says who was found, and how.
func (f foundConsumer) sentence() string {
	switch {
	case f.several:
		return "its credentials belong to several consumers"
	case f.name == "":
		return "no consumer has a credential that it shows"
	case f.groups == "":
		return fmt.Sprintf("it is from consumer %s, who has %s and is in no group", f.name, model.CredentialText(f.credential))
	}
	return fmt.Sprintf("it is from consumer %s, who has %s and is in the groups %s", f.name, model.CredentialText(f.credential), f.groups)
}

// is reports whether what the script writes matches.
func (f foundConsumer) is(m *matcherv3.MetadataMatcher) verdict {
	switch {
	case f.hidden != "" && f.name == "":
		return unknown
	case m.GetPath()[0].GetKey() == "none":
		return verdictOf(f.name == "" && !f.several)
	case m.GetValue().GetPresentMatch():
		return verdictOf(f.name != "")
	}
	value := f.name
	if m.GetPath()[0].GetKey() == seam.ConsumerGroups {
		value = f.groups
	}
	if value == "" {
		return no
	}
	matches, _, err := seam.Matches(m.GetValue().GetStringMatch(), value)
	return verdictOf(matches && err == nil)
}

func describeConsumer(r seam.Request) (string, error) {
	found, err := consumerOf(r)
	return "finds the consumer of the request: " + found.sentence(), err
}

func describeConsumers(r seam.Request) (string, error) {
	message, err := seam.MessageOf(consumerAccessFilter, r, &rbacv3.RBACPerRoute{})
	said := "allows each consumer"
	if message.GetRbac().GetRules().GetPolicies()[consumerRefused] != nil {
		said = "allows consumers by their groups"
	}
	if len(message.GetRbac().GetRules().GetPolicies()[consumerUnknown].GetPrincipals()[0].GetNotId().GetOrIds().GetIds()) > 0 {
		said += ", and requests of nobody that is known"
	}
	return said, err
}

// withConsumer returns a request with the headers that tell the upstream who the consumer is.
func withConsumer(r seam.Request) (seam.Request, error) {
	message, err := seam.MessageOf(cleanFilter, seam.Request{Route: r.Route}, &headermutationv3.HeaderMutationPerRoute{})
	if err != nil || !isOn(r, ConsumerFilter) {
		return r, err
	}
	found, err := consumerOf(r)
	if err != nil {
		return r, err
	}
	headers := maps.Clone(r.Headers)
	for _, m := range message.GetMutations().GetRequestMutations() {
		h, value := m.GetAppend().GetHeader(), ""
		switch h.GetValue() {
		case consumerCommand(seam.ConsumerName):
			value = found.name
		case consumerCommand(seam.ConsumerGroups):
			value = found.groups
		}
		if value != "" {
			headers[h.GetKey()] = []string{value}
		}
	}
	r.Headers = headers
	return r, nil
}

// findConsumer returns the name of the consumer, or its groups, for limits that count by them.
func findConsumer(r seam.Request, path []string) (value, missing string, err error) {
	found, err := consumerOf(r)
	value = found.name
	if len(path) > 0 && path[0] == seam.ConsumerGroups {
		value = found.groups
	}
	if value == "" {
		missing = "no consumer is known by the credentials of the request"
	}
	return value, missing, err
}
