package model

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
)

// CORSFilter says which web pages of other origins may use the answers (CORS), and answers the preflights of
// browsers. A route's filter replaces its service's; each has at most one.
// +page=cors.md
// +example={origins: ["https://app.example.com", {regex: 'https://[a-z0-9-]+\.example\.com'}], methods: [GET, PUT],
// headers: [x-team], expose: [x-total], max_age: 600, credentials: true}
type CORSFilter struct {
	// The origins of the pages; "*" alone means all.
	// +required
	// +minItems=1
	// +maxItems=maxOrigins
	Origins []Origin `json:"origins"`
	// Methods that pages may use; "*" means all. Default: GET, HEAD, PUT, PATCH, POST and DELETE.
	// +maxItems=maxCORSNames
	Methods []string `json:"methods"`
	// Headers that pages may set in addition to those that need no permission; "*" means all.
	// +maxItems=maxCORSNames
	Headers []string `json:"headers"`
	// Headers of answers that pages may read in addition to those that need no permission; "*" means all.
	// +maxItems=maxCORSNames
	Expose []string `json:"expose"`
	// Seconds for which browsers cache the answer to a preflight; absent means the browser's default.
	// +minimum=0
	// +maximum=86400
	MaxAge *int `json:"max_age"`
	// Pages may send cookies and certificates, so that they act as the user.
	Credentials bool `json:"credentials"`
	// Allows credentials together with the origin "*": every page that a user opens acts as the user.
	AnyOriginCredentials bool `json:"any_origin_credentials"`
}

// Origin is an origin as browsers send it, such as https://app.example.com, or an object with an RE2 expression that
// matches whole origins.
// +anyOf=[{type: string, minLength: 1}, {type: object, required: [regex], additionalProperties: false,
// properties: {regex: {type: string, minLength: 1, maxLength: 1024}}}]
type Origin struct {
	Exact string `json:"-"`
	Regex string `json:"regex"`
}

// UnmarshalJSON reads either form.
func (o *Origin) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &o.Exact)
	}
	var form struct {
		Regex *string `json:"regex"`
	}
	if err := decodeStrict(string(b), &form); err != nil || form.Regex == nil || *form.Regex == "" {
		return errors.New(`an origin must be a string such as "https://app.example.com", or {"regex": EXPRESSION}`)
	}
	o.Regex = *form.Regex
	return nil
}

const (
	maxOrigins   = 100
	maxCORSNames = 50
)

// AnyOrigin stands for all origins.
const AnyOrigin = "*"

func readCORS(v *validator, at, _ string, config JSON) Spec {
	var f CORSFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if f.Methods == nil {
		f.Methods = defaultCORSMethods()
	}
	f.checkOrigins(v, at+".origins")
	v.corsNames(at+".methods", f.Methods)
	v.corsNames(at+".headers", f.Headers)
	v.corsNames(at+".expose", f.Expose)
	if f.Credentials && slices.Contains(f.Expose, "*") {
		v.add(at+".expose", `"*" has no effect in browsers where credentials are allowed; name the headers`)
	}
	for _, m := range f.Methods {
		if upper := strings.ToUpper(m); upper != m {
			v.add(at+".methods", "%q must be in upper case, because browsers compare the case; write %q", m, upper)
		}
	}
	if f.MaxAge != nil {
		v.checkRange(at+".max_age", *f.MaxAge, 0, 86400)
	}
	return &f
}

func (f *CORSFilter) uses() []Key { return nil }

// defaultCORSMethods are those that other gateways allow by default. An empty list allows only what needs no
// permission.
func defaultCORSMethods() []string { return []string{"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE"} }

func (f *CORSFilter) checkOrigins(v *validator, field string) {
	switch all := slices.Contains(f.Origins, Origin{Exact: AnyOrigin}); {
	case len(f.Origins) == 0:
		v.add(field, `is required; list the origins whose pages may read the answers, such as ["https://app.example.com"]`)
		return
	case len(f.Origins) > maxOrigins:
		v.add(field, "has %d entries; at most %d are allowed; one expression can match many origins", len(f.Origins),
			maxOrigins)
		return
	case all && f.Credentials && !f.AnyOriginCredentials:
		v.add(field, `"*" and credentials together would let any page act as the user; name the origins`)
		return
	case all && len(f.Origins) > 1:
		v.add(field, `"*" matches all origins; remove the others`)
		return
	case all:
		return
	}
	before := len(v.errs)
	for _, o := range f.Origins {
		if o.Regex != "" {
			v.originRegex(field, o.Regex)
		} else {
			v.origin(field, o.Exact)
		}
	}
	if size, err := regexSize(f.Expression()); len(v.errs) == before && (err != nil || size > maxRegexSize) {
		v.add(field, "is too large for a proxy: the list expands to %d steps; at most %d are allowed", size, maxRegexSize)
	}
}

// Expression matches whole origins that the filter allows. Only a filter without a fault has one.
func (f *CORSFilter) Expression() string {
	var list []string
	for _, o := range f.Origins {
		switch {
		case o.Exact == AnyOrigin:
			return ".+"
		case o.Regex != "":
			list = append(list, "(?:"+o.Regex+")")
		default:
			list = append(list, regexp.QuoteMeta(o.Exact))
		}
	}
	return strings.Join(list, "|")
}

// corsNames checks names that browsers compare, of methods or headers.
func (v *validator) corsNames(field string, list []string) {
	if len(list) > maxCORSNames {
		v.add(field, "has %d entries; at most %d are allowed", len(list), maxCORSNames)
		return
	}
	for _, name := range list {
		if len(name) > maxHeaderName {
			v.add(field, "has an entry of more than %d characters", maxHeaderName)
		} else {
			v.token(field, name)
		}
	}
}

// Advice says what works, but probably not as intended.
func (f *CORSFilter) Advice() []string {
	var list []string
	if f.Credentials && slices.Contains(f.Origins, Origin{Exact: AnyOrigin}) {
		list = append(list, "any page that a user opens acts as the user (any_origin_credentials)")
	}
	for _, o := range f.Origins {
		for _, hole := range originHoles(o.Regex) {
			list = append(list, "origins has the expression "+o.Regex+", "+hole)
		}
		if host, plain := strings.CutPrefix(o.Exact, "http://"); plain && f.Credentials && !isLocalHost(host) {
			list = append(list, "origins has "+o.Exact+
				" and credentials are allowed: anyone on the network path can change such a page and act as its user; use https")
		}
	}
	return list
}

func isLocalHost(host string) bool {
	name, _, _ := strings.Cut(host, ":")
	return name == "localhost" || name == "127.0.0.1" || strings.HasPrefix(host, "[::1]")
}
