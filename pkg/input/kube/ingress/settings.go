package ingress

import (
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// settings are what the annotations of an Ingress say of all its routes.
type settings struct {
	// closed says that something that restricts requests is not translated.
	closed bool
	// answers says that a filter answers, and no Service.
	answers                                 bool
	filters                                 []string
	timeouts                                *gatewayv1.Timeouts
	backend                                 gatewayv1.BackendSettings
	useRegex, noRedirect, forceRedirect     bool
	www                                     bool
	aliases                                 []string
	rewriteTarget, appRoot, clientCA, vhost string
}

// isRegex reports whether nginx reads the paths of the Ingress as regular expressions.
func (s *settings) isRegex() bool { return s.useRegex || s.rewriteTarget != "" }

// settings reads the annotations, once.
func (r *reading) settings() *settings {
	if r.made != nil {
		return r.made
	}
	r.made = &settings{}
	for _, read := range []func(){
		r.redirects, r.paths, r.cors, r.addresses, r.rates, r.body, r.timeouts, r.protocol, r.verify, r.external, r.passwords,
		r.clientCertificates, r.sticky, r.balance, r.snippets, r.issuer,
	} {
		read()
	}
	return r.made
}

// add adds a filter to all routes.
func (r *reading) add(what, kind string, config map[string]any) {
	r.made.filters = append(r.made.filters, r.filter(what, kind, config))
}

// redirects reads what answers in place of a Service.
func (r *reading) redirects() {
	s := r.made
	if v, ok := r.value("ssl-redirect"); ok {
		s.noRedirect = v == "false"
	}
	s.forceRedirect, s.www = r.is("force-ssl-redirect"), r.is("from-to-www-redirect")
	s.appRoot, _ = r.value("app-root")
	if list, _ := r.value("server-alias"); list != "" {
		s.aliases = words(list)
	}
	for _, kind := range []struct {
		name string
		code int
	}{{"temporal-redirect", 302}, {"permanent-redirect", 301}} {
		code, _ := r.value(kind.name + "-code")
		target, ok := r.value(kind.name)
		if !ok || s.answers {
			continue
		}
		if n, err := strconv.Atoi(code); err == nil {
			kind.code = n
		}
		config, err := redirectTo(target, kind.code)
		if err != nil {
			r.closes(prefix+kind.name, "%s", err)
			continue
		}
		r.add("redirect", "route_filter_redirect", config)
		s.answers = true
	}
}

// redirectTo returns the filter for nginx's "return CODE URL".
func redirectTo(target string, code int) (map[string]any, error) {
	rest, keeps := strings.CutSuffix(target, "$request_uri")
	u, err := url.Parse(rest)
	if err != nil || strings.Contains(rest, "$") || u.Host == "" {
		return nil, fmt.Errorf("%q is no URL, or has variables: write the redirect by hand", target)
	}
	config := map[string]any{"scheme": u.Scheme, "host": u.Hostname(), "code": code}
	if port, err := strconv.Atoi(u.Port()); err == nil {
		config["port"] = port
	}
	switch {
	case !keeps && u.RawQuery != "":
		config["path"] = "/" + strings.TrimPrefix(u.EscapedPath(), "/") + "?" + u.RawQuery
	case !keeps:
		config["path"], config["strip_query"] = "/"+strings.TrimPrefix(u.EscapedPath(), "/"), true
	case u.Path != "":
		return nil, fmt.Errorf("%q has a path before $request_uri: write the redirect by hand", target)
	}
	return config, nil
}

// paths reads how paths are matched and changed.
func (r *reading) paths() {
	s := r.made
	s.useRegex = r.is("use-regex")
	s.rewriteTarget, _ = r.value("rewrite-target")
	s.vhost, _ = r.value("upstream-vhost")
	if rest := variable.ReplaceAllString(s.rewriteTarget, ""); strings.Contains(rest, "$") {
		r.closes(prefix+"rewrite-target", "%q has a variable of nginx: write the rewrite by hand", s.rewriteTarget)
	}
}

// variable is a group of a path.
var variable = regexp.MustCompile(`\$([0-9])`)

// isRE2 reports whether a path is a regular expression that Envoy understands.
func isRE2(path string) bool {
	_, err := regexp.Compile(regexOf(path))
	return err == nil && strings.HasPrefix(path, "/")
}

// regexOf returns the expression for whole paths of nginx's "location ~* ^PATH".
func regexOf(path string) string { return "/(?i:" + strings.TrimPrefix(path, "/") + ").*" }

// rewriteOf returns the rewrite of a path: nginx replaces the whole path.
func (s *settings) rewriteOf(path string) *gatewayv1.Rewrite {
	if s.rewriteTarget == "" && s.vhost == "" {
		return nil
	}
	w := &gatewayv1.Rewrite{Host: s.vhost}
	if s.rewriteTarget != "" {
		w.Regex = "^" + regexOf(path) + "$"
		w.Substitution = variable.ReplaceAllString(strings.ReplaceAll(s.rewriteTarget, `\`, `\\`), `\$1`)
		if !strings.HasPrefix(s.rewriteTarget, "/") {
			w.Substitution = "/" + w.Substitution
		}
	}
	return w
}

// cors reads what pages of other origins may do.
func (r *reading) cors() {
	list := func(name, absent string) []string {
		v, ok := r.value(name)
		if !ok {
			v = absent
		}
		return words(v)
	}
	origins, methods := list("cors-allow-origin", "*"), list("cors-allow-methods", "GET, PUT, POST, DELETE, PATCH, OPTIONS")
	headers := list("cors-allow-headers", "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,Authorization")
	expose, credentials, age := list("cors-expose-headers", ""), list("cors-allow-credentials", "true"), list("cors-max-age", "1728000")
	if !r.is("enable-cors") {
		return
	}
	config := map[string]any{"methods": methods, "headers": headers}
	if len(expose) > 0 {
		config["expose"] = expose
	}
	every, allowed := false, []any{}
	for _, o := range origins {
		before, after, wild := strings.Cut(o, "*")
		switch {
		case o == "*":
			every = true
			allowed = append(allowed, o)
		case wild:
			allowed = append(allowed, map[string]any{"regex": regexp.QuoteMeta(before) + "[A-Za-z0-9-]+" + regexp.QuoteMeta(after)})
		default:
			allowed = append(allowed, o)
		}
	}
	config["origins"] = allowed
	if len(credentials) == 1 && credentials[0] == "true" && !every { // browsers ignore it with any origin
		config["credentials"] = true
	}
	if n, err := strconv.Atoi(strings.Join(age, "")); err == nil {
		config["max_age"] = min(n, 86_400) // browsers remember no longer
	}
	r.add("cors", "vh_filter_cors", config)
}

// addresses reads who may connect.
func (r *reading) addresses() {
	config := map[string]any{}
	for _, kind := range []struct{ name, field string }{
		{"whitelist-source-range", "allow"}, {"allowlist-source-range", "allow"}, {"denylist-source-range", "deny"},
	} {
		v, ok := r.value(kind.name)
		if !ok {
			continue
		}
		list := words(v)
		for _, a := range list {
			if _, err := netip.ParsePrefix(a); err == nil {
				continue
			}
			if _, err := netip.ParseAddr(a); err != nil {
				r.closes(prefix+kind.name, "%q is no address or range", a)
				return
			}
		}
		config[kind.field] = list
	}
	if len(config) > 0 {
		r.add("addresses", "vh_filter_ipaccess", config)
	}
}

// rates reads how many requests a client may send.
func (r *reading) rates() {
	for _, kind := range []struct{ name, unit string }{{"limit-rps", "second"}, {"limit-rpm", "minute"}} {
		v, ok := r.value(kind.name)
		if !ok {
			continue
		}
		if n, err := strconv.Atoi(v); err != nil || n < 1 {
			r.note(prefix+kind.name, "%q is no number of requests", v)
			continue
		}
		r.add(kind.unit, "route_filter_ratelimit", map[string]any{"per": "client", "limit": v + "/" + kind.unit})
		r.note(prefix+kind.name, "a request over the limit gets 429 and not 503, and the limit has no burst (nginx: 5 times as many)")
	}
	r.value("limit-burst-multiplier")
}

// body reads how large a body may be.
func (r *reading) body() {
	v, ok := r.value("proxy-body-size")
	if !ok {
		return
	}
	const name, most = prefix + "proxy-body-size", 100 << 20
	n, err := size(v)
	switch {
	case err != nil:
		r.note(name, "%s", err)
	case n == 0: // no limit
	case n > most:
		r.note(name, "a limit may be 100m: this one is left out")
	default:
		r.add("body", "route_filter_bodylimit", map[string]any{"bytes": n})
	}
}

// size returns the bytes of a size of nginx, such as 8m.
func size(v string) (int, error) {
	units := map[string]int{"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
	unit, digits := 1, strings.ToLower(v)
	if n := len(digits); n > 0 && units[digits[n-1:]] > 0 {
		unit, digits = units[digits[n-1:]], digits[:n-1]
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n < 0 || n > 1<<32 {
		return 0, fmt.Errorf("%q is no size", v)
	}
	return n * unit, nil
}

// timeouts reads how long a Service may take.
func (r *reading) timeouts() {
	longest := 0
	for _, name := range []string{"proxy-read-timeout", "proxy-send-timeout", "proxy-connect-timeout"} {
		v, ok := r.value(name)
		if !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSuffix(v, "s"))
		switch {
		case err != nil || n < 1:
			r.note(prefix+name, "%q is no number of seconds", v)
		case name == "proxy-connect-timeout":
			seconds := int32(min(n, 3600)) // #nosec G115 -- it is small
			r.made.backend.Connection = &gatewayv1.Connection{ConnectTimeoutSeconds: &seconds}
		default:
			longest = max(longest, min(n, 86_400))
		}
	}
	if longest > 0 {
		r.made.timeouts = &gatewayv1.Timeouts{Idle: gatewayv1.Duration(fmt.Sprintf("%ds", longest))}
	}
}

// words splits a list with commas or spaces.
func words(list string) []string {
	return strings.FieldsFunc(list, func(c rune) bool { return c == ',' || c == ' ' || c == '\n' || c == '\t' })
}
