package model

import "net/netip"

// Proxy is the name under which Envoys fetch their configuration, and where
// they listen.
type Proxy struct {
	ID   int64  `json:"proxy_id"`
	Name string `json:"name"`
	// HTTPPort and HTTPSPort are the ports of the two listeners.
	HTTPPort  int `json:"http_port"`
	HTTPSPort int `json:"https_port"`
	// ListenIP is the address that both listeners bind.
	ListenIP string `json:"listen_ip"`
	// TrustedHops is how many own proxies, such as load balancers, a request
	// passes before it is here. Each adds the address of its client to
	// X-Forwarded-For, so the client's is that many from the right; 0 means
	// that it is the address of the connection. One too many lets a client
	// make up its address.
	TrustedHops int `json:"trusted_hops"`
	// EscapedSlashes is what happens to a path with %2F or %5C, and
	// UnderscoreHeaders to a header with an underscore in its name.
	EscapedSlashes    string `json:"escaped_slashes"`
	UnderscoreHeaders string `json:"underscore_headers"`
	// TLSMinVersion is the oldest TLS version of the HTTPS listener: 1.2 or 1.3.
	TLSMinVersion string `json:"tls_min_version"`
	Tags          Tags   `json:"tags"`
	CreateTS      Time   `json:"create_ts"`
	UpdateTS      Time   `json:"update_ts"`
}

// maxTrustedHops is more than any way into a network has.
const maxTrustedHops = 10

// What happens to an escaped slash in a path.
const (
	SlashesRedirect = "redirect" // 307 to the path with the slash itself
	SlashesKeep     = "keep"     // routes and upstreams see the escape
	SlashesReject   = "reject"   // 400
)

// What happens to a header with an underscore in its name.
const (
	UnderscoresReject = "reject" // 400
	UnderscoresDrop   = "drop"   // the header is left out
	UnderscoresAllow  = "allow"  // routes and upstreams see it
)

// The versions of TLS that the HTTPS listener may begin with.
const (
	TLS12 = "1.2"
	TLS13 = "1.3"
)

// NewProxy returns a proxy with the defaults of rest-api.md.
func NewProxy() *Proxy {
	return &Proxy{
		HTTPPort: 8080, HTTPSPort: 8443, ListenIP: "0.0.0.0",
		EscapedSlashes: SlashesRedirect, UnderscoreHeaders: UnderscoresReject, TLSMinVersion: TLS12,
	}
}

// Key implements Object.
func (p *Proxy) Key() Key { return ProxyKey(p.Name) }

// Meta implements Object.
func (p *Proxy) Meta() Meta { return Meta{&p.ID, &p.CreateTS, &p.UpdateTS} }

// TagList implements Tagged.
func (p *Proxy) TagList() *Tags { return &p.Tags }

// Validate implements Object.
func (p *Proxy) Validate() []FieldError {
	var v validator
	v.name("Name", p.Name, true)
	v.checkRange("Http_port", p.HTTPPort, 1, 65535)
	v.checkRange("Https_port", p.HTTPSPort, 1, 65535)
	if p.HTTPPort == p.HTTPSPort {
		v.add("Https_port", "must differ from Http_port")
	}
	if _, err := netip.ParseAddr(p.ListenIP); err != nil {
		v.add("Listen_ip", "%q is not an IPv4 or IPv6 address, for example 0.0.0.0", p.ListenIP)
	}
	v.checkRange("Trusted_hops", p.TrustedHops, 0, maxTrustedHops)
	v.oneOf("Escaped_slashes", p.EscapedSlashes, []string{SlashesRedirect, SlashesKeep, SlashesReject})
	v.oneOf("Underscore_headers", p.UnderscoreHeaders, []string{UnderscoresReject, UnderscoresDrop, UnderscoresAllow})
	v.oneOf("Tls_min_version", p.TLSMinVersion, []string{TLS12, TLS13})
	v.tags(p.Tags)
	return v.errs
}
