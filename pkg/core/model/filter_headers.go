package model

import (
	"maps"
	"slices"
	"strings"
)

// HeadersFilter changes headers of requests and answers. Specify at least one change.
// +page=headers.md
// +example={request: {set: {x-team: shop}, remove: [x-debug]}, response: {set: {x-frame-options: DENY}}}
type HeadersFilter struct {
	// Whether values are templates with values of the request, such as "%REQ(x-user)%", instead of text; see headers.md.
	Template bool          `json:"template"`
	Request  HeaderChanges `json:"request"`
	Response HeaderChanges `json:"response"`
	// Names of lists of headers, whose changes are made before those of the filter, in this order.
	// +maxItems=maxLists
	// +items={type: string, minLength: 1}
	Lists []string `json:"lists"`
}

// HeaderChanges are made in this order: remove, set, add. They cannot change pseudo-headers such as :path, host,
// headers of the connection, x-envoy-, x-forwarded-, forwarded and x-real-ip.
type HeaderChanges struct {
	// Replaces all values of a header, or creates the header.
	// +additionalProperties={type: string, minLength: 1, maxLength: maxHeaderText}
	Set map[string]string `json:"set"`
	// Adds a value to a header.
	// +additionalProperties={type: string, minLength: 1, maxLength: maxHeaderText}
	Add map[string]string `json:"add"`
	// Names of headers.
	// +items={type: string, minLength: 1, maxLength: maxHeaderName}
	Remove []string `json:"remove"`
}

func readHeadersFilter(v *validator, at, _ string, config JSON) Spec {
	var f HeadersFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	v.lists(at+".lists", f.Lists)
	if v.headerChanges(at, f.Template, f.Request, f.Response)+len(f.Lists) == 0 {
		v.add(at, `changes no header; set request or response, such as {"request":{"set":{"x-team":"shop"}}}`)
	}
	return &f
}

func (f *HeadersFilter) uses() []Key { return listKeys(f.Lists) }

// headerChanges reports what is wrong with changes, and counts them.
func (v *validator) headerChanges(at string, template bool, request, response HeaderChanges) int {
	n := v.someHeaderChanges(at, ".request", template, request) + v.someHeaderChanges(at, ".response", template, response)
	v.notIn(at+".response", response, "server")
	return n
}

func (v *validator) someHeaderChanges(at, of string, template bool, c HeaderChanges) int {
	at += of
	commands := 0
	for _, part := range []struct {
		name   string
		values map[string]string
	}{{"set", c.Set}, {"add", c.Add}} {
		seen := map[string]bool{}
		for _, name := range slices.Sorted(maps.Keys(part.values)) {
			field := at + "." + part.name + "." + name
			v.headerName(field, name, seen)
			v.headerText(field, part.values[name])
			if template {
				commands += v.headerTemplate(field, part.values[name], of == ".response")
			}
		}
	}
	if commands > maxHeaderCommands {
		v.add(at, "has %d commands in its templates; at most %d are allowed", commands, maxHeaderCommands)
	}
	seen := map[string]bool{}
	for _, name := range c.Remove {
		v.headerName(at+".remove", name, seen)
	}
	n := len(c.Set) + len(c.Add) + len(c.Remove)
	if n > maxHeaders {
		v.add(at, "changes %d headers; a filter may change at most %d, because receivers refuse messages with too many", n,
			maxHeaders)
	}
	return n
}

// headerName accepts a header that users may change. seen are those that came
// before it, in lower case.
func (v *validator) headerName(field, name string, seen map[string]bool) {
	lower := strings.ToLower(name)
	switch {
	case strings.HasPrefix(name, ":") || lower == "host":
		v.add(field, "%q cannot be changed; the rewrite of Route_config changes path and host", name)
	case slices.Contains(connectionHeaders(), lower):
		v.add(field, "%q belongs to the connection and cannot be changed", name)
	case reservedHeader(lower):
		v.add(field, "%q is set by the gateway and cannot be changed", name)
	case seen[lower]:
		v.add(field, "%q is named twice", name)
	case len(name) > maxHeaderName:
		v.add(field, "has more than %d characters", maxHeaderName)
	default:
		v.token(field, name)
	}
	seen[lower] = true
}

const (
	// maxHeaders is half of what Envoy and many backends take in one message.
	maxHeaders    = 50
	maxHeaderName = 255
	maxHeaderText = 4096
)

// headerText accepts the value of a header (RFC 9110 section 5.5).
func (v *validator) headerText(field, s string) {
	switch {
	case s == "":
		v.add(field, "is empty; use remove to remove a header")
	case len(s) > maxHeaderText:
		v.add(field, "has more than %d bytes", maxHeaderText)
	case !IsHeaderText(s):
		v.add(field, "ends in a space or contains a control character, which a header value cannot")
	}
}

// IsHeaderText reports whether s can be the value of a header.
func IsHeaderText(s string) bool {
	return s == strings.Trim(s, " \t") &&
		!strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}

// notIn refuses changes of a header that Envoy sets last.
func (v *validator) notIn(at string, c HeaderChanges, header string) {
	names := slices.Concat(slices.Collect(maps.Keys(c.Set)), slices.Collect(maps.Keys(c.Add)), c.Remove)
	if slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, header) }) {
		v.add(at, "%q is set by the gateway and cannot be changed", header)
	}
}

// connectionHeaders are the headers of one connection (RFC 9110 section 7.6.1),
// and the length of a body.
func connectionHeaders() []string {
	return []string{
		"connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
	}
}

// reservedHeader reports whether a header says how a request came here, or is
// Envoy's own. Backends believe these.
func reservedHeader(lower string) bool {
	return strings.HasPrefix(lower, "x-envoy-") || strings.HasPrefix(lower, "x-forwarded-") || lower == "forwarded" ||
		lower == "x-real-ip"
}
