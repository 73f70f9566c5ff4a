package explain

import (
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Request is a request as an Envoy receives it in HTTP/1.1.
type Request struct {
	// L4 is tcp, tls or udp for a connection or datagram that is no request, on Port; 0 is the HTTPS port. Empty means a
	// request, for which 0 is the proxy's own port.
	L4   string
	Port int
	// TLS means that the request comes over HTTPS.
	TLS bool
	// ServerName is the host name that the client requests in the handshake (SNI);
	// empty for a client that connects to an address.
	ServerName string
	Method     string
	// Target is the path with its query, as in the request line. It begins with a
	// slash.
	Target string
	// Headers are in order and include Host.
	Headers []Header
	// Client is the address of the connection: the client's, unless trusted hops
	// are in front of the gateway. The zero value means 127.0.0.1.
	Client netip.Addr
}

func (r Request) client() string {
	if !r.Client.IsValid() {
		return someClient
	}
	return r.Client.String()
}

// Header is one line of a header.
type Header struct{ Name, Value string }

// NewRequest returns the request that a client would send for an absolute URL,
// without changing its text. Each header is "name: value". A Host replaces the
// host of the URL. An empty method means GET. Values that no client can send are
// reported under the names method, url and header.
func NewRequest(method, url string, headers []string) (Request, []model.FieldError) {
	r := Request{Method: method}
	if method == "" {
		r.Method = http.MethodGet
	}
	var errs []model.FieldError
	bad := func(field, format string, args ...any) {
		errs = append(errs, model.FieldError{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if strings.ContainsFunc(r.Method, isNotPrintable) {
		bad("method", "%q is not a method", r.Method)
	}
	host, message := r.readURL(url)
	if message != "" {
		bad("url", "%s", message)
	}
	for _, h := range headers {
		name, value, ok := strings.Cut(h, ":")
		if !ok || name == "" || strings.ContainsFunc(name, isNotPrintable) || strings.ContainsFunc(value, isControl) {
			bad("header", `%q is not of the form "name: value"`, h)
		}
		r.Headers = append(r.Headers, Header{name, strings.Trim(value, " \t")})
	}
	if !slices.ContainsFunc(r.Headers, func(h Header) bool { return strings.EqualFold(h.Name, "host") }) {
		r.Headers = slices.Insert(r.Headers, 0, Header{"Host", host})
	}
	return r, errs
}

// readURL splits an absolute URL without decoding or cleaning it.
func (r *Request) readURL(url string) (host, message string) {
	scheme, rest, ok := strings.Cut(url, "://")
	switch scheme = strings.ToLower(scheme); {
	case url == "":
		return "", "is missing: give the URL that a client would request, such as http://shop.example.com/cart"
	case ok && (scheme == "tcp" || scheme == "tls" || scheme == "udp"):
		r.L4 = scheme
		return r.readPort(rest)
	case !ok || scheme != "http" && scheme != "https":
		return "", fmt.Sprintf("%q does not begin with http:// or https://, or tcp://, tls:// or udp:// for a connection", url)
	case strings.ContainsFunc(url, isNotPrintable):
		return "", fmt.Sprintf("%q contains a character that clients percent-encode, such as a space as %%20", url)
	}
	r.TLS = scheme == "https"
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	host, r.Target = rest[:end], rest[end:]
	if r.TLS {
		r.ServerName = serverName(host)
	}
	if _, port, err := net.SplitHostPort(host); err == nil {
		r.Port, _ = strconv.Atoi(port)
	}
	if host == "" {
		return "", fmt.Sprintf("%q has no host", url)
	}
	if !strings.HasPrefix(r.Target, "/") {
		r.Target = "/" + r.Target
	}
	return host, ""
}

// readPort reads the host and the port of a connection.
func (r *Request) readPort(text string) (host, message string) {
	host, port, err := net.SplitHostPort(text)
	if err != nil && r.L4 == model.ModeTLS {
		host, port, err = text, "0", nil
	}
	if r.Port, _ = strconv.Atoi(port); err != nil || strings.ContainsFunc(text, isNotPrintable) || strings.Contains(text, "/") ||
		r.Port > math.MaxUint16 || r.Port < 1 && (r.L4 != model.ModeTLS || port != "0") {
		return "", fmt.Sprintf("%q is not a host and a port: write %s://127.0.0.1:5432, or tls://db.example.com for the HTTPS port", text, r.L4)
	}
	if r.L4 == model.ModeTLS {
		r.ServerName = serverName(host)
	}
	return host, ""
}

// serverName returns the host name that a client requests in the handshake for the
// host of a URL (RFC 6066 section 3).
func serverName(host string) string {
	if i := strings.LastIndexByte(host, ':'); i > strings.LastIndexByte(host, ']') {
		host = host[:i]
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ""
	}
	return strings.TrimSuffix(host, ".")
}

func isNotPrintable(r rune) bool { return r <= ' ' || r > '~' }

// isControl reports whether a character is not allowed in the value of a header.
func isControl(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
