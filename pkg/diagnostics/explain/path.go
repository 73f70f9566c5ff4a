package explain

import (
	"encoding/hex"
	"errors"
	"strings"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

var (
	errFragment = errors.New("the path contains a #, which clients never send")
	errNUL      = errors.New("the path contains %00")
	errSlashes  = errors.New("the path contains an escaped slash")
)

// plainPath returns the target as it is compared with routes
// (ConnectionManagerUtility::maybeNormalizePath). redirect means that the client is
// redirected there instead.
func plainPath(target string, l *hcmv3.HttpConnectionManager) (plain string, redirect bool, err error) {
	if strings.Contains(target, "#") {
		return target, false, errFragment
	}
	path, query := cutQuery(target)
	if action := l.GetPathWithEscapedSlashesAction(); action > hcmv3.HttpConnectionManager_KEEP_UNCHANGED {
		unescaped := strings.NewReplacer("%2F", "/", "%2f", "/", "%5C", `\`, "%5c", `\`).Replace(path)
		if unescaped != path && action == hcmv3.HttpConnectionManager_REJECT_REQUEST {
			return target, false, errSlashes
		}
		redirect = unescaped != path && action == hcmv3.HttpConnectionManager_UNESCAPE_AND_REDIRECT
		path = unescaped
	}
	if l.GetNormalizePath().GetValue() {
		if path, err = resolve(withoutDotParameters(path)); err != nil {
			return target, false, err
		}
	}
	if l.GetMergeSlashes() {
		path = mergeSlashes(path)
	}
	return path + query, redirect, nil
}

// mergeSlashes merges consecutive slashes. A path that consists only of slashes keeps
// two, as in Envoy.
func mergeSlashes(path string) string {
	if len(path) > 1 && strings.Trim(path, "/") == "" {
		return "//"
	}
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return path
}

// cutQuery splits the target before the question mark.
func cutQuery(target string) (path, query string) {
	if i := strings.IndexByte(target, '?'); i >= 0 {
		return target[:i], target[i:]
	}
	return target, ""
}

// withoutDotParameters turns ..;x into the segment that backends read.
func withoutDotParameters(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if strings.HasPrefix(s, "..;") {
			segments[i] = ".."
		} else if strings.HasPrefix(s, ".;") {
			segments[i] = "."
		}
	}
	return strings.Join(segments, "/")
}

// resolve removes dot segments from a path, decodes unnecessary escapes, escapes what
// must be, and turns backslashes into slashes, like Envoy's copy of Chromium's URL
// library.
func resolve(path string) (string, error) {
	c := canon{in: path, badPercent: -1}
	var err error
	for c.at < len(path) {
		switch ch := path[c.at]; {
		case c.dotLength(c.at) > 0:
			c.takeDot()
		case ch == '\\':
			c.put('/')
		case ch == '%':
			if v, ok := c.takeEscape(); ok && v == 0 {
				err = errNUL
			}
		case isEscaped(ch):
			const digits = "0123456789ABCDEF"
			c.put('%', digits[ch>>4], digits[ch&15])
		default:
			c.put(ch)
		}
		c.at++
	}
	return string(c.out), err
}

// canon is a path that is being converted to its canonical form.
type canon struct {
	in  string
	at  int
	out []byte
	// badPercent is the position in out of a percent sign that begins no escape; -1
	// before the first.
	badPercent int
}

func (c *canon) put(b ...byte) { c.out = append(c.out, b...) }

// dotLength returns the length of the dot at i, which may be escaped; 0 if it is not a
// dot.
func (c *canon) dotLength(i int) int {
	switch {
	case i < len(c.in) && c.in[i] == '.':
		return 1
	case i+2 < len(c.in) && c.in[i] == '%' && c.in[i+1] == '2' && c.in[i+2]|0x20 == 'e':
		return 3
	}
	return 0
}

// separator returns 1 at a slash, 0 at the end and -1 elsewhere.
func (c *canon) separator(i int) int {
	switch {
	case i == len(c.in):
		return 0
	case c.in[i] == '/' || c.in[i] == '\\':
		return 1
	}
	return -1
}

// takeDot leaves at on the last character that it consumed.
func (c *canon) takeDot() {
	first := c.dotLength(c.at)
	after := c.at + first
	if len(c.out) > 0 && c.out[len(c.out)-1] == '/' {
		if n := c.separator(after); n >= 0 {
			c.at = after + n - 1
			return
		}
		if second := c.dotLength(after); second > 0 {
			if n := c.separator(after + second); n >= 0 {
				c.removeLastSegment()
				c.at = after + second + n - 1
				return
			}
		}
	}
	c.put('.')
	c.at = after - 1
}

// removeLastSegment removes the last segment of out, which ends in a slash.
func (c *canon) removeLastSegment() {
	if i := strings.LastIndexByte(string(c.out[:len(c.out)-1]), '/'); i >= 0 {
		c.out = c.out[:i+1]
	}
}

// takeEscape returns the decoded character. ok is false for a percent sign that begins no
// escape.
func (c *canon) takeEscape() (v byte, ok bool) {
	if c.at+2 < len(c.in) {
		v, ok = hexValue(c.in[c.at+1 : c.at+3])
	}
	if !ok {
		c.badPercent = len(c.out)
		c.put('%')
		return 0, false
	}
	escape := c.in[c.at : c.at+3]
	c.at += 2
	if !isPlain(v) {
		c.put([]byte(escape)...)
		return v, true
	}
	c.put(v)
	if c.badPercent >= 0 && c.badPercent >= len(c.out)-3 {
		c.keepLiteral()
	}
	return v, true
}

// keepLiteral escapes a percent sign if it would begin an escape only because a character
// after it was decoded. A dot segment may already have removed the sign.
func (c *canon) keepLiteral() {
	i := c.badPercent
	if i >= len(c.out) || c.out[i] != '%' {
		return
	}
	tail := string(c.out[i+1:])
	digits := tail
	if next := c.at + 1; len(tail) == 1 && next < len(c.in) {
		digits += c.in[next : next+1]
	}
	if _, ok := hexValue(digits); ok {
		c.out = append(c.out[:i+1], "25"+tail...)
	}
}

// hexValue reads two hexadecimal digits.
func hexValue(s string) (byte, bool) {
	b, err := hex.DecodeString(s)
	if err != nil || len(b) != 1 {
		return 0, false
	}
	return b[0], true
}

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// isPlain reports whether a character needs no escape.
func isPlain(c byte) bool { return strings.IndexByte(alphanumeric+"-._~", c) >= 0 }

// isEscaped reports whether a character is escaped although it may be sent.
func isEscaped(c byte) bool { return strings.IndexByte("\"<>^`{|}", c) >= 0 }
