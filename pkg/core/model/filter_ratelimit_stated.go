package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// StatedDomain is the rate-limit domain of the filters that state their own
// limit. No global config and no full filter can use it.
const StatedDomain = "stated-by-filters"

// The parts of a descriptor that a stated limit sends. The key of a header's
// value is not a prefix of any other: the engine joins a key and its value with
// "_", and a client chooses the value.
const (
	statedFilter = "filter"
	statedHeader = "header"
	statedAbsent = "without"
)

// StatedLimit is the short form of a rate limit. The filter contains the limit itself; no global config is needed.
// +example={per: client, limit: 5/minute}
type StatedLimit struct { // rest-api.md, "Filters and global configs"
	// What the limit counts by: client counts by client address; header:NAME by the value of a header, or by client
	// address if a request does not have the header. claim:NAME counts by a claim of the verified token, or of the
	// id_token of a login, api_client by the client of the API key, and consumer by the consumer that a http_filter_consumer finds;
	// these count only requests that have one. all counts all requests together.
	// +required
	// +pattern="^(client|api_client|consumer|all|header:[A-Za-z0-9!#$%&'*+.^_`|~-]+|claim:[!-~]+)$"
	Per string `json:"per"`
	// Requests in a unit of time.
	// +required
	// +pattern="^[0-9]{1,9}/(second|minute|hour|day|week|month|year)$"
	Limit string `json:"limit"`
	// Count, but never limit.
	Shadow bool `json:"shadow"`
}

// readStated reads the short form of a filter into the descriptors that it sends
// and the rule that they meet.
func (f *RateLimitFilter) readStated(v *validator, at, filter string, s StatedLimit) {
	rate := readRate(v, at+".limit", s.Limit)
	name := RateLimitEntry{Kind: "generic_key", Key: statedFilter, Value: filter}
	client := RateLimitEntry{Kind: "remote_address"}
	rule := RateLimitRule{Key: statedFilter, Value: filter, ShadowMode: s.Shadow}
	// within is a rule for the part that comes next.
	within := func(key, value string, rules ...RateLimitRule) RateLimitRule {
		r := RateLimitRule{Key: key, Value: value, ShadowMode: s.Shadow, Descriptors: rules}
		if len(rules) == 0 {
			r.RateLimit = rate
		}
		return r
	}
	header, byHeader := strings.CutPrefix(s.Per, "header:")
	switch {
	case s.Per == "all":
		rule.RateLimit = rate
		f.Descriptors = []RateLimitDescriptor{{name}}
	case s.Per == "client":
		rule.Descriptors = []RateLimitRule{within(client.Kind, "")}
		f.Descriptors = []RateLimitDescriptor{{name, client}}
	case byHeader:
		v.token(at+".per", header)
		rule.Descriptors = []RateLimitRule{
			within(statedHeader, ""),
			within(statedAbsent, statedHeader, within(client.Kind, "")),
		}
		// Who leaves the header out is counted too.
		absent := RateLimitEntry{
			Kind: "header_value_match", Key: statedAbsent, Value: statedHeader,
			Headers: []ValueMatch{{Name: header}}, NoMatch: true,
		}
		f.Descriptors = []RateLimitDescriptor{
			{name, {Kind: "request_headers", HeaderName: header, Key: statedHeader}},
			{name, absent, client},
		}
	case strings.HasPrefix(s.Per, "claim:"):
		claim := RateLimitEntry{Kind: "claim", Claim: strings.TrimPrefix(s.Per, "claim:")}
		v.claim(at+".per", claim.Claim)
		rule.Descriptors = []RateLimitRule{within(claim.Kind, "")}
		f.Descriptors = []RateLimitDescriptor{{name, claim}}
	case s.Per == "api_client" || s.Per == "consumer":
		key := RateLimitEntry{Kind: s.Per}
		rule.Descriptors = []RateLimitRule{within(key.Kind, "")}
		f.Descriptors = []RateLimitDescriptor{{name, key}}
	default:
		v.add(at+".per", "%q must be client, api_client, consumer, header:NAME, claim:NAME or all", s.Per)
	}
	f.Domain, f.Stated = StatedDomain, &rule
}

// readRate reads NUMBER/UNIT.
func readRate(v *validator, at, text string) *RateLimit {
	number, unit, _ := strings.Cut(text, "/")
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || !slices.Contains(RateLimitUnits(), unit) {
		v.add(at, "%q must be a number, a slash and a unit, such as 5/minute; units are %s", text,
			strings.Join(RateLimitUnits(), ", "))
		return nil
	}
	return &RateLimit{Unit: unit, RequestsPerUnit: int64(n)}
}

// refuseStatedDomain refuses the domain of filters that state their own limit.
func (v *validator) refuseStatedDomain(at, domain string) {
	if domain == StatedDomain {
		v.add(at, "%q is the domain of filters that state their own limit; choose another name", domain)
	}
}

// isShort reports whether a filter's JSON is the short form, and what it mixes
// with the full one.
func isShort(names []string) (short bool, err error) {
	full := ""
	for _, n := range names {
		switch n {
		case "per", "limit", "shadow":
			short = true
		case "domain", "descriptors":
			full = n
		}
	}
	if short && full != "" {
		return true, fmt.Errorf("has %s together with per and limit; use either the short form or domain and descriptors",
			full)
	}
	return short, nil
}
