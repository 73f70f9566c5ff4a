package model

import (
	"cmp"
	"fmt"
	"net/netip"
	"path/filepath"
	"reflect"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// validator collects every bad field of one object.
type validator struct{ errs []FieldError }

func (v *validator) add(field, format string, args ...any) {
	v.errs = append(v.errs, FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
}

// reservedNames would hide the calls of the same name, such as
// /service/dump/{s} (rest-api.md).
func reservedNames() []string { return []string{"dump", "copy", "deepcopy", "copyroute"} }

// name checks rest-api.md, "Names": 1-253 characters of A-Za-z0-9._-.
func (v *validator) name(field, name string, noReserved bool) {
	switch {
	case name == "":
		v.add(field, "is required")
	case len(name) > 253:
		v.add(field, "has %d characters; at most 253 are allowed", utf8.RuneCountInString(name))
	case strings.ContainsFunc(name, func(r rune) bool { return !isNameRune(r) }):
		v.add(field, "%q may contain only the characters A-Z a-z 0-9 . _ -", name)
	case name == "." || name == "..":
		v.add(field, "%q cannot be part of a URL path", name)
	case noReserved && slices.Contains(reservedNames(), name):
		v.add(field, "%q is reserved for a call of the API", name)
	}
}

func isNameRune(r rune) bool {
	return isAlphanumeric(r) || r == '.' || r == '_' || r == '-'
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func (v *validator) checkRange(field string, n, low, high int) {
	if n < low || n > high {
		v.add(field, "%d is not between %d and %d", n, low, high)
	}
}

// finish checks the fields of an object that have the tag range, such as range:"1-65535", and returns all errors in the
// order of the fields.
func (v *validator) finish(obj Object) []FieldError {
	o, places := reflect.ValueOf(obj).Elem(), map[string]int{}
	for i := range o.NumField() {
		tag := o.Type().Field(i).Tag
		name, _, _ := strings.Cut(tag.Get("form"), ",")
		places[name] = i
		if from, to, has := strings.Cut(tag.Get("range"), "-"); has {
			low, _ := strconv.Atoi(from) // a spec reads all of them
			high, _ := strconv.Atoi(to)
			v.checkRange(name, int(o.Field(i).Int()), low, high)
		}
	}
	slices.SortStableFunc(v.errs, func(a, b FieldError) int { return cmp.Compare(places[a.Field], places[b.Field]) })
	return v.errs
}

func (v *validator) oneOf(field, s string, allowed []string) {
	if !slices.Contains(allowed, s) {
		v.add(field, "%q is not one of %s", s, strings.Join(allowed, ", "))
	}
}

// maxSocket is the longest path that fits in the address of a Unix socket.
const maxSocket = 107

// socket accepts the absolute path of a Unix socket, in its shortest form.
func (v *validator) socket(field, p string) {
	if !filepath.IsAbs(p) || filepath.Clean(p) != p || p == "/" || len(p) > maxSocket || strings.ContainsFunc(p, unicode.IsControl) {
		v.add(field, "%q is not an absolute path of at most %d bytes, without . and .., such as /run/app/app.sock", p, maxSocket)
	}
}

// address accepts an IP address without zone, or a DNS name.
func (v *validator) address(field, s string) {
	if s == "" {
		v.add(field, "is required")
		return
	}
	if addr, err := netip.ParseAddr(s); err == nil && addr.Zone() == "" {
		return
	}
	if !isDNSName(s) || looksLikeIPv4(s) {
		v.add(field, "%q is not an IPv4 address, an IPv6 address or a DNS name", s)
	}
}

// fqdn accepts "*", "*.suffix" and an exact host name.
func (v *validator) fqdn(field, s string) {
	switch {
	case s == "":
		v.add(field, `is required; "*" matches any host`)
	case s == "*":
	case !isDNSName(strings.TrimPrefix(s, "*.")) || strings.HasSuffix(s, "."):
		v.add(field, `%q is not a host name such as shop.example.com, *.example.com or *`, s)
	}
}

// isDNSName follows RFC 1123 section 2.1, but allows the underscore, which is
// common in practice, and a final dot.
func isDNSName(s string) bool {
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > 253 {
		return false
	}
	for label := range strings.SplitSeq(s, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
		for _, r := range label {
			if !isAlphanumeric(r) && r != '-' && r != '_' {
				return false
			}
		}
	}
	return true
}

// looksLikeIPv4 reports whether the last label is a number, which no DNS name
// has (RFC 3696 section 2): 300.1.1.1 is a mistyped address.
func looksLikeIPv4(s string) bool {
	last := s[strings.LastIndexByte(strings.TrimSuffix(s, "."), '.')+1:]
	return !strings.ContainsFunc(last, func(r rune) bool { return r < '0' || r > '9' })
}

// urlPath accepts an absolute path without query and fragment (RFC 3986
// section 3.3, "path-absolute").
func (v *validator) urlPath(field, s string) {
	switch {
	case s == "":
		v.add(field, "is required")
	case s[0] != '/':
		v.add(field, `%q must start with "/"`, s)
	case len(s) > 4096:
		v.add(field, "has %d characters; at most 4096 are allowed", len(s))
	case strings.ContainsAny(s, "?#"):
		v.add(field, "%q must be a path without query (?) and fragment (#)", s)
	case strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		v.add(field, "%q contains a space, a control character or a character that must be percent-encoded in a URL", s)
	}
}

func (v *validator) pathRegex(field, s string) {
	if s == "" || s[0] != '/' {
		v.add(field, `%q must start with "/"`, s)
		return
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		v.add(field, "%q contains a space or a control character; paths have none (in a form, send + as %%2B)", s)
		return
	}
	v.regex(field, s)
}

func (v *validator) pathTemplate(field, s string) {
	if _, err := ParsePathTemplate(s); err != nil {
		v.add(field, "%q %s", s, err)
	}
}

func (v *validator) regex(field, s string) {
	if s == "" {
		v.add(field, "must not be empty")
		return
	}
	if len(s) > 1024 {
		v.add(field, "has %d characters; at most 1024 are allowed", len(s))
		return
	}
	if n := costlyClasses(s); n > maxCostlyClasses {
		v.add(field, `has too many classes of characters, such as \pL, or ranges up to a non-ASCII character: `+
			`they take time to read, and Envoy matches bytes`)
		return
	}
	size, err := regexSize(s)
	wide := wideEscape(s)
	switch {
	case err != nil:
		v.add(field, "%q is not a regular expression in RE2 syntax: %s", s,
			strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	case wide != "":
		// Envoy matches bytes: its RE2 reads Latin-1.
		v.add(field, "%q contains %s: Envoy matches bytes, so \\xFF is the highest; write the character itself", s, wide)
	case size > maxRegexSize:
		v.add(field, "%q is too large for a proxy: its repetitions and character classes expand to %d steps; "+
			"at most %d are allowed", s, size, maxRegexSize)
	}
}

// maxCostlyClasses bounds costlyClasses: Go needs up to 0.1 ms for each, where others need a microsecond.
const maxCostlyClasses = 10

// costlyClasses counts what takes long to parse: classes of Unicode such as \pL, and ranges that contain many
// characters, which (?i) folds one by one; such a range counts as five.
func costlyClasses(expr string) int {
	n := strings.Count(expr, `\p`) + strings.Count(expr, `\P`)
	if !strings.Contains(expr, "[") || !strings.Contains(expr, "(?") {
		return n
	}
	for i, c := range expr {
		if c > 0xff && strings.HasSuffix(expr[:i], "-") {
			n += 5
		}
	}
	return n
}

// wideEscape returns the first \x{...} of an expression that stands for more
// than a byte; empty when there is none.
func wideEscape(expr string) string {
	for i := 0; i < len(expr)-1; i++ {
		if expr[i] != '\\' {
			continue
		}
		i++ // what is escaped may be a backslash
		digits, found := strings.CutPrefix(expr[i:], "x{")
		digits, _, closed := strings.Cut(digits, "}")
		if n, err := strconv.ParseUint(digits, 16, 32); found && closed && err == nil && n > 0xff {
			return `\x{` + digits + "}"
		}
	}
	return ""
}

// maxRegexSize keeps expressions below the limit of Envoy's bootstrap
// (re2.max_program_size.error_level), beyond which Envoy refuses them.
const maxRegexSize = 4000

// regexSize estimates, not too low, the size of the program that RE2 makes.
func regexSize(expr string) (int, error) {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return 0, err
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0, err
	}
	size := 0
	for _, inst := range prog.Inst {
		size++
		switch inst.Op {
		case syntax.InstRune:
			size += 2 * len(inst.Rune) // RE2 works on bytes: a range of runes takes several steps
		case syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			size += 10
		default:
		}
	}
	return size, nil
}

// substitution checks that \N names a group that the expression has.
func (v *validator) substitution(at, expr, subst string) {
	before := len(v.errs)
	if v.regex(at+".regex", expr); len(v.errs) > before {
		return
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		v.add(at+".regex", "%q is not a regular expression in RE2 syntax: %s", expr, err)
		return
	}
	for i := 0; i < len(subst); i++ {
		if c := subst[i]; c < ' ' || c >= 0x7f {
			v.add(at+".substitution", "%q contains a control character or a non-ASCII character", subst)
			return
		}
		if subst[i] != '\\' {
			continue
		}
		i++
		switch {
		case i < len(subst) && subst[i] == '\\':
		case i == len(subst) || subst[i] < '0' || subst[i] > '9':
			v.add(at+".substitution", `%q: a backslash must be followed by a digit or a backslash`, subst)
			return
		case int(subst[i]-'0') > re.NumSubexp():
			v.add(at+".substitution", `%q refers to group %c, but the expression has only %d`, subst, subst[i], re.NumSubexp())
			return
		}
	}
}

// token accepts an HTTP token: a method or field name (RFC 9110 section 5.6.2).
func (v *validator) token(field, s string) {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return !isAlphanumeric(r) && !strings.ContainsRune("!#$%&'*+-.^_`|~", r)
	}) {
		v.add(field, "%q is not an HTTP token", s)
	}
}

// headerValue accepts visible ASCII without spaces, as a Host header is.
func (v *validator) headerValue(field, s string) {
	if len(s) > 255 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		v.add(field, "%q is not a host name, optionally with a port", s)
	}
}

func (v *validator) duration(field string, d Duration) {
	if d < 0 || time.Duration(d) > 24*time.Hour {
		v.add(field, "%s is not between 0s and 24h", time.Duration(d))
	}
}
