package ingress

import (
	"regexp"
	"strings"
)

// directive is a line of nginx that sets a header to a fixed value.
var directive = regexp.MustCompile(`^(more_set_headers|more_clear_headers|add_header|proxy_set_header|more_set_input_headers)\s+(.+?)\s*$`)

// restricts finds directives that decide who may send requests, or what they get.
var restricts = regexp.MustCompile(`(?m)^\s*(deny|allow|auth_|satisfy|return|if|limit_|rewrite|internal|secure_link|valid_referers|access_by_lua|content_by_lua|rewrite_by_lua)`)

// snippets reads pieces of nginx's own configuration: headers with fixed values are translated.
func (r *reading) snippets() {
	for _, name := range []string{"server-snippet", "configuration-snippet", "stream-snippet"} {
		text, ok := r.value(name)
		if !ok {
			continue
		}
		if restricts.MatchString(text) {
			r.closes(prefix+name, "code of nginx that decides about requests cannot be translated")
			continue
		}
		request, response := changes{}, changes{}
		for _, line := range strings.FieldsFunc(text, func(c rune) bool { return c == ';' || c == '\n' }) {
			if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			m := directive.FindStringSubmatch(line)
			if name != "configuration-snippet" || m == nil || strings.Contains(line, "$") || !addHeader(m[1], m[2], request, response) {
				r.note(prefix+name, "%q has no equivalent", line)
			}
		}
		config := map[string]any{}
		request.to(config, "request")
		response.to(config, "response")
		if len(config) > 0 {
			r.add("headers", "route_filter_headers", config)
		}
	}
}

// changes are values of headers; an empty one removes the header.
type changes map[string]string

func (c changes) to(config map[string]any, of string) {
	set, remove := map[string]string{}, []string{}
	for name, value := range c {
		if value == "" {
			remove = append(remove, name)
		} else {
			set[name] = value
		}
	}
	out := map[string]any{}
	if len(set) > 0 {
		out["set"] = set
	}
	if len(remove) > 0 {
		out["remove"] = remove
	}
	if len(out) > 0 {
		config[of] = out
	}
}

// addHeader reads the arguments of a directive.
func addHeader(kind, rest string, request, response changes) bool {
	to := response
	if kind == "proxy_set_header" || kind == "more_set_input_headers" {
		to = request
	}
	var args []string
	for _, a := range regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(rest, -1) {
		args = append(args, strings.Trim(a, `"'`))
	}
	if strings.HasPrefix(kind, "more_") { // each argument is a header
		for _, a := range args {
			name, value, _ := strings.Cut(a, ":")
			if strings.HasPrefix(name, "-") || kind == "more_set_headers" && strings.TrimSpace(value) == "" {
				return false
			}
			to[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
		return true
	}
	if len(args) == 3 && args[2] == "always" {
		args = args[:2]
	}
	if len(args) != 2 {
		return false
	}
	to[strings.ToLower(args[0])] = args[1]
	return true
}
