package kong

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a file, as the server bounds a document.
const maxFile = 16 << 20

// Note is something that the document does not say as the file did.
type Note struct {
	Line    int
	Message string
}

func (n Note) String() string { return fmt.Sprintf("line %d: %s", n.Line, n.Message) }

// file is what a file says.
type file struct {
	services  []*service
	upstreams map[string]*upstream
	consumers []*consumer
	plugins   []*plugin
	notes     []Note
	// shared are the configurations that plugins name. hashed says that passwords are not in the clear.
	shared *yaml.Node
	hashed bool
	// old says that the file is one before 3.0.
	old bool
	// missing says that a plugin names a configuration that is not in the file.
	missing error
}

type service struct {
	name, protocol, host, path string
	port                       int
	read                       int
	routes                     []*route
	line                       int
}

type route struct {
	service               *service
	name                  string
	hosts, paths, methods []string
	headers               map[string][]string
	strip, preserve       bool
	priority              int
	line                  int
}

// upstream has the health check of its targets, as fields of a document.
type upstream struct {
	targets []target
	check   map[string]any
}

type target struct {
	address string
	weight  int
}

// consumer has its credentials as they are in the file.
type consumer struct {
	name               string
	groups, tiers      []string
	keys, basics, jwts []*yaml.Node
	line               int
}

// plugin is a plugin where it is; an empty name of an object means that it is not on one.
type plugin struct {
	name                           string
	service, route, consumer, tier string
	config                         *yaml.Node
	line                           int
}

// scope says where a plugin is, in words for a name.
func (p *plugin) scope() string {
	parts := slices.DeleteFunc([]string{p.consumer, p.tier, p.service, p.route}, func(s string) bool { return s == "" })
	return cmp.Or(strings.Join(parts, "-"), "all")
}

func (f *file) note(n *yaml.Node, format string, args ...any) {
	f.notes = append(f.notes, Note{n.Line, fmt.Sprintf(format, args...)})
}

// deref follows an alias.
func deref(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// child returns the value of a key of a mapping; nil if there is none.
func child(n *yaml.Node, key string) *yaml.Node {
	n = deref(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key && deref(n.Content[i+1]).Tag != "!!null" {
			return deref(n.Content[i+1])
		}
	}
	return nil
}

// items returns the elements of a list.
func items(n *yaml.Node, key string) []*yaml.Node {
	c := child(n, key)
	if c == nil || c.Kind != yaml.SequenceNode {
		return nil
	}
	list := make([]*yaml.Node, len(c.Content))
	for i, item := range c.Content {
		list[i] = deref(item)
	}
	return list
}

// get reads a value; what has another type is as if it were absent, and is noted.
func get[T any](f *file, n *yaml.Node, key string, absent T) T {
	c := child(n, key)
	if c == nil {
		return absent
	}
	var value T
	if c.Decode(&value) != nil {
		f.note(c, "%s cannot be read", key)
		return absent
	}
	return value
}

// defaults are the values that a dump of a running gateway has everywhere, of fields without an equivalent.
func defaults() map[string]string {
	return map[string]string{
		"connect_timeout": "60000", "write_timeout": "60000", "retries": "5", "https_redirect_status_code": "426",
		"path_handling": "v0", "request_buffering": "true", "response_buffering": "true",
		"algorithm": "round-robin", "hash_on": "none", "hash_fallback": "none", "hash_on_cookie_path": "/", "slots": "10000", "use_srv_name": "false",
		"key_in_body": "false", "preflight_continue": "false", "private_network": "false", "allow_origin_absent": "true",
		"always_use_authenticated_groups": "false", "include_consumer_groups": "false", "maximum_expiration": "0", "error_code": "429",
		"error_message": "API rate limit exceeded", "require_content_length": "false", "echo": "false", "threshold": "0",
	}
}

// isNothing reports whether a value says nothing: null, or only empty lists and mappings.
func isNothing(n *yaml.Node) bool {
	n = deref(n)
	if n.Kind == yaml.MappingNode {
		for i := 1; i < len(n.Content); i += 2 {
			if !isNothing(n.Content[i]) {
				return false
			}
		}
		return true
	}
	return n.Tag == "!!null" || n.Kind == yaml.SequenceNode && len(n.Content) == 0
}

// rest notes the keys that are not among those that are known, unless they say nothing. What identifies or describes an
// object is known everywhere.
func (f *file) rest(n *yaml.Node, what string, known ...string) {
	n = deref(n)
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	known = append(known, "id", "tags", "created_at", "updated_at", "instance_name", "ws_id")
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], deref(n.Content[i+1])
		if slices.Contains(known, key.Value) || strings.HasPrefix(key.Value, "_") || isNothing(value) {
			continue
		}
		if usual, is := defaults()[key.Value]; is && value.Kind == yaml.ScalarNode && value.Value == usual {
			continue
		}
		f.note(key, "%s: %s has no equivalent", what, key.Value)
	}
}

// read reads a file.
func read(in io.Reader) (*file, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("the file has more than %d MiB", maxFile>>20)
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	if doc.Kind != yaml.DocumentNode || deref(doc.Content[0]).Kind != yaml.MappingNode {
		return nil, errors.New("the file is no mapping")
	}
	root := deref(doc.Content[0])
	f := &file{upstreams: map[string]*upstream{}, shared: child(root, "_plugin_configs"), hashed: !get(&file{}, root, "_transform", true)}
	if version := get(f, root, "_format_version", ""); version != "3.0" && version != "2.1" && version != "1.1" {
		return nil, fmt.Errorf("_format_version is %q: it must be that of a declarative file of Kong, such as 3.0", version)
	}
	f.old = get(f, root, "_format_version", "") != "3.0"
	for _, n := range items(root, "upstreams") {
		f.readUpstream(n)
	}
	for _, n := range items(root, "services") {
		f.readService(n)
	}
	for _, n := range items(root, "routes") {
		f.readRoute(n, nil)
	}
	for _, n := range items(root, "consumers") {
		f.readConsumer(n)
	}
	for _, n := range items(root, "consumer_groups") {
		f.readTier(n)
	}
	f.readPlugins(root, plugin{})
	f.rest(child(root, "_info"), "_info", "select_tags")
	f.rest(root, "the file", "upstreams", "services", "routes", "consumers", "consumer_groups", "plugins")
	return f, f.missing
}

func (f *file) readUpstream(n *yaml.Node) {
	name := get(f, n, "name", "")
	u := &upstream{check: f.healthCheck(n, name)}
	for _, t := range items(n, "targets") {
		u.targets = append(u.targets, target{get(f, t, "target", ""), get(f, t, "weight", 100)})
		f.rest(t, "target of upstream "+name, "target", "weight")
	}
	f.upstreams[name] = u
	f.rest(n, "upstream "+name, "name", "targets", "healthchecks", "host_header")
}

// healthCheck returns the fields of the active health check of an upstream; none if it has none.
func (f *file) healthCheck(n *yaml.Node, name string) map[string]any {
	checks := child(n, "healthchecks")
	active := child(checks, "active")
	healthy, unhealthy := child(active, "healthy"), child(active, "unhealthy")
	f.rest(checks, "upstream "+name+": healthchecks", "active", "threshold")
	interval := max(get(f, healthy, "interval", 0), get(f, unhealthy, "interval", 0))
	if interval == 0 {
		return nil
	}
	if kind := get(f, active, "type", "http"); kind != "http" {
		f.note(active, "upstream %s: a health check of type %s has no equivalent", name, kind)
		return nil
	}
	fields := map[string]any{
		"upstream_hc_path": get(f, active, "http_path", "/"), "upstream_hc_intervalseconds": interval,
		"upstream_hc_timeoutseconds":          max(get(f, active, "timeout", 1), 1),
		"upstream_hc_healthythresholdcount":   max(get(f, healthy, "successes", 0), 1),
		"upstream_hc_unhealthythresholdcount": max(get(f, unhealthy, "http_failures", 0), 1),
	}
	if host := get(f, n, "host_header", ""); host != "" {
		fields["upstream_hc_host"] = host
	}
	if statuses := get(f, healthy, "http_statuses", []int{200}); !slices.Equal(statuses, []int{200}) && !slices.Equal(statuses, []int{200, 302}) {
		f.note(child(healthy, "http_statuses"), "upstream %s: is healthy here if it answers 200", name)
	}
	f.rest(active, "upstream "+name+": healthchecks", "type", "http_path", "timeout", "concurrency", "healthy", "unhealthy",
		"https_verify_certificate")
	return fields
}

func (f *file) readService(n *yaml.Node) {
	s := &service{
		name: get(f, n, "name", ""), protocol: get(f, n, "protocol", "http"), host: get(f, n, "host", ""),
		path: get(f, n, "path", ""), port: get(f, n, "port", 0), read: get(f, n, "read_timeout", 0), line: n.Line,
	}
	s.name = cmp.Or(s.name, get(f, n, "id", ""), fmt.Sprintf("service-%d", n.Line))
	if !get(f, n, "enabled", true) {
		f.note(n, "service %s: is not enabled, and left out", s.name)
		return
	}
	if err := s.readURL(get(f, n, "url", "")); err != nil {
		f.note(n, "service %s: %s", s.name, err)
	}
	f.services = append(f.services, s)
	for _, r := range items(n, "routes") {
		f.readRoute(r, s)
	}
	f.readPlugins(n, plugin{service: s.name})
	f.rest(n, "service "+s.name, "name", "protocol", "host", "path", "port", "url", "routes", "plugins", "enabled", "read_timeout")
}

func (f *file) readRoute(n *yaml.Node, s *service) {
	if s == nil {
		name := reference(n, "service")
		at := slices.IndexFunc(f.services, func(s *service) bool { return s.name == name })
		if at < 0 {
			f.note(n, "route %s: has no service, and is left out", get(f, n, "name", ""))
			return
		}
		s = f.services[at]
	}
	r := &route{
		service: s, name: get(f, n, "name", ""), hosts: get(f, n, "hosts", []string{}), paths: get(f, n, "paths", []string{}),
		methods: get(f, n, "methods", []string{}), headers: get(f, n, "headers", map[string][]string{}), strip: get(f, n, "strip_path", true),
		preserve: get(f, n, "preserve_host", false), priority: get(f, n, "regex_priority", 0), line: n.Line,
	}
	r.name = cmp.Or(r.name, get(f, n, "id", ""), fmt.Sprintf("%s-%d", s.name, n.Line))
	known := []string{"name", "hosts", "paths", "methods", "headers", "strip_path", "preserve_host", "regex_priority", "service", "plugins"}
	protocols := get(f, n, "protocols", []string{"http", "https"})
	if slices.Contains(protocols, "http") && slices.Contains(protocols, "https") {
		known = append(known, "protocols")
	}
	if !slices.Contains(protocols, "http") && !slices.Contains(protocols, "https") {
		f.note(n, "route %s: is for %s, and left out", r.name, strings.Join(protocols, ", "))
		return
	}
	if !f.readConditions(n, r) {
		return
	}
	s.routes = append(s.routes, r)
	f.readPlugins(n, plugin{service: s.name, route: r.name})
	f.rest(n, "route "+r.name, append(known, "snis")...)
}

// plainPath are the paths that are no expressions in files before 3.0, where expressions have no mark.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9._~/%-]*$`)

// readConditions checks what a route matches. It reports false, with a note, if the route would match more without what
// has no equivalent.
func (f *file) readConditions(n *yaml.Node, r *route) bool {
	if len(items(n, "snis")) > 0 {
		f.note(n, "route %s: is for server names of TLS (snis), which has no equivalent, and is left out", r.name)
		return false
	}
	all := len(r.hosts)
	r.hosts = slices.DeleteFunc(r.hosts, func(h string) bool {
		bad := strings.HasSuffix(h, ".*")
		if bad {
			f.note(n, "route %s: the host %s has no equivalent, and is left out", r.name, h)
		}
		return bad
	})
	for i, path := range r.paths {
		if f.old && !plainPath.MatchString(path) {
			r.paths[i] = "~" + path
		}
	}
	return all == 0 || len(r.hosts) > 0
}

// reference returns the name of an object that another one names, as a text or as {name: ...}.
func reference(n *yaml.Node, key string) string {
	c := child(n, key)
	if c == nil || c.Kind == yaml.ScalarNode {
		if c == nil {
			return ""
		}
		return c.Value
	}
	for _, by := range []string{"name", "username", "id"} {
		if named := child(c, by); named != nil {
			return named.Value
		}
	}
	return ""
}

func (f *file) readConsumer(n *yaml.Node) {
	c := &consumer{
		name: cmp.Or(get(f, n, "username", ""), get(f, n, "custom_id", ""), fmt.Sprintf("consumer-%d", n.Line)), line: n.Line,
		keys: items(n, "keyauth_credentials"), basics: items(n, "basicauth_credentials"), jwts: items(n, "jwt_secrets"),
	}
	for _, a := range items(n, "acls") {
		c.groups = append(c.groups, get(f, a, "group", ""))
	}
	for _, g := range items(n, "groups") {
		c.tiers = append(c.tiers, get(f, g, "name", ""))
	}
	f.consumers = append(f.consumers, c)
	f.readPlugins(n, plugin{consumer: c.name})
	known := []string{"username"}
	if child(n, "username") == nil {
		known = append(known, "custom_id") // which is the name
	}
	f.rest(n, "consumer "+c.name, append(known, "keyauth_credentials", "basicauth_credentials", "jwt_secrets", "acls", "groups", "plugins")...)
}

func (f *file) readTier(n *yaml.Node) {
	name := get(f, n, "name", "")
	for _, c := range items(n, "consumers") {
		username := cmp.Or(get(f, c, "username", ""), get(f, c, "name", ""))
		if at := slices.IndexFunc(f.consumers, func(c *consumer) bool { return c.name == username }); at >= 0 {
			f.consumers[at].tiers = append(f.consumers[at].tiers, name)
		}
	}
	f.readPlugins(n, plugin{tier: name})
	f.rest(n, "consumer group "+name, "name", "plugins", "consumers")
}

// readPlugins reads the plugins of an object.
func (f *file) readPlugins(n *yaml.Node, at plugin) {
	for _, c := range items(n, "plugins") {
		p := at
		p.name, p.config, p.line = get(f, c, "name", ""), f.configOf(c), c.Line
		p.service, p.route = cmp.Or(reference(c, "service"), p.service), cmp.Or(reference(c, "route"), p.route)
		p.consumer, p.tier = cmp.Or(reference(c, "consumer"), p.consumer), cmp.Or(reference(c, "consumer_group"), p.tier)
		if get(f, c, "enabled", true) {
			f.plugins = append(f.plugins, &p)
		}
		f.rest(c, "plugin "+p.name, "name", "config", "enabled", "service", "route", "consumer", "consumer_group", "protocols")
	}
}

// configOf returns the configuration of a plugin: its own, and below it the shared one that it names.
func (f *file) configOf(n *yaml.Node) *yaml.Node {
	all := &yaml.Node{Kind: yaml.MappingNode, Line: n.Line}
	if own := child(n, "config"); own != nil {
		all.Content = slices.Clone(own.Content)
	}
	name := get(f, n, "_config", "")
	if name == "" {
		return all
	}
	shared := child(f.shared, name)
	if shared == nil || shared.Kind != yaml.MappingNode {
		f.missing = cmp.Or(f.missing, fmt.Errorf("line %d: _config: %q is not in _plugin_configs", n.Line, name))
		return all
	}
	for i := 0; i+1 < len(shared.Content); i += 2 {
		if child(all, shared.Content[i].Value) == nil {
			all.Content = append(all.Content, shared.Content[i], shared.Content[i+1])
		}
	}
	return all
}
