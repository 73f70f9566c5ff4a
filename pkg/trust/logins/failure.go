package logins

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Failure is a login, or a session, that an Envoy has refused.
type Failure struct {
	// Service is the name of the service; Login is the key of the filter or global config.
	Service string
	Login   model.Key
	// RequestID is the request's ID; empty if it is not known.
	RequestID string
	Reason    Reason
}

// Reason is why.
type Reason struct {
	// Code is stable, one of Codes.
	Code string
	// Message is a sentence without a capital letter and a full stop, for an operator.
	Message string
}

// The codes of reasons.
const (
	WrongClientSecret   = "wrong_client_secret"
	CodeRefused         = "code_refused"
	TokenEndpointError  = "token_endpoint_error"
	ProviderUnreachable = "provider_unreachable"
	ProviderTimeout     = "provider_timeout"
	BadAnswer           = "bad_answer"
	UserDenied          = "user_denied"
	ProviderRefused     = "provider_refused"
	OutdatedLogin       = "outdated_login"
	RedirectDomain      = "redirect_domain"
	WrongAudience       = "wrong_audience"
	WrongIssuer         = "wrong_issuer"
	UnknownKey          = "unknown_key"
	BadSignature        = "bad_signature"
	NoIDToken           = "no_id_token"
	TokenExpired        = "token_expired"
	TokenNotYetValid    = "token_not_yet_valid"
	BadIDToken          = "bad_id_token"
	ClaimMissing        = "claim_missing"
	Other               = "other"
)

// marker is the field that marks such a line in Envoy's log, and its value.
const marker = "login_failed"

// Read parses a line of an Envoy's log; ok is false if it is about something else.
func Read(line []byte) (f Failure, ok bool) {
	var l struct {
		Gatehouse string `json:"gatehouse"`
		Service   string `json:"service"`
		Login     string `json:"login"`
		What      string `json:"what"`
		Status    string `json:"status"`
		Error     string `json:"error"`
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(line, &l); err != nil || l.Gatehouse != marker {
		return f, false
	}
	f = Failure{Service: l.Service, Reason: reasonFor(l.What, l.Status, l.Error)}
	if kind, name, ok := strings.Cut(l.Login, "/"); ok {
		f.Login = model.NewKey(model.Kind(kind), name)
	}
	if regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`).MatchString(l.RequestID) && l.RequestID != "none" {
		f.RequestID = l.RequestID
	}
	return f, true
}

// unknownKey marks a line about a token that names an unknown key.
const unknownKey = "key_unknown"

// ReadUnknownKey parses a line of an Envoy's log about a token with an unknown key, and returns the
// filter that has verified it. A route's own filter replaces the service's.
func ReadUnknownKey(line []byte) (filter model.Key, ok bool) {
	var l struct {
		Gatehouse string `json:"gatehouse"`
		Route     string `json:"route"`
		Host      string `json:"host"`
	}
	if err := json.Unmarshal(line, &l); err != nil || l.Gatehouse != unknownKey {
		return filter, false
	}
	for _, said := range []string{l.Route, l.Host} {
		kind, rest, _ := strings.Cut(said, "/")
		if name, _, found := strings.Cut(rest, "/"); found && kind == string(model.KindFilter) {
			return model.FilterKey(name), true
		}
	}
	return filter, false
}

// reasonFor returns the reason from what Envoy's filters log: the first words of the response code
// details, and the identity provider's status and error (RFC 6749 sections 4.1.2.1 and 5.2).
func reasonFor(what, status, code string) Reason {
	begins := func(words ...string) bool {
		for _, w := range words {
			if strings.HasPrefix(what, w) {
				return true
			}
		}
		return false
	}
	switch {
	case begins("Failed to get access token"), begins("OAuth request failed"):
		return tokenReason(status, knownError(code))
	case begins("Failed to parse oauth response body", "No access token found"):
		return Reason{BadAnswer, "the answer of the token endpoint has no access token: is token_endpoint right?"}
	case begins("OAuth server returned an error"):
		return authorizationReason(knownError(code))
	case begins("State url host is not in the allowed redirect domains", "redirect_uri failed domain allow"):
		return Reason{
			RedirectDomain,
			"a login would have led to a host that is not the service's: somebody changed the state or the Host, " +
				"or the service got another host meanwhile",
		}
	case begins("Code or state", "State ", "CSRF ", "Malformed oauth", "Code verifier", "Failed to decrypt"):
		return Reason{
			OutdatedLogin,
			"a browser came back from the identity provider without the cookies of that login: it took more than ten minutes, " +
				"began elsewhere or over plain HTTP, or was complete already",
		}
	case begins("jwt_authn_access_denied"):
		return tokenCheckReason(strings.TrimPrefix(what, "jwt_authn_access_denied"))
	case begins("rbac_access_denied"):
		return Reason{ClaimMissing, "a user lacks a claim that is required (require)"}
	}
	return Reason{Other, "Envoy reports an unknown reason; its log has it"}
}

// knownError returns an error that OAuth or OpenID Connect defines, otherwise empty: a provider, or a
// user who edits the URL, may write anything.
func knownError(code string) string {
	switch code {
	case "invalid_request", "unauthorized_client", "access_denied", "unsupported_response_type", "invalid_scope",
		"server_error",
		"temporarily_unavailable", "invalid_client", "invalid_grant", "unsupported_grant_type", "interaction_required",
		"login_required",
		"account_selection_required", "consent_required", "invalid_request_uri", "invalid_request_object",
		"redirect_uri_mismatch":
		return code
	}
	return ""
}

func tokenReason(status, code string) Reason {
	with := func(text string) string {
		if code == "" {
			return text
		}
		return text + " (" + code + ")"
	}
	switch {
	case code == "invalid_client" || code == "unauthorized_client" || status == "401":
		return Reason{
			WrongClientSecret,
			with("wrong client secret at the token endpoint: " +
				"the identity provider does not accept client_id with client_secret"),
		}
	case code == "invalid_grant" || code == "redirect_uri_mismatch":
		return Reason{
			CodeRefused,
			with("the token endpoint refuses the code: it was used before, took too long, " +
				"or redirect_uri is not the one that is registered"),
		}
	case status == "503":
		return Reason{
			ProviderUnreachable,
			"the token endpoint cannot be reached, or its certificate is not trusted: check the upstream's status",
		}
	case status == "504":
		return Reason{ProviderTimeout, "the token endpoint does not answer in time (5 s)"}
	case len(status) == 3 && strings.Trim(status, "0123456789") == "":
		return Reason{TokenEndpointError, with("the token endpoint answers " + status)}
	}
	return Reason{TokenEndpointError, with("the token endpoint returns no token")}
}

func authorizationReason(code string) Reason {
	switch code {
	case "access_denied":
		return Reason{UserDenied, "a user canceled the login, or may not use this client (access_denied)"}
	case "":
		return Reason{ProviderRefused, "the identity provider ends the login with an error"}
	}
	return Reason{ProviderRefused, fmt.Sprintf("the identity provider ends the login with the error %s", code)}
}

// tokenCheckReason returns the reason for jwt_authn's message about an id_token, which is in braces
// and has underscores.
func tokenCheckReason(what string) Reason {
	switch strings.ReplaceAll(strings.Trim(what, "{}"), "_", " ") {
	case "Audiences in Jwt are not allowed":
		return Reason{WrongAudience, "the id_token is for another audience: check client_id and audiences"}
	case "Jwt issuer is not configured":
		return Reason{WrongIssuer, "the id_token is from another issuer than the configured one"}
	case "Jwks doesn't have key to match kid or alg from Jwt":
		return Reason{UnknownKey, "the id_token is signed with a key that is not known; the keys are fetched again"}
	case "Jwt verification fails":
		return Reason{
			BadSignature, "the signature of the id_token is wrong: somebody forged it, or the keys are of another provider",
		}
	case "Jwt is missing":
		return Reason{
			NoIDToken,
			"there is no id_token: the identity provider sends none, or it is too large for a cookie (some 3,000 bytes)",
		}
	case "Jwt is expired":
		return Reason{TokenExpired, "the id_token has expired"}
	case "Jwt not yet valid":
		return Reason{TokenNotYetValid, "the id_token is not valid yet: the clocks differ by more than a minute"}
	}
	return Reason{BadIDToken, "the id_token cannot be verified"}
}
