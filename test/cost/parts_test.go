package cost_test

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha1" //nolint:gosec // what Envoy compares
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// The Envoys that are counted. Those after silent have one host each at first.
const (
	byHand = "by hand"
	silent = "log off"
	logged = "JSON access log"

	leanSilent = "lean, access log off"
	leanLogged = "lean, JSON access log"

	balanced   = "PROXY protocol"
	told       = "HTTP/2 with TLS, `Http3` of the proxy"
	passing    = "HTTPS, beside a service of mode `tls`"
	bounded    = "bounds of connections"
	located    = "a database of countries, and no list"
	collected  = "access log to a collector"
	chosen     = "JSON access log, not `always`"
	textual    = "access log of text, `always`"
	ofOthers   = "access log, `attached_only`, of other services"
	tracedNone = "traced: 0% of requests"
	tracedSome = "traced: 1% of requests"
	tracedAll  = "traced: 100% of requests"
	tracedB3   = "traced: 0% of requests, `b3`"
	sentALS    = "access log to Envoy's access log service"
	triesNone  = "traced: 0% of requests, `upstream_spans`"
	serviced   = "metrics of services"
	measured   = "metrics of services, with `routes`, `bytes` and `retries`"
	leanCounts = "lean, metrics of services"
)

// textLine is the example of docs/accesslog.md.
const textLine = "{start_time} {method} {authority}{path} {response_code} {duration_ms}ms"

// part is a row of the table: a request to an Envoy.
type part struct {
	name string
	// envoy is one of the above, and beside the part that does the same by hand.
	envoy, beside string
	// host is the name of the service; its host name is fqdn, or host.test.
	host, fqdn string
	// mode is that of the service; empty means http.
	mode string
	// tls, http2 and http3 are how the request is sent.
	tls, http2, http3 bool
	// upstream is the name of the service's upstream; empty means backend.
	upstream string
	// noise is what a count may differ by, as a part of it, where 0.5% is not enough; 0 means that it is.
	noise float64
	// kind and config are the filter of the service.
	kind   string
	config any
	// header has an additional line of the request.
	header line
	// status is that of the answer, if it is not 200.
	status int
	// absent says that there is no such service.
	absent bool
	// large says that the answer has 4 KB.
	large bool
	// batch is how many requests are counted together, if Envoy does something for many at a time; 0 means 25.
	batch int
	// warm is how many requests come before those that are counted, if a few are not enough.
	warm int
}

type (
	object = map[string]any
	list   = []any
	line   = [2]string
)

// notCounted are the types of filters without a part, with the reason.
var notCounted = map[string]string{
	"http_filter_extproc":    "waits for its processor for a fixed time, which is too short while Envoy is counted",
	"http_filter_oidc":       "needs a login at an identity provider first",
	"route_filter_ratelimit": "waits for the rate-limit engine for a fixed time, like `http_filter_extproc`",
}

// parts returns all rows. Those of a filter have a service each.
func parts() []part {
	rows := []part{
		{name: byHand, envoy: byHand, host: "plain"},
		{name: "by hand, HTTPS", envoy: byHand, host: "plain", tls: true},
		{name: "by hand, HTTP/2 with TLS", envoy: byHand, host: "plain", tls: true, http2: true},
		{name: "default, access log off", envoy: silent, host: "plain"},
		{name: logged, envoy: logged, host: "plain"},
		{name: leanSilent, envoy: leanSilent, host: "plain"},
		{name: leanLogged, envoy: leanLogged, host: "plain"},
		{name: balanced, envoy: balanced, host: "plain"},
		{name: bounded, envoy: bounded, host: "plain"},
		{name: located, envoy: located, host: "plain"},
		{
			name: "a list of countries", envoy: located, host: "german",
			kind: "vh_filter_ipaccess", config: object{"allow_countries": list{"AT", "CH", "DE"}},
		},
		{name: collected, envoy: collected, host: "plain"},
		{name: sentALS, envoy: sentALS, host: "plain"},
		{name: chosen, envoy: chosen, host: "plain"},
		{name: textual, envoy: textual, host: "plain"},
		{name: ofOthers, envoy: ofOthers, host: "plain"},
		{name: tracedNone, envoy: tracedNone, host: "plain"},
		{name: tracedSome, envoy: tracedSome, host: "plain"},
		{name: tracedAll, envoy: tracedAll, host: "plain", batch: 300}, // Envoy sends 50 spans at a time
		{name: tracedB3, envoy: tracedB3, host: "plain"},
		{name: triesNone, envoy: triesNone, host: "plain"},
		{name: serviced, envoy: serviced, host: "plain"},
		{name: measured, envoy: measured, host: "plain"},
		{name: leanCounts, envoy: leanCounts, host: "plain"},
		{name: "HTTPS", envoy: silent, host: "plain", tls: true, beside: "by hand, HTTPS"},
		{name: passing, envoy: passing, host: "plain", tls: true, beside: "by hand, HTTPS"},
		{name: "HTTP/2 with TLS", envoy: silent, host: "plain", tls: true, http2: true, beside: "by hand, HTTP/2 with TLS"},
		{name: told, envoy: told, host: "plain", tls: true, http2: true, beside: "by hand, HTTP/2 with TLS"},
		{name: "HTTP/3", envoy: told, host: "plain", http3: true, noise: 0.05, beside: "by hand, HTTP/2 with TLS"},
		{name: "`Upstream_proxyprotocol`", envoy: silent, host: "told-who", upstream: "told-who"},
		{name: "a wildcard host", envoy: silent, host: "wild", fqdn: "*.wild.test"},
		{name: "404 for an unknown host", envoy: silent, host: "nobody", absent: true, status: http.StatusNotFound},
		{
			name: "403 for a refused address", envoy: silent, host: "closed", status: http.StatusForbidden,
			kind: "vh_filter_ipaccess", config: object{"deny": list{"127.0.0.0/8"}},
		},
		{
			name: "403 for a refused address, as a page", envoy: silent, host: "closed", status: http.StatusForbidden,
			header: line{"Accept", "text/html,*/*;q=0.8"},
		},
		{
			name: "403 for a refused address, as JSON", envoy: silent, host: "closed", status: http.StatusForbidden,
			header: line{"Accept", "application/json, text/plain, */*"},
		},
		{
			name: "401 without a password", envoy: silent, host: "locked", status: http.StatusUnauthorized,
			kind: "http_filter_basicauth", config: users(),
		},
		{
			name: "403 of a rule", envoy: silent, host: "ruled", status: http.StatusForbidden,
			kind: "vh_filter_rbac", config: object{"allow": list{object{"methods": list{"PUT"}}}},
		},
		sharedToken(),
		{
			name: "503 of a fault", envoy: silent, host: "faulty", status: http.StatusServiceUnavailable,
			kind: "route_filter_fault", config: object{"abort": 503},
		},
	}
	for i, p := range filters() {
		p.name, p.envoy, p.host = "`"+p.kind+"`", silent, fmt.Sprintf("filter-%02d", i)
		rows = append(rows, p)
	}
	// The last one, because the Envoy gets these hosts for it.
	return append(rows, part{name: "JSON access log, 1,000 hosts", envoy: logged, host: manyHosts()[500].host})
}

// manyHosts are services for the last part.
func manyHosts() (hosts []part) {
	for i := range 1000 {
		hosts = append(hosts, part{host: fmt.Sprintf("host-%03d", i)})
	}
	return hosts
}

// sharedToken is a token of the last of three issuers, which is signed with a shared key and needs a scope.
func sharedToken() part {
	const key = "a key of 32 bytes to be counted!"
	text := testkit.TokenPart(object{"alg": "HS256"}) + "." + testkit.TokenPart(object{"iss": "three", "scope": "write read", "exp": 4102444800})
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(text))
	var others list
	for _, name := range []string{"two", "three"} {
		others = append(others, object{"issuer": name, "hmac_key": key, "scopes": list{"read"}})
	}
	return part{
		name: "a token of the last of three issuers, HS256, with a scope", envoy: silent, host: "issuers", kind: "http_filter_jwt",
		config: object{"issuer": "one", "jwks": json.RawMessage(testkit.NewTokenIssuer("one", "k").JWKS()), "other_issuers": others},
		header: line{"Authorization", "Bearer " + text + "." + testkit.Base64(mac.Sum(nil))},
	}
}

func users() object {
	return object{"users": list{object{"name": "cost", "password": "correct-horse-battery"}}}
}

// filters are the parts with a filter each, with requests that it lets pass.
func filters() []part {
	const origin = "https://a.test"
	issuer := testkit.NewTokenIssuer("https://issuer.test", "k")
	keys := object{"issuer": issuer.Issuer, "jwks": json.RawMessage(issuer.JWKS())}
	login := line{"Authorization", "Basic " + encoded("cost:correct-horse-battery")}
	return []part{
		{kind: "route_filter_directresponse", config: object{"body": "hello"}},
		{kind: "route_filter_redirect", config: object{"path": "/new"}, status: http.StatusTemporaryRedirect},
		{kind: "route_filter_host_rewrite", config: object{"host": "inner.test"}},
		{kind: "http_filter_requestid", config: object{"take_over": true, "echo": true}, header: line{"X-Request-Id", "a-1"}},
		{kind: "vh_filter_cors", config: object{"origins": list{origin}}, header: line{"Origin", origin}},
		{kind: "route_filter_compress", config: object{"algorithms": list{"gzip"}}, large: true},
		{kind: "route_filter_errorpage", config: object{"pages": list{object{"statuses": list{"500-599"}, "text": "sorry"}}}},
		{kind: "vh_filter_ipaccess", config: object{"allow": list{"127.0.0.0/8"}}},
		{kind: "vh_filter_maintenance", config: object{"except": list{"127.0.0.0/8"}}},
		{kind: "http_filter_csrf", config: object{}, header: line{"Origin", origin}},
		{kind: "http_filter_jwt", config: keys, header: line{"Authorization", "Bearer " + issuer.Token(nil)}},
		{kind: "http_filter_apikey", config: object{"keys": "set"}, header: line{"X-Api-Key", encoded("set/web:" + secret)}},
		{kind: "http_filter_basicauth", config: users(), header: login},
		{kind: "http_filter_anyof", config: object{"apikey": object{"keys": "set"}, "basicauth": users()}, header: login},
		{kind: "http_filter_consumer", config: object{"required": false}},
		{kind: "vh_filter_rbac", config: object{
			"allow": list{object{"methods": list{"GET", "HEAD"}}}, "deny": list{object{"paths": list{object{"segment": "/internal"}}}},
		}},
		{kind: "route_filter_bodylimit", config: object{"bytes": 1 << 20}},
		// A slow Envoy needs more than the default time.
		{kind: "http_filter_extauthz", config: object{"upstream": "backend", "path": "/check", "timeout": "1m"}},
		{kind: "route_filter_fault", config: object{"abort": 503, "header": "x-never"}},
		{kind: "http_filter_lua", config: object{
			"script": `function envoy_on_request(h) h:headers():replace("x-team", "cost") end`,
		}, warm: 300}, // LuaJIT compiles it meanwhile
		{kind: "route_filter_headers", config: object{
			"request": object{"set": object{"x-team": "cost"}}, "response": object{"set": object{"x-frame-options": "DENY"}},
		}},
		{kind: "route_filter_affinity", config: object{"by": "header", "header": "User-Agent"}},
		// These two are on, and the request is none for them.
		{kind: "http_filter_grpcweb", config: object{}},
		{kind: "http_filter_grpcjson", config: object{
			"descriptor_set": testkit.BooksSet(), "services": list{"shop.Books"}, "unknown_paths": "pass",
		}},
		{kind: "route_filter_tracing", config: object{"tags": list{object{"name": "team", "value": "cost"}}}},
		{kind: "route_filter_accesslog", config: object{"logs": list{"other"}}},
		{kind: "route_filter_mirror", config: object{"upstream": "backend"}},
		{kind: "route_filter_canary", config: object{
			"upstreams": list{object{"name": "backend", "weight": 50}, object{"name": "other", "weight": 50}},
		}},
	}
}

// services are the parts of an Envoy without those whose service another one has.
func services(rows []part, envoy string) (own []part) {
	for _, p := range rows {
		if p.envoy == envoy && !p.absent && !slices.ContainsFunc(own, func(o part) bool { return o.host == p.host }) {
			own = append(own, p)
		}
	}
	return own
}

// secret is that of the API key, and hash what the gateway keeps of it.
const secret = "a secret that only this suite has"

func hash() string {
	sum := sha1.Sum([]byte(secret)) //nolint:gosec // see above
	return "{SHA}" + encoded(string(sum[:]))
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// document is the configuration with the services of parts. The secret is in the store already.
func document(w world, services []part) object {
	upstream := func(name string) object {
		return object{"upstream_name": name, "upstream_ip": "127.0.0.1", "upstream_port": w.backend}
	}
	filters, all := list{}, list{}
	for _, p := range services {
		s := object{
			"service_name": p.host, "fqdn": p.domain(), "proxies": list{"gw"},
			"routes": list{object{"route_name": "root", "route_prefix": "/", "upstreams": list{cmp.Or(p.upstream, "backend")}}},
		}
		if p.mode != "" {
			s["mode"] = p.mode
		}
		if p.host == "plain" {
			s["secrets"] = list{"plain"}
		}
		if p.kind != "" {
			filters = append(filters, object{"filter_name": p.host, "filter_type": p.kind, "filter_config": p.config})
			s["filters"] = list{p.host}
		}
		all = append(all, s)
	}
	return object{
		"version": 1, "filters": filters, "services": all,
		"upstreams": list{upstream("backend"), upstream("other"), object{
			"upstream_name": "told-who", "upstream_ip": "127.0.0.1", "upstream_port": w.toldWho, "upstream_proxyprotocol": "v1",
		}, object{
			"upstream_name": "collector", "upstream_ip": "127.0.0.1", "upstream_port": w.collector, "upstream_protocol": "h2c",
		}},
		"secrets":       list{object{"secret_name": "plain", "secret_type": "tls"}},
		"globalconfigs": w.globals,
		"keysets":       list{object{"keyset_name": "set", "keys": list{object{"key_name": "web", "key_hash": hash()}}}},
	}
}

// domain is the host name of the part's service.
func (p part) domain() string {
	if p.fqdn != "" {
		return p.fqdn
	}
	return p.host + ".test"
}
