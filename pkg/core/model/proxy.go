package model

import "net/netip"

// Proxy is the name under which Envoys fetch their configuration, and where
// they listen.
// +example={name: gw}
type Proxy struct {
	ID   int64  `json:"proxy_id"`
	Name string `json:"name" form:"Name,required"`
	// Port of the HTTP listener.
	HTTPPort int `json:"http_port" form:"Http_port" range:"1-65535"`
	// Port of the HTTPS listener, which is open while a service of the proxy has a certificate.
	HTTPSPort int `json:"https_port" form:"Https_port" range:"1-65535"`
	// Address of both listeners. Default: 0.0.0.0, or in a standalone gateway the value of --listen-ip.
	// +minLength=1
	ListenIP string `json:"listen_ip" form:"Listen_ip"`
	// The exact number of your own proxies in front of the gateway that every request passes, such as load balancers
	// that append to X-Forwarded-For. The client's address is at this position from the right in that header; 0 means
	// the address of the connection, whatever the header contains. If the number is too high, a client can forge its
	// address and escape its rate limit.
	TrustedHops int `json:"trusted_hops" form:"Trusted_hops" range:"0-10"` // ten is more than any way into a network has
	// EscapedSlashes is what happens to a path with %2F or %5C.
	// +schema=EscapedSlashes
	EscapedSlashes string `json:"escaped_slashes" form:"Escaped_slashes"`
	// UnderscoreHeaders is what happens to a header with an underscore in its name.
	// +schema=UnderscoreHeaders
	UnderscoreHeaders string `json:"underscore_headers" form:"Underscore_headers"`
	// TLSMinVersion is the oldest TLS version of the HTTPS listener: 1.2 or 1.3.
	// +schema=TLSMinVersion
	TLSMinVersion string `json:"tls_min_version" form:"Tls_min_version,version"`
	// Serves services with a certificate over HTTP/3 too, at the UDP port with the number of Https_port.
	HTTP3 bool `json:"http3" form:"Http3"`
	// The UDP port at which clients reach HTTP/3, if it is not Https_port, for example behind a load balancer. Responses
	// name it in the header alt-svc. 0 means Https_port.
	AltSvcPort int `json:"alt_svc_port" form:"Alt_svc_port" range:"0-65535"`
	// Ports are those that routes distinguish. Only a Gateway of Kubernetes sets them.
	Ports    Ports `json:"ports,omitempty"`
	Tags     Tags  `json:"tags" form:"tags"`
	CreateTS Time  `json:"create_ts"`
	UpdateTS Time  `json:"update_ts"`
}

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
	if p.HTTPPort == p.HTTPSPort {
		v.add("Https_port", "must differ from Http_port")
	}
	if _, err := netip.ParseAddr(p.ListenIP); err != nil {
		v.add("Listen_ip", "%q is not an IPv4 or IPv6 address, for example 0.0.0.0", p.ListenIP)
	}
	v.oneOf("Escaped_slashes", p.EscapedSlashes, []string{SlashesRedirect, SlashesKeep, SlashesReject})
	v.oneOf("Underscore_headers", p.UnderscoreHeaders, []string{UnderscoresReject, UnderscoresDrop, UnderscoresAllow})
	v.oneOf("Tls_min_version", p.TLSMinVersion, []string{TLS12, TLS13})
	ports := make([]int, len(p.Ports))
	for i, port := range p.Ports {
		ports[i] = port.Port
	}
	v.ports("ports", ports)
	v.tags(p.Tags)
	return v.finish(p)
}
