package kong

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

// translation makes the filter of a plugin. Its result has no type if the plugin has none; closed says then that routes
// with the plugin must not be served, since it decides who may send requests.
type translation func(b *builder, p *plugin) (filterType string, config any, closed bool)

// translations are those by the name of the plugin. See limits for rate-limiting.
func translations() map[string]translation {
	return map[string]translation{
		"key-auth": keyAuth, "basic-auth": basicAuth, "jwt": jwtAuth, "acl": acl, "ip-restriction": ipRestriction, "cors": cors,
		"request-transformer": requestTransformer, "response-transformer": responseTransformer,
		"request-size-limiting": sizeLimit, "correlation-id": correlationID, "request-termination": termination,
	}
}

// decidesAccess reports whether a plugin without a translation decides who may send requests.
func decidesAccess(name string) bool {
	return strings.Contains(name, "auth") || slices.Contains([]string{
		"session", "openid-connect", "acl", "ip-restriction", "bot-detection", "opa", "pre-function", "post-function", "jwt-signer",
		"request-validator", "tls-handshake-modifier", "injection-protection",
	}, name)
}

// authenticates reports whether a plugin finds the consumer of a request.
func authenticates(name string) bool {
	return slices.Contains([]string{"key-auth", "basic-auth", "jwt"}, name)
}

// applying returns the plugins of a route by Kong's rule: of each name the one with the narrowest scope, without those
// for single consumers.
func (f *file) applying(r *route) (list []*plugin) {
	best := map[string]*plugin{}
	for _, p := range f.plugins {
		fits := p.consumer == "" && p.tier == "" && (p.route == "" || p.route == r.name) && (p.service == "" || p.service == r.service.name)
		if fits && (best[p.name] == nil || width(p) < width(best[p.name])) {
			best[p.name] = p
		}
	}
	for _, p := range f.plugins {
		if best[p.name] == p {
			list = append(list, p)
		}
	}
	return list
}

// width is smaller for a narrower scope.
func width(p *plugin) int {
	switch {
	case p.route != "":
		return 0
	case p.service != "":
		return 1
	}
	return 2
}

const (
	closedFilter    = "kong-closed"
	consumersFilter = "kong-consumers"
	nameHeader      = "x-consumer-username"
)

// filtersOf adds the filters of a route, and returns their names.
func (b *builder) filtersOf(r *route) (names []string) {
	closed, knows, decides := false, false, false
	applying := b.applying(r)
	if both := slices.DeleteFunc(slices.Clone(applying), func(p *plugin) bool { return p.name != "basic-auth" && p.name != "jwt" }); len(both) > 1 {
		closed = true
		b.untranslated(both[0], true, "a route has only one of basic-auth and jwt here")
		applying = slices.DeleteFunc(applying, func(p *plugin) bool { return p == both[0] })
	}
	for _, p := range applying {
		if p.name == "rate-limiting" {
			continue
		}
		name, shut := b.filter(p)
		closed = closed || shut
		knows = knows || authenticates(p.name)
		decides = decides || p.name == "acl"
		if name != "" {
			names = append(names, name)
		}
	}
	if knows && !decides {
		names = append(names, b.add(consumersFilter, "consumer", map[string]any{"name_header": nameHeader}))
	}
	names = append(names, b.limitsOf(r, knows || decides)...)
	if closed {
		body := "this service was not translated\n"
		names = append(names, b.add(closedFilter, "directresponse", map[string]any{"status": 503, "body": body}))
	}
	return names
}

// filter adds the filter of a plugin. closed says that routes with it must not be served.
func (b *builder) filter(p *plugin) (name string, closed bool) {
	translate := translations()[p.name]
	if translate == nil {
		closed = decidesAccess(p.name)
		b.untranslated(p, closed, "has no equivalent")
		return "", closed
	}
	name = nameOf(p.name + "-" + p.scope())
	if closed, done := b.translated[p]; done {
		return b.names[p], closed
	}
	filterType, config, closed := translate(b, p)
	b.translated[p] = closed
	if filterType == "" {
		return "", closed
	}
	if filterType == "basicauth" {
		if name = basicUsers; !get(b.file, p.config, "hide_credentials", false) {
			name = openUsers
		}
	}
	b.names[p] = b.add(name, filterType, config)
	return b.names[p], closed
}

// untranslated notes a plugin.
func (b *builder) untranslated(p *plugin, closed bool, why string) {
	text := "plugin " + p.name + " (" + p.scope() + "): " + why
	if closed {
		text += "; its routes answer 503"
	}
	b.note(Note{p.line, text})
}

// add adds a filter, once.
func (b *builder) add(name, filterType string, config any) string {
	if !b.filters[name] {
		b.filters[name] = true
		b.doc.Filters = append(b.doc.Filters, map[string]any{"filter_name": name, "filter_type": filterType, "filter_config": config})
	}
	return name
}

// refused reports whether a plugin for credentials has settings that make it accept more requests, or other ones.
func (b *builder) refused(p *plugin) bool {
	for _, key := range []string{"anonymous", "realm_claim"} {
		if get(b.file, p.config, key, "") != "" {
			b.untranslated(p, true, key+" has no equivalent")
			return true
		}
	}
	return false
}

func keyAuth(b *builder, p *plugin) (string, any, bool) {
	if b.refused(p) {
		return "", nil, true
	}
	var from []map[string]any
	for _, name := range get(b.file, p.config, "key_names", []string{"apikey"}) {
		if get(b.file, p.config, "key_in_header", true) {
			from = append(from, map[string]any{"header": strings.ToLower(name)})
		}
		if get(b.file, p.config, "key_in_query", true) {
			from = append(from, map[string]any{"query": name})
		}
	}
	b.rest(p.config, "plugin key-auth", "key_names", "key_in_header", "key_in_query", "hide_credentials", "anonymous", "run_on_preflight", "realm")
	if len(from) == 0 || len(b.doc.KeySets) == 0 {
		b.untranslated(p, true, "there is no key, or no place for one")
		return "", nil, true
	}
	return "apikey", map[string]any{"keys": keySet, "from": from, "forward": !get(b.file, p.config, "hide_credentials", false)}, false
}

func basicAuth(b *builder, p *plugin) (string, any, bool) {
	b.rest(p.config, "plugin basic-auth", "hide_credentials", "anonymous", "realm")
	if b.refused(p) {
		return "", nil, true
	}
	if len(b.users) == 0 {
		b.untranslated(p, true, "there is no user with a password that can be used")
		return "", nil, true
	}
	return "basicauth", map[string]any{"users": b.users, "forward": !get(b.file, p.config, "hide_credentials", false)}, false
}

func jwtAuth(b *builder, p *plugin) (string, any, bool) {
	b.rest(p.config, "plugin jwt", "claims_to_verify", "key_claim_name", "anonymous", "run_on_preflight", "header_names", "uri_param_names", "cookie_names",
		"secret_is_base64")
	if b.refused(p) {
		return "", nil, true
	}
	var from []map[string]any
	for _, name := range get(b.file, p.config, "header_names", []string{"authorization"}) {
		from = append(from, map[string]any{"header": name, "prefix": "Bearer "})
	}
	for _, name := range get(b.file, p.config, "uri_param_names", []string{"jwt"}) {
		from = append(from, map[string]any{"query": name})
	}
	for _, name := range get(b.file, p.config, "cookie_names", []string{}) {
		from = append(from, map[string]any{"cookie": name})
	}
	issuers := b.issuers(get(b.file, p.config, "secret_is_base64", false))
	if len(from) == 0 || len(issuers) == 0 || len(issuers) > mostIssuers || get(b.file, p.config, "key_claim_name", "iss") != "iss" {
		b.untranslated(p, true, "needs a place for the token, and one to 10 credentials that can be used, which are named by iss")
		return "", nil, true
	}
	if !slices.Contains(get(b.file, p.config, "claims_to_verify", []string{}), "exp") {
		b.untranslated(p, false, "a token must have an exp here, and is refused after it")
	}
	config := issuers[0]
	if config["from"], config["forward"] = from[0], true; len(from) > 1 {
		b.untranslated(p, false, "a filter reads tokens in one place, here the first of header_names, uri_param_names and cookie_names")
	}
	if len(issuers) > 1 {
		config["other_issuers"] = issuers[1:]
	}
	return "jwt", config, false
}

func acl(b *builder, p *plugin) (string, any, bool) {
	allow, deny := get(b.file, p.config, "allow", []string{}), get(b.file, p.config, "deny", []string{})
	b.rest(p.config, "plugin acl", "allow", "deny", "hide_groups_header")
	if len(allow)+len(deny) == 0 {
		b.untranslated(p, true, "has neither allow nor deny")
		return "", nil, true
	}
	config := map[string]any{"name_header": nameHeader}
	if len(allow) > 0 {
		config["allow"] = allow
	}
	if len(deny) > 0 {
		config["deny"] = deny
	}
	return "consumer", config, false
}

func ipRestriction(b *builder, p *plugin) (string, any, bool) {
	config := map[string]any{}
	for _, key := range []string{"allow", "deny"} {
		if list := get(b.file, p.config, key, []string{}); len(list) > 0 {
			config[key] = list
		}
	}
	b.rest(p.config, "plugin ip-restriction", "allow", "deny")
	if len(config) == 0 {
		b.untranslated(p, true, "has neither allow nor deny")
		return "", nil, true
	}
	return "ipaccess", config, false
}

func cors(b *builder, p *plugin) (string, any, bool) {
	credentials := get(b.file, p.config, "credentials", false)
	plain := regexp.MustCompile(`^https?://[A-Za-z0-9.-]+(:[0-9]+)?$`)
	origins := []any{}
	listed := get(b.file, p.config, "origins", []string{})
	all := len(listed) == 0 || slices.Contains(listed, "*")
	if all {
		listed = []string{"*"}
	}
	for _, o := range listed {
		switch {
		case all || plain.MatchString(o):
			origins = append(origins, strings.ToLower(o))
		default:
			origins = append(origins, map[string]any{"regex": strings.TrimSuffix(strings.TrimPrefix(o, "^"), "$")})
		}
	}
	config := map[string]any{"origins": origins, "credentials": credentials, "headers": get(b.file, p.config, "headers", []string{"*"})}
	if all && credentials {
		b.untranslated(p, false, "every page that a user opens acts as the user, as in Kong: name the origins")
		config["any_origin_credentials"] = true
	}
	if methods := get(b.file, p.config, "methods", []string{}); len(methods) > 0 {
		config["methods"] = slices.DeleteFunc(methods, func(m string) bool { return slices.Contains([]string{"OPTIONS", "TRACE", "CONNECT"}, m) })
	}
	expose := slices.DeleteFunc(get(b.file, p.config, "exposed_headers", []string{}), func(h string) bool { return credentials && h == "*" }) // a name then
	if len(expose) > 0 {
		config["expose"] = expose
	}
	if age := get(b.file, p.config, "max_age", -1); age >= 0 {
		config["max_age"] = age
	}
	b.rest(p.config, "plugin cors", "origins", "methods", "headers", "exposed_headers", "credentials", "max_age")
	return "cors", config, false
}

func requestTransformer(b *builder, p *plugin) (string, any, bool) {
	return transformer(b, p, "request")
}

func responseTransformer(b *builder, p *plugin) (string, any, bool) {
	return transformer(b, p, "response")
}

// transformer translates changes of headers.
func transformer(b *builder, p *plugin, side string) (string, any, bool) {
	changes := map[string]any{}
	remove := get(b.file, child(p.config, "remove"), "headers", []string{})
	if len(remove) > 0 {
		changes["remove"] = remove
	}
	pairs := func(what string) map[string]string {
		values := map[string]string{}
		for _, text := range get(b.file, child(p.config, what), "headers", []string{}) {
			name, value, _ := strings.Cut(text, ":")
			if strings.Contains(value, "$(") {
				b.untranslated(p, false, "the template of "+name+" has no equivalent, and is left out")
				continue
			}
			values[name] = value
		}
		return values
	}
	if set := pairs("add"); len(set) > 0 {
		changes["set"] = set
		changes["remove"] = slices.DeleteFunc(slices.Clone(remove), func(name string) bool { _, is := set[name]; return is })
		for name := range set {
			if !slices.Contains(remove, name) {
				b.untranslated(p, false, "add sets a header here, also one that is there")
				break
			}
		}
	}
	if add := pairs("append"); len(add) > 0 {
		changes["add"] = add
	}
	for _, what := range []string{"remove", "add", "append"} {
		b.rest(child(p.config, what), "plugin "+p.name+": "+what, "headers")
	}
	b.rest(p.config, "plugin "+p.name, "remove", "add", "append")
	if len(changes) == 0 {
		return "", nil, false
	}
	return "headers", map[string]any{side: changes}, false
}

// maxBody is the largest body that a filter allows.
const maxBody = 104_857_600

func sizeLimit(b *builder, p *plugin) (string, any, bool) {
	unit := map[string]int{"megabytes": 1 << 20, "kilobytes": 1 << 10, "bytes": 1}[get(b.file, p.config, "size_unit", "megabytes")]
	bytes := get(b.file, p.config, "allowed_payload_size", 128) * unit
	b.rest(p.config, "plugin request-size-limiting", "allowed_payload_size", "size_unit")
	if bytes < 1 || bytes > maxBody {
		b.untranslated(p, false, "a limit is at most 100 MiB: it is left out")
		return "", nil, false
	}
	return "bodylimit", map[string]any{"bytes": bytes}, false
}

func correlationID(b *builder, p *plugin) (string, any, bool) {
	b.rest(p.config, "plugin correlation-id", "header_name", "generator", "echo_downstream")
	if name := get(b.file, p.config, "header_name", "Kong-Request-ID"); !strings.EqualFold(name, "x-request-id") {
		b.untranslated(p, false, "the ID of a request is in X-Request-Id, and not in "+name)
	}
	return "requestid", map[string]any{"take_over": true, "echo": get(b.file, p.config, "echo_downstream", false)}, false
}

func termination(b *builder, p *plugin) (string, any, bool) {
	b.rest(p.config, "plugin request-termination", "status_code", "message", "body", "content_type")
	config := map[string]any{"status": get(b.file, p.config, "status_code", 503)}
	text, err := json.Marshal(map[string]string{"message": cmp.Or(get(b.file, p.config, "message", ""), "Service unavailable")})
	if err != nil {
		return "", nil, true
	}
	config["body"], config["content_type"] = string(text), "application/json"
	if body := get(b.file, p.config, "body", ""); body != "" {
		config["body"], config["content_type"] = body, cmp.Or(get(b.file, p.config, "content_type", ""), "application/json")
	}
	return "directresponse", config, false
}
