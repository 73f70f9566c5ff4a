package explain_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

// generator makes configurations, and requests that nearly match them.
type generator struct {
	rng      *rand.Rand
	backend  int
	upstream int
	paths    []string
	domains  []string
	// tld replaces the last label of all host names; empty keeps it.
	tld string
}

func newGenerator(seed uint64, backend int) *generator {
	return &generator{rng: rand.New(rand.NewPCG(seed, 31)), backend: backend}
}

func pick[T any](g *generator, list ...T) T { return list[g.rng.IntN(len(list))] }

// chance is true once in n times.
func (g *generator) chance(n int) bool { return g.rng.IntN(n) == 0 }

// configuration returns objects that are all valid.
func (g *generator) configuration() []model.Object {
	var objects []model.Object
	domains := []string{
		"*", "*.test", "*.a.test", "*.b.a.test", "a.test", "b.a.test", "c.b.a.test", "A.Mixed.test", "x-y.test", "localhost", "test", "*.Mixed.test",
		"127.0.0.1", "a1.b2.c3.test", "*.c3.test",
	}
	g.rng.Shuffle(len(domains), func(i, j int) { domains[i], domains[j] = domains[j], domains[i] })
	for i, domain := range domains[:2+g.rng.IntN(8)] {
		if g.tld != "" {
			domain = strings.ReplaceAll(domain, "test", g.tld)
		}
		s := model.NewService()
		s.Name, s.FQDN = fmt.Sprintf("s%d", i), domain
		g.domains = append(g.domains, domain)
		objects = append(objects, s, &model.ProxyService{Proxy: proxyName, Service: s.Name})
		for j := range 1 + g.rng.IntN(8) {
			objects = append(objects, g.route(s.Name, fmt.Sprintf("s%dr%d", i, j), false)...)
		}
		if !g.chance(3) {
			objects = append(objects, g.route(s.Name, fmt.Sprintf("s%drest", i), true)...)
		}
	}
	return objects
}

// route returns a route and, if it forwards, its own upstream. A route for the rest has
// no conditions.
func (g *generator) route(service, name string, rest bool) []model.Object {
	for {
		r := &model.Route{Service: service, Name: name}
		r.Config.Match = pick(g, "", "prefix", "segment", "segment", "exact", "exact", "regex", "template")
		r.Prefix = pick(g, "/", "/", "/a", "/a/", "/a/b", "/a/b/", "/A", "/A/b", "/a.b", "/a-b", "/shop", "/shopping", "/shop/cart", "/~a", "/a;b",
			"/a,b", "/a%20b", "/%7Ba%7D", "/a=b", "/a:b", "/a@b", "/...", "/a$", "/(a)", "/a+b", "/a!", "/a'b", "/%41", "/a%2Fb", "/%C3%A9", "/a*")
		if r.Config.Match == "regex" {
			r.Prefix = pick(g, "/[a-z]+", "/.*", "/a(/.*)?", "/item/[0-9]+", "/(a|ab)(/b)?", "/[^/]*", "/a.b", `/a\.b`, "/(?i:shop).*", "/a/?b?",
				"/.{3}", `/\w+/\d*`, "/(a|b|shop)/?.*", "/%7B.*", "/([a-z]+)/([a-z]+)")
		}
		if r.Config.Match == model.MatchTemplate {
			r.Prefix = pick(g, "/{id}", "/{id}/", "/*", "/**", "/a/{id}", "/{id}/b", "/{a=*}/{b}", "/shop/{rest=**}", "/{rest=**}/b", "/a/*/**", "/a(b)/{id}", "/item/{n}/x$y+z")
		}
		if g.chance(3) {
			for range 1 + g.rng.IntN(3) {
				r.Config.Methods = append(r.Config.Methods, pick(g, "GET", "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PROPFIND"))
			}
		}
		for g.chance(3) {
			r.Config.Headers = append(r.Config.Headers, g.headerMatch())
		}
		for g.chance(4) {
			r.Config.Query = append(r.Config.Query, g.value(model.ValueMatch{Name: pick(g, "v", "w", "V", "long-name")}, "1", "2", "a", "12", "%31"))
		}
		no := false
		if g.chance(5) {
			r.Config.Websocket = &no
		}
		if rest {
			r.Prefix, r.Config = "/", model.RouteConfig{}
		}
		g.rewrite(&r.Config)
		if len(r.Validate()) > 0 {
			continue
		}
		g.paths = append(g.paths, r.Prefix)
		if g.chance(3) {
			return []model.Object{r}
		}
		g.upstream++
		u := model.NewUpstream()
		u.Name, u.Port = fmt.Sprintf("u%d", g.upstream), g.backend
		u.IP = fmt.Sprintf("127.0.%d.%d", 1+g.upstream/200, 1+g.upstream%200)
		return []model.Object{r, u, &model.RouteUpstream{Service: service, Route: name, Upstream: u.Name}}
	}
}

func (g *generator) headerMatch() model.ValueMatch {
	m := model.ValueMatch{Name: pick(g, "x-a", "x-a", "x_a", "X-B", "x-b", "accept", "cookie", "user-agent", "te", "x-forwarded-proto", "x-request-id", "connection",
		"x-envoy-internal", "x-envoy-attempt-count", "x-forwarded-host", "forwarded", "x-forwarded-for", "upgrade", ":method", ":authority", ":path", ":scheme", "host", "content-type", "x-only")}
	if !g.chance(4) {
		values := []string{"1", "2", "a", "A", "12", "a,b", "é", "1,2"}
		switch m.Name {
		case ":method":
			values = []string{"GET", "POST"}
		case ":authority", "host":
			values = []string{"a.test", "b.a.test", "a.test:80", "A.test"}
		case ":path":
			values = []string{"/a", "/a?v=1", "/shop"}
		case ":scheme", "x-forwarded-proto":
			values = []string{"http", "https"}
		case "x-request-id", "x-forwarded-for": // their values are Envoy's
			values = nil
		}
		if values != nil {
			m = g.value(m, values...)
		}
	}
	m.Invert = g.chance(4)
	return m
}

// value adds a condition on the value, or sometimes none.
func (g *generator) value(m model.ValueMatch, values ...string) model.ValueMatch {
	v := pick(g, values...)
	switch g.rng.IntN(5) {
	case 0, 1:
		m.Exact = &v
	case 2:
		m.Prefix = &v
	case 3:
		v = pick(g, "[0-9]+", "a.*", ".+", ".", "..", "[^a]+", "(1|2|a)", "(?i)A", `\d\d?`, "é.?", "GET|POST", "[a-z.]+", "/.*", `[^,]*`, "http.?")
		m.Regex = &v
	}
	return m
}

func (g *generator) rewrite(c *model.RouteConfig) {
	switch g.rng.IntN(6) {
	case 0:
		c.Rewrite = &model.Rewrite{Prefix: pick(g, "/", "/v2", "/v2/", "/x/y")}
	case 1:
		c.Rewrite = &model.Rewrite{Regex: pick(g, "^/([a-z]+)", "/", "[0-9]+", "(a)|(b)", "^/", "a*", ".", "/([^/]*)$"),
			Substitution: pick(g, "/x", `/\1`, `\1\0`, "", `\\`, "é")}
	case 2:
		c.Rewrite = &model.Rewrite{Host: pick(g, "inner.test", "inner.test:8080")}
	case 3:
		if c.Match == model.MatchTemplate {
			c.Rewrite = &model.Rewrite{Template: pick(g, "/v2", "/v2/", "/v2/{id}", "/{b}/{a}", "/x{rest}", "/{rest}/y", "/{id}{id}")}
		}
	}
}

// request returns a request that is odd somewhere, mostly not everywhere.
func (g *generator) request() explain.Request {
	r := explain.Request{Method: "GET", Target: g.target()}
	if g.chance(3) {
		r.Method = pick(g, "POST", "PUT", "HEAD", "DELETE", "OPTIONS", "PATCH", "TRACE", "PROPFIND", "PURGE", "MSEARCH")
		if g.chance(12) {
			r.Method = pick(g, "get", "FOO", "QUERY", "GETT", "Get", "PRI", "M-SEARCH")
		}
	}
	r.Headers = append(r.Headers, explain.Header{Name: pick(g, "Host", "Host", "host", "HOST"), Value: g.host()})
	if g.chance(80) {
		r.Headers = nil
	}
	for g.chance(2) {
		r.Headers = append(r.Headers, g.header())
	}
	if g.chance(30) {
		r.Headers = append(r.Headers, explain.Header{Name: "Host", Value: g.host()})
	}
	if g.chance(25) {
		r.Headers = append(r.Headers, explain.Header{Name: "Connection", Value: pick(g, "Upgrade", "upgrade", "keep-alive, Upgrade")},
			explain.Header{Name: "Upgrade", Value: pick(g, "websocket", "WebSocket", "foo", "h2c", "")})
	}
	return r
}

func (g *generator) host() string {
	h := pick(g, g.domains...)
	if rest, ok := strings.CutPrefix(h, "*"); ok {
		h = pick(g, "a", "b", "z", "a.b", "", "A", "a-b", "x.a") + rest
	}
	if g.chance(6) {
		h = pick(g, "a.test", "nowhere", "b.a.test", "test", ".test", "..test", "a..test", "*.test", "*", "[::1]", "[::1]:80", "127.0.0.1", "1.2.3.4:80")
	}
	if g.chance(4) {
		h = strings.ToUpper(h)
	}
	if g.chance(4) {
		h += pick(g, ":80", ":8080", ":", ":x", ":80:81", ":0")
	}
	if g.chance(12) {
		h += "."
	}
	if g.chance(12) {
		h = strings.Replace(h+":", ":", pick(g, ".:", "..:", ".:80:"), 1)
	}
	if g.chance(25) {
		h = pick(g, "", "a_b.test", "a b.test", "a/b.test", "user@a.test", "u:p@a.test", "a.test,b.a.test", "a%2etest", "{a}.test", "é.test", "a|test", "a.test#x",
			"a.test?x", "a~b.test", `a\b.test`, `"a.test"`, "a.test..", "a.test.:80.", ".", "[::1].", "[::1].:80", "::1", "[", "a.test:+1", "a.test:99999", "%61.test", "a.test.,b.a.test", "*.a.test", "a-.test", "_", "a!$&'()*+;=.test", "]a.test:80", "a.test]:80", ":80", "a\x01.test", "a`b.test", "a^b.test")
	}
	return h
}

func (g *generator) header() explain.Header {
	h := explain.Header{
		Name: pick(g, "x-a", "x-a", "X-A", "x-b", "accept", "Accept", "cookie", "user-agent", "te", "x-forwarded-proto", "x-request-id", "x-envoy-internal",
			"x-forwarded-for", "content-type", "x-only", "upgrade", "x-forwarded-host", "keep-alive", "x-envoy-attempt-count", "X-Envoy-Original-Url", "Forwarded",
			"x-envoy-upstream-stream-duration-ms"),
		Value: pick(g, "1", "2", "a", "A", "12", "a,b", "é", "", " 1 ", "1\t", "\xff", "\xe9x", "1,2", "trailers", "gzip, trailers", "http", "a\tb"),
	}
	if g.chance(20) {
		h.Name = pick(g, "x_a", "x a", "x@a", "x/a", "xä", "x(a)", "x\x01a", "x-a ")
	}
	if g.chance(30) {
		h.Value += pick(g, "\x01", "\x7f", "\x1f", "\x0b")
	}
	if g.chance(20) {
		h.Name, h.Value = "Connection", pick(g, "x-a", "keep-alive", "X-B, x-a", "host", "close", "x-forwarded-for", "te", "accept", "x-only,", ":authority", "x-a, keep-alive",
			"x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "connection, x-a", "cookie, user-agent", ":path", "x-b x-a", "a,b,c,d,e,f,g,h,i,j,k,x-a",
			"content-type", "x-request-id", "X-A;q=1", "upgrade", "TE, x-a", "x-envoy-internal")
	}
	if g.chance(40) {
		h.Name, h.Value = "content-type", pick(g, "application/grpc", "application/grpc+proto", "application/grpc-web", "application/json", "application/grpcx")
	}
	return h
}

// target returns a path of some route with oddities, and a query.
func (g *generator) target() string {
	p := pick(g, g.paths...)
	for _, variable := range []string{"{id}", "{a=*}", "{b}", "{n}", "{rest=**}", "**", "*"} {
		p = strings.Replace(p, variable, pick(g, "a", "b", "12", "", "a/b", "a*", "[a]", "a=b", "é"), 1)
	}
	if strings.ContainsAny(p, `[(\?`) || g.chance(4) {
		p = "/" + strings.Join([]string{pick(g, "a", "b", "shop", "item", "x", "ab"), pick(g, "", "a", "b", "12", "cart", "a.b")}, "/")
	}
	if g.chance(3) {
		p += pick(g, "/", "x", "/b", "/b/c", "/12", "//", ".", "/.")
	}
	for g.chance(3) {
		at := 1 + g.rng.IntN(len(p))
		odd := pick(g, "/./", "/../", "//", "/..", "%2e", "%2E%2e", "/%2e%2e/", "%2F", "%2f", "%5C", `\`, ";x=1", "/..;/", "/.;a/", "..;", "%41", "%61", "%zz", "%", "%4",
			"%00", "{", "}", "|", "^", "`", `"`, "<", ">", "~", "%7e", "%7E", "%25", "%2", "%%34%31", "%%341", "%4%31", "%25%34%31", "%3f", "%23", "%20", "%C3%a9", "é", "\x0c",
			"'", "(", "[", ":", "@", "&", "=", "+", "$", ",", "!", "*", "A", "/.a/", "/...", "/..a/", "%0a", "%7f", "%2e%2", "..%2f", "%2f..", "%%30%30", "%%2e", "%252e",
			"..", ".", "%5c..", "..\\", "%2e.", ".%2E")
		p = p[:at] + odd + p[at:]
	}
	if g.chance(8) && len(p) > 1 { // escape any character
		at := 1 + g.rng.IntN(len(p)-1)
		p = p[:at] + fmt.Sprintf(pick(g, "%%%02x", "%%%02X"), p[at]) + p[at+1:]
	}
	if g.chance(3) {
		p += pick(g, "?v=1", "?v=2&v=1", "?v", "?v=", "?w=12&v=a", "?V=1", "?v=%31", "?%76=1", "?", "??v=1", "?a&v=1", "?a;v=1", "?&v=1&", "?v=1=2", "?=1", "?v=1?",
			"?long-name=1", "?v=/../a//b", "?v=%2F", "?v={}|^`", "?v=1#x", "?v=1&w=2", `?v="`, "?v=%00", "?w", "?v=é")
	}
	if g.chance(120) {
		p += "#frag"
	}
	return p
}
