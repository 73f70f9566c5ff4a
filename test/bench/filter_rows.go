package main

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1" //nolint:gosec // what Envoy compares
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// measuredFilter is a filter that is on a service of its own.
type measuredFilter struct {
	// what is the row, kind the type of the filter; empty means no filter.
	what, kind string
	// config has ownUpstream in place of the name of the route's upstream.
	config any
	// header has lines that a request needs.
	header []string
	// large says that the answers have 4 KB. They are compared with such answers without a filter.
	large bool
	// before is the measurement when the filter was chosen: the ratio of CPU time, and the additional
	// microseconds.
	before string
}

type object = map[string]any

const (
	ownUpstream = "OWN-UPSTREAM"
	processor   = "bench-processor"
	keySet      = "bench"
	origin      = "Origin: https://a.test"
)

// measuredFilters are the rows; the last one answers 200 to a request without a header.
func measuredFilters() ([]measuredFilter, error) {
	tokens, err := tokenFilters()
	if err != nil {
		return nil, err
	}
	return append(tokens,
		measuredFilter{what: "vh_filter_cors, a simple request", kind: "vh_filter_cors", config: object{"origins": []string{"https://a.test"}}, header: []string{origin}, before: "1.00, 0-4 us"},
		measuredFilter{what: "vh_filter_ipaccess, 20 ranges", kind: "vh_filter_ipaccess", config: object{"allow": ranges(20)}, before: "1.15, 6-9 us"},
		measuredFilter{what: "vh_filter_ipaccess, 2,000 ranges", kind: "vh_filter_ipaccess", config: object{"allow": ranges(2000)}, before: "1.13, 8 us"},
		measuredFilter{what: "vh_filter_maintenance, a client that passes", kind: "vh_filter_maintenance", config: object{"except": []string{"127.0.0.0/8"}}},
		measuredFilter{what: "http_filter_csrf, GET", kind: "http_filter_csrf", config: object{}, header: []string{origin}},
		measuredFilter{what: "http_filter_requestid, taken over", kind: "http_filter_requestid", config: object{"take_over": true, "echo": true}, header: []string{"X-Request-Id: a-1"}},
		measuredFilter{what: "http_filter_apikey, one key", kind: "http_filter_apikey", config: object{"keys": keySet}, header: []string{"X-Api-Key: " + benchKey()}, before: "1.15, 11 us with 10,000 keys"},
		measuredFilter{what: "http_filter_basicauth, one user", kind: "http_filter_basicauth", config: benchUsers(), header: []string{benchLogin}, before: "1.15, 6 us with 1,000 users"},
		measuredFilter{what: "http_filter_anyof, a key or a password", kind: "http_filter_anyof", config: object{
			"apikey": object{"keys": keySet}, "basicauth": benchUsers(),
		}, header: []string{benchLogin}},
		measuredFilter{what: "http_filter_consumer, nobody", kind: "http_filter_consumer", config: object{"required": false}},
		measuredFilter{what: "vh_filter_rbac, methods and a path", kind: "vh_filter_rbac", config: object{
			"allow": []object{{"methods": []string{"GET", "HEAD"}}}, "deny": []object{{"paths": []object{{"segment": "/internal"}}}},
		}},
		measuredFilter{what: "http_filter_extauthz, over HTTP", kind: "http_filter_extauthz", config: object{"upstream": ownUpstream, "path": "/check"}},
		measuredFilter{what: "http_filter_extproc, headers of requests", kind: "http_filter_extproc", config: object{"upstream": processor}},
		measuredFilter{what: "route_filter_bodylimit, no body", kind: "route_filter_bodylimit", config: object{"bytes": 1 << 20}},
		measuredFilter{what: "route_filter_fault, off", kind: "route_filter_fault", config: object{"abort": 503, "header": "x-never"}},
		measuredFilter{what: "http_filter_lua, one header", kind: "http_filter_lua", config: object{
			"script": `function envoy_on_request(h) h:headers():replace("x-team", "bench") end`,
		}, before: "1.16, 12-16 us"},
		measuredFilter{what: "route_filter_canary, two upstreams", kind: "route_filter_canary", config: object{
			"upstreams": []object{{"name": ownUpstream, "weight": 95}, {"name": "u-r00000", "weight": 5}},
		}},
		measuredFilter{what: "route_filter_affinity, by header", kind: "route_filter_affinity", config: object{"by": "header", "header": "User-Agent"}},
		measuredFilter{what: "route_filter_tracing, without a collector", kind: "route_filter_tracing", config: object{"sampling": 10}},
		measuredFilter{what: "route_filter_accesslog, without such a log", kind: "route_filter_accesslog", config: object{"logs": []string{"shop"}}},
		measuredFilter{what: "route_filter_mirror, all requests", kind: "route_filter_mirror", config: object{"upstream": ownUpstream}},
		measuredFilter{what: "route_filter_host_rewrite", kind: "route_filter_host_rewrite", config: object{"host": "inner.test"}},
		measuredFilter{what: "4 KB of text, no filter", large: true},
		measuredFilter{what: "route_filter_compress, gzip of 4 KB of text", kind: "route_filter_compress", config: object{"algorithms": []string{"gzip"}}, header: []string{"Accept-Encoding: gzip"}, large: true, before: "1.68, 44 us"},
		measuredFilter{what: "route_filter_errorpage, no error", kind: "route_filter_errorpage", config: object{
			"pages": []object{{"statuses": []string{"500-599"}, "text": "sorry"}},
		}},
		measuredFilter{what: "route_filter_headers, one in and one out", kind: "route_filter_headers", config: object{
			"request": object{"set": object{"x-team": "bench"}}, "response": object{"set": object{"x-frame-options": "DENY"}},
		}, before: "1.16, 6-9 us"},
	), nil
}

// benchLogin are the credentials of benchUsers.
const benchLogin = "Authorization: Basic YmVuY2g6Y29ycmVjdC1ob3JzZQ==" // bench:correct-horse

func benchUsers() object {
	return object{"users": []object{{"name": "bench", "password": "correct-horse"}}}
}

// tokenFilters returns the filters that verify a token. Envoy verifies the same token once and then remembers
// it.
func tokenFilters() ([]measuredFilter, error) {
	const issuer = "https://issuer.test"
	elliptic := testkit.NewTokenIssuer(issuer, "k")
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	text := testkit.TokenPart(object{"alg": "RS256", "kid": "k"}) + "." + testkit.TokenPart(object{"iss": issuer, "exp": time.Now().Add(time.Hour).Unix()})
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return nil, err
	}
	keys := fmt.Sprintf(`{"keys":[{"kty":"RSA","alg":"RS256","kid":"k","n":%q,"e":%q}]}`, testkit.Base64(key.N.Bytes()), testkit.Base64(big.NewInt(int64(key.E)).Bytes()))
	return []measuredFilter{
		{
			what: "http_filter_jwt, ES256", kind: "http_filter_jwt", config: object{"issuer": issuer, "jwks": json.RawMessage(elliptic.JWKS())},
			header: []string{"Authorization: Bearer " + elliptic.Token(nil)}, before: "2.68, 96 us without a cache",
		},
		{
			what: "http_filter_jwt, RS256", kind: "http_filter_jwt", config: object{"issuer": issuer, "jwks": json.RawMessage(keys)},
			header: []string{"Authorization: Bearer " + text + "." + testkit.Base64(signature)}, before: "1.39, 27 us",
		},
		{
			what: "http_filter_jwt, HS256 of one of three issuers", kind: "http_filter_jwt", config: object{
				"issuer": issuer, "jwks": json.RawMessage(elliptic.JWKS()), "other_issuers": []object{
					{"issuer": "two", "hmac_key": sharedKey}, {"issuer": "three", "hmac_key": sharedKey},
				},
			},
			header: []string{"Authorization: Bearer " + sharedToken("three")},
		},
	}, nil
}

// sharedKey signs tokens with HS256.
const sharedKey = "a key of 32 bytes to be measured"

func sharedToken(issuer string) string {
	text := testkit.TokenPart(object{"alg": "HS256"}) + "." + testkit.TokenPart(object{"iss": issuer, "exp": time.Now().Add(time.Hour).Unix()})
	mac := hmac.New(sha256.New, []byte(sharedKey))
	mac.Write([]byte(text))
	return text + "." + testkit.Base64(mac.Sum(nil))
}

const benchSecret = "a secret that only the benchmark has"

// benchKey is the key web of the key set, and benchHash what a control plane stores of it.
func benchKey() string {
	return base64.StdEncoding.EncodeToString([]byte(keySet + "/web:" + benchSecret))
}

func benchHash() string {
	sum := sha1.Sum([]byte(benchSecret)) //nolint:gosec // see above
	return "{SHA}" + base64.StdEncoding.EncodeToString(sum[:])
}

// ranges lists n address ranges, the last of which contains the client's address.
func ranges(n int) (list []string) {
	for i := range n - 1 {
		list = append(list, fmt.Sprintf("10.%d.%d.0/24", i/256, i%256))
	}
	return append(list, "127.0.0.0/8")
}
