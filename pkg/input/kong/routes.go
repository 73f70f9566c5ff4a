package kong

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// readURL reads the short form of where a service leads.
func (s *service) readURL(text string) error {
	if text != "" {
		u, err := url.Parse(text)
		if err != nil || u.Hostname() == "" {
			return errors.New("its url cannot be read")
		}
		s.protocol, s.host, s.path = u.Scheme, u.Hostname(), u.Path
		if port := u.Port(); port != "" {
			s.port, _ = strconv.Atoi(port) // url.Parse checked that it is a number
		}
	}
	if s.port == 0 {
		s.port = 80
		if s.protocol == "https" || s.protocol == "grpcs" || strings.HasPrefix(text, "https:") {
			s.port = 443
		}
	}
	if s.host == "" {
		return errors.New("has no host")
	}
	return nil
}

// name makes a name of Gatehouse of a text.
func nameOf(text string) string {
	return strings.Trim(regexp.MustCompile(`[^A-Za-z0-9._-]+`).ReplaceAllString(text, "-"), "-")
}

// upstreamsOf adds the upstreams of a service, and returns their names.
func (b *builder) upstreamsOf(s *service) []string {
	if names, done := b.leads[s.name]; done {
		return names
	}
	protocol := map[string]string{"http": "http", "https": "tls", "grpc": "h2c", "grpcs": "h2"}[s.protocol]
	if protocol == "" {
		b.note(Note{s.line, "service " + s.name + ": the protocol " + s.protocol + " has no equivalent"})
	}
	var names []string
	var check map[string]any
	add := func(name, host string, port, weight int) {
		up := map[string]any{"upstream_name": name, "upstream_ip": host, "upstream_port": port, "upstream_protocol": protocol, "upstream_weight": weight}
		if protocol == "tls" || protocol == "h2" {
			up["upstream_tls_insecure"] = true // Kong verifies no certificate unless it is told to
			b.note(Note{s.line, "service " + s.name + ": certificates of the upstream are not verified, as by default in Kong; remove upstream_tls_insecure to verify them"})
		}
		maps.Copy(up, check)
		b.doc.Upstreams = append(b.doc.Upstreams, up)
		names = append(names, name)
	}
	var targets []target
	if u := b.upstreams[s.host]; u != nil {
		targets, check = u.targets, u.check
	}
	for i, t := range targets {
		host, port, err := net.SplitHostPort(t.address)
		if err != nil {
			host, port = t.address, "8000" // Kong's default
		}
		number, err := strconv.Atoi(port)
		if err != nil {
			b.note(Note{s.line, "target " + t.address + ": cannot be read, and is left out"})
			continue
		}
		add(fmt.Sprintf("%s-%d", nameOf(s.name), i+1), host, number, t.weight)
	}
	if len(targets) == 0 {
		add(nameOf(s.name), s.host, s.port, 100)
	}
	b.leads[s.name] = names
	return names
}

// hosts returns all hosts that routes name; "*" stands for the routes without one.
func (f *file) hosts() []string {
	set := map[string]bool{}
	for _, s := range f.services {
		for _, r := range s.routes {
			for _, h := range r.hosts {
				set[strings.ToLower(h)] = true
			}
			if len(r.hosts) == 0 {
				set["*"] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(set))
}

// serves reports whether a route is for a host: a route without hosts is for each.
func (r *route) serves(host string) bool {
	return len(r.hosts) == 0 || slices.ContainsFunc(r.hosts, func(h string) bool { return strings.EqualFold(h, host) })
}

// rank is the place of a route among those that match a request: that with the most kinds of conditions comes first.
func (r *route) rank() int {
	kinds := 0
	for _, n := range []int{len(r.hosts), len(r.paths), len(r.methods), len(r.headers)} {
		kinds += min(n, 1)
	}
	return kinds*10_000 + min(max(r.priority, 0), 9_999)
}

// service makes the service of a host.
func (b *builder) service(host string) map[string]any {
	name := cmp.Or(nameOf(strings.ReplaceAll(host, "*", "any")), "any")
	var routes []map[string]any
	for _, s := range b.services {
		for _, r := range s.routes {
			if !r.serves(host) {
				continue
			}
			filters, upstreams := b.filtersOf(r), b.upstreamsOf(s)
			paths := r.paths
			if len(paths) == 0 {
				paths = []string{"/"}
			}
			for i, path := range paths {
				routeName := nameOf(r.name)
				if i > 0 {
					routeName += fmt.Sprintf("-%d", i+1)
				}
				config := b.routeConfig(r, path)
				prefix := path
				if expression, is := strings.CutPrefix(path, "~"); is {
					prefix = wholePath(expression)
				}
				routes = append(routes, map[string]any{
					"route_name": routeName, "route_prefix": prefix, "route_config": config, "upstreams": upstreams, "filters": filters,
				})
			}
		}
	}
	return map[string]any{"service_name": name, "fqdn": host, "routes": routes}
}

// wholePath makes an expression for whole paths of one for their beginning.
func wholePath(expression string) string {
	expression = strings.TrimPrefix(expression, "^")
	if strings.HasSuffix(expression, "$") && !strings.HasSuffix(expression, `\$`) {
		return strings.TrimSuffix(expression, "$")
	}
	return expression + ".*"
}

// routeConfig is the Route_config of a route for one of its paths.
func (b *builder) routeConfig(r *route, path string) map[string]any {
	config := map[string]any{"priority": r.rank()}
	matched := "^" + regexp.QuoteMeta(path)
	if expression, is := strings.CutPrefix(path, "~"); is {
		config["match"] = "regex"
		matched = "^" + strings.TrimPrefix(strings.TrimSuffix(expression, "$"), "^")
		if _, err := regexp.Compile(matched); err != nil {
			b.note(Note{r.line, "route " + r.name + ": the expression " + path + " is not one of RE2"})
		}
	}
	if len(r.methods) > 0 {
		config["methods"] = r.methods
	}
	var headers []map[string]any
	for _, name := range slices.Sorted(maps.Keys(r.headers)) {
		values := make([]string, len(r.headers[name]))
		for i, v := range r.headers[name] {
			values[i] = regexp.QuoteMeta(v)
			if expression, is := strings.CutPrefix(v, "~*"); is {
				values[i] = ".*(?:" + expression + ").*" // it may match a part
			}
		}
		headers = append(headers, map[string]any{"name": name, "regex": "(?i)(" + strings.Join(values, "|") + ")"})
	}
	if len(headers) > 0 {
		config["headers"] = headers
	}
	rewrite := map[string]any{}
	if !r.preserve {
		rewrite["host"] = r.service.host
		if b.upstreams[r.service.host] == nil && r.service.port != 80 && r.service.port != 443 {
			rewrite["host"] = net.JoinHostPort(r.service.host, strconv.Itoa(r.service.port))
		}
	}
	base := strings.TrimSuffix(r.service.path, "/")
	switch {
	case r.strip && path != "/":
		rewrite["regex"], rewrite["substitution"] = strings.TrimSuffix(matched, "/")+"/?", base+"/"
	case base != "":
		rewrite["regex"], rewrite["substitution"] = "^/", base+"/"
	}
	if len(rewrite) > 0 {
		config["rewrite"] = rewrite
	}
	if r.service.read > 0 {
		config["timeouts"] = map[string]any{"idle": fmt.Sprintf("%dms", r.service.read)}
	}
	return config
}
