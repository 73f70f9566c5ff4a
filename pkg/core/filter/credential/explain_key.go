package credential

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func refuseKey(r seam.Request) (*seam.Refusal, error) {
	client, why, err := clientOfKey(r, seam.KeyFilter)
	if err != nil || client != "" {
		return nil, err
	}
	return keyRequired(r, model.FilterAPIKey, "requires an API key: "+why), nil
}

// keyRequired is the refusal of a request by a filter of a type, which does something with keys.
func keyRequired(r seam.Request, filterType, does string) *seam.Refusal {
	return &seam.Refusal{
		Code: "key_required", Type: filterType, Status: http.StatusUnauthorized, Body: challengeBody(r, "ApiKey"),
		Message: "a " + filterType + " " + does,
	}
}

func refuseClient(r seam.Request) (*seam.Refusal, error) {
	client, _, err := clientOfKey(r, seam.KeyFilter)
	if err != nil {
		return nil, err
	}
	message, err := seam.MessageOf(keyClientsFilter, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return nil, err
	}
	for _, policy := range message.GetRbac().GetRules().GetPolicies() {
		for _, p := range policy.GetPrincipals() { // the clients that are refused
			if !isClient(client, p.GetNotId().GetSourcedMetadata().GetMetadataMatcher().GetValue()) {
				return &seam.Refusal{
					Code: "client_refused", Type: model.FilterAPIKey, Details: seam.Denied(clientRefused),
					Status: http.StatusForbidden, Body: seam.DeniedBody,
					Message: "a http_filter_apikey does not allow client " + client,
				}, nil
			}
		}
	}
	return nil, nil
}

// isClient reports whether a matcher names a client.
func isClient(client string, m *matcherv3.ValueMatcher) bool {
	return slices.ContainsFunc(m.GetOrMatch().GetValueMatchers(), func(v *matcherv3.ValueMatcher) bool {
		text := v.GetStringMatch()
		return text.GetExact() == client || text.GetPrefix() != "" && strings.HasPrefix(client, text.GetPrefix())
	})
}

// clientOfKey returns the client of the request's API key; empty if the request has no key that the
// Envoy knows, and why is the reason.
func clientOfKey(r seam.Request, filter string) (client, why string, err error) {
	from, err := keySourcesOf(r, filter)
	if err != nil {
		return "", "", err
	}
	key, where, there := findKey(r, from, filter)
	if !there {
		return "", "the request has no " + where, nil
	}
	client, secret, ok := decodeBasic(key)
	if !ok {
		return "", "the value of " + where + " does not have the form of a key", nil
	}
	known, err := knowsUser(r, filter, client+":"+model.HashKey([]byte(secret)))
	if err != nil || known {
		return client, "", err
	}
	return "", "the value of " + where + " is not a key that the Envoy knows", nil
}

// findKey returns the key of a request, and where it is or might be.
func findKey(r seam.Request, from []model.KeySource, filter string) (key, where string, there bool) {
	if len(from) == 1 && from[0].Header != "" {
		text, there := r.Headers[from[0].Header]
		if !there || len(text) == 0 {
			return "", from[0].Header, false
		}
		if filter == AnyKeyFilter { // its header joins all values
			return strings.Join(text, ","), from[0].Header, true
		}
		return text[0], from[0].Header, true
	}
	var places []string
	for _, s := range from {
		key, place := "", ""
		switch {
		case s.Header != "":
			place, key = s.Header, strings.Join(r.Headers[s.Header][:min(1, len(r.Headers[s.Header]))], "")
		case s.Query != "":
			place, key = "query parameter "+s.Query, queryParam(r.Query, s.Query)
		default:
			place = "cookie " + s.Cookie
			key, _ = r.Cookie(s.Cookie)
		}
		if key != "" {
			return key, place, true
		}
		places = append(places, place)
	}
	return "", strings.Join(places, ", "), false
}

// queryParam returns the first value of a parameter, decoded like Envoy: "+" stays as it is.
func queryParam(query, name string) string {
	for pair := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		if n, value, _ := strings.Cut(pair, "="); percentDecoded(n) == name {
			return percentDecoded(value)
		}
	}
	return ""
}

var percentCode = regexp.MustCompile("%[0-9A-Fa-f]{2}")

func percentDecoded(text string) string {
	return percentCode.ReplaceAllStringFunc(text, func(code string) string {
		plain, _ := hex.DecodeString(code[1:])
		return string(plain)
	})
}

// keySourcesOf returns the places of the key: the route's, or else the service's.
func keySourcesOf(r seam.Request, filter string) ([]model.KeySource, error) {
	inner := keyHeader
	if filter == AnyKeyFilter {
		inner = anyKeyHeader
	}
	for _, config := range []interface {
		GetTypedPerFilterConfig() map[string]*anypb.Any
	}{r.Route, r.VirtualHost} {
		packed := config.GetTypedPerFilterConfig()[spoofFilter]
		if packed == nil {
			continue
		}
		var message headermutationv3.HeaderMutationPerRoute
		if err := packed.UnmarshalTo(&message); err != nil {
			return nil, fmt.Errorf("decoding filter %q: %w", spoofFilter, err)
		}
		for _, m := range message.GetMutations().GetRequestMutations() {
			if h := m.GetAppend().GetHeader(); h.GetKey() == inner {
				return keySources(h.GetValue())
			}
		}
	}
	return nil, fmt.Errorf("explaining filter %q: nothing gives it a key", seam.KeyFilter)
}

// keySources reads what passKeys has written.
func keySources(format string) ([]model.KeySource, error) {
	_, text, several := strings.Cut(format, "%COALESCE(")
	if !several {
		if _, name, plain := strings.Cut(format, "%REQ("); plain {
			return []model.KeySource{{Header: strings.TrimSuffix(name, ")%")}}, nil
		}
		return []model.KeySource{{Header: strings.Split(format, "'")[1]}}, nil // of an optional key
	}
	var first struct {
		Operators []struct{ Command, Param string }
	}
	if err := json.Unmarshal([]byte(text[:strings.LastIndex(text, ")")]), &first); err != nil {
		return nil, fmt.Errorf("explaining filter %q: %w", spoofFilter, err)
	}
	var list []model.KeySource
	for _, o := range first.Operators {
		switch o.Command {
		case "REQ":
			list = append(list, model.KeySource{Header: o.Param})
		case "QUERY_PARAM":
			list = append(list, model.KeySource{Query: o.Param})
		default:
			name := strings.TrimPrefix(o.Param, cookieBefore)
			list = append(list, model.KeySource{Cookie: strings.TrimSuffix(name, cookieAfter)})
		}
	}
	return list, nil
}

// knowsUser reports whether the Envoy's list of keys contains a line.
func knowsUser(r seam.Request, filter, line string) (bool, error) {
	var list basicauthv3.BasicAuth
	has, err := r.Discovered(filter, &list)
	return has && slices.Contains(strings.Split(list.GetUsers().GetInlineString(), "\n"), line), err
}

// clientOf returns the client of the request's API key, whether the route requires a key or accepts one; empty without
// a key.
func clientOf(r seam.Request) (string, error) {
	for _, name := range []string{seam.KeyFilter, AnyKeyFilter} {
		if !r.Passes(name) {
			continue
		}
		client, why, err := clientOfKey(r, name)
		if err != nil {
			return "", err
		}
		if why == "" {
			return client, nil
		}
	}
	return "", nil
}

// findClient returns the client of the request's API key, for limits that count by it.
func findClient(r seam.Request, _ []string) (value, missing string, err error) {
	if isOn(r, seam.KeyFilter) {
		value, _, err = clientOfKey(r, seam.KeyFilter)
	}
	if value == "" {
		missing = "the request has no API key that a filter requires"
	}
	return value, missing, err
}

func describeKey(r seam.Request) (string, error) {
	client, _, err := clientOfKey(r, seam.KeyFilter)
	if client == "" {
		return "finds no known API key", err
	}
	return "takes the API key as that of " + client + ", as the backend sees in " + clientHeader, err
}

func describeClients(r seam.Request) (string, error) {
	message, err := seam.MessageOf(keyClientsFilter, r, &rbacv3.RBACPerRoute{})
	var clients []string
	for _, policy := range message.GetRbac().GetRules().GetPolicies() {
		of := policy.GetPrincipals()[0].GetNotId().GetSourcedMetadata().GetMetadataMatcher().GetValue()
		for _, m := range of.GetOrMatch().GetValueMatchers() {
			text := m.GetStringMatch().GetExact()
			if prefix := m.GetStringMatch().GetPrefix(); prefix != "" {
				text = prefix + "*"
			}
			if !slices.Contains(clients, text) {
				clients = append(clients, text)
			}
		}
	}
	return "allows the keys of " + strings.Join(clients, ", "), err
}
