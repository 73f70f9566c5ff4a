package model

import (
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// Upstream is one backend: an address, a port and how to speak to it.
// +example={upstream_name: blue, upstream_ip: 10.0.0.1, upstream_port: 8081, upstream_hc_path: /healthz, tags: [shop]}
type Upstream struct {
	ID   int64  `json:"upstream_id"`
	Name string `json:"upstream_name" form:"Upstream_name,required"`
	// An IPv4 or IPv6 address, a DNS name, which Envoy resolves, or unix:PATH, a Unix socket on the machine of the Envoy, in a
	// directory of --upstream-sockets. The port of a socket has no effect.
	IP   string `json:"upstream_ip" form:"Upstream_ip,required"`
	Port int    `json:"upstream_port" form:"Upstream_port,required" range:"1-65535"`
	// Weight among the upstreams of a route; 0 takes it out of rotation.
	Weight int `json:"upstream_weight" form:"Upstream_weight" range:"0-1000000"`
	// Upstreams with a higher number get requests only as far as those with a lower one are not healthy. Those of a route
	// with different numbers must have equal settings.
	Priority int `json:"upstream_priority" form:"Upstream_priority" range:"0-7"`
	// Zone of the upstream, such as europe-west1-b; empty means unknown. Discovered endpoints have their own.
	Zone string `json:"upstream_zone" form:"Upstream_zone"`
	// Requests stay in the zone of the Envoy (--zone) while at least this number of the upstreams there is healthy; 0 means
	// that zones do not matter. Requires Upstream_strategy round_robin, least_request or random.
	ZoneMinCount int `json:"upstream_zone_mincount" form:"Upstream_zone_mincount" range:"0-1000"`
	// Time in which the share of an upstream that becomes healthy grows from a tenth to its weight; 0 means that it has its
	// weight immediately. Requires Upstream_strategy round_robin or least_request.
	SlowStartSeconds int `json:"upstream_slowstart_seconds" form:"Upstream_slowstart_seconds" range:"0-3600"`
	// strict sends requests to all addresses of a DNS name, logical to the first one, and keeps its connections when the
	// addresses change. An upstream with logical shares limits and health checks with no other.
	// +enum=DNSModes
	DNS string `json:"upstream_dns" form:"Upstream_dns"`
	// Which addresses of a DNS name count: with v4_preferred and v6_preferred, the others only if there are none.
	// +enum=DNSFamilies
	DNSFamily string `json:"upstream_dns_family" form:"Upstream_dns_family"`
	// Time between look-ups of a DNS name; 0 means the time to live of its records, or 5 if that is 0.
	DNSRefreshSeconds int `json:"upstream_dns_refreshseconds" form:"Upstream_dns_refreshseconds" range:"0-86400"`
	// Each connection begins with the PROXY protocol, version 1 or 2, which says whose connection to the gateway it passes
	// on. The upstream must read it. Each connection to the gateway has connections of its own to the upstream then.
	// +enum=ProxyProtocols
	ProxyProtocol string `json:"upstream_proxyprotocol" form:"Upstream_proxyprotocol"`
	// What an active health check is: http is a request, tcp a connection, for services of mode tcp and tls.
	// +schema=HCType
	HCType string `json:"upstream_hc_type" form:"Upstream_hc_type"`
	// Path of the active health check; empty means none, unless Upstream_hc_type is tcp.
	HCPath string `json:"upstream_hc_path" form:"Upstream_hc_path"`
	// Host header of the health check; empty means the name of the cluster, Envoy's default.
	HCHost string `json:"upstream_hc_host" form:"Upstream_hc_host"`
	// Time between health checks.
	HCIntervalSeconds int `json:"upstream_hc_intervalseconds" form:"Upstream_hc_intervalseconds" range:"1-86400"`
	// Time that a health check may take.
	HCTimeoutSeconds int `json:"upstream_hc_timeoutseconds" form:"Upstream_hc_timeoutseconds" range:"1-86400"`
	// Consecutive failures after which the upstream gets no requests.
	HCUnhealthyThresholdCount int `json:"upstream_hc_unhealthythresholdcount" form:"Upstream_hc_unhealthythresholdcount" range:"1-1000"`
	// Consecutive successes after which the upstream gets requests again.
	HCHealthyThresholdCount int `json:"upstream_hc_healthythresholdcount" form:"Upstream_hc_healthythresholdcount" range:"1-1000"`
	// How Envoy selects one of the upstreams of a route.
	// +enum=Strategies
	Strategy string `json:"upstream_strategy" form:"Upstream_strategy"`
	// http is HTTP/1.1 and h2c is HTTP/2, both in the clear; tls is HTTP/1.1 and h2 is HTTP/2, both over TLS.
	// +enum=Protocols
	Protocol string `json:"upstream_protocol" form:"Upstream_protocol"`
	// Name of the secret with the certificate authorities. One of them must have signed the upstream's certificate.
	// Empty means the system's authorities. Requires Upstream_protocol tls or h2.
	ValidationCACertificate string `json:"upstream_validation_cacertificate" form:"Upstream_validation_cacertificate"`
	// DNS name or IP address that the upstream's certificate must contain; a DNS name is also the SNI. Empty means
	// Upstream_ip. Requires Upstream_protocol tls or h2.
	ValidationSubjectName string `json:"upstream_validation_subjectname" form:"Upstream_validation_subjectname"`
	// Names of which the upstream's certificate must contain one, in place of Upstream_validation_subjectname: DNS names, IP
	// addresses and URIs such as spiffe://example.com/shop, separated by commas. Requires Upstream_protocol tls or h2.
	ValidationAltNames string `json:"upstream_validation_altnames" form:"Upstream_validation_altnames"`
	// TLSInsecure accepts every certificate.
	TLSInsecure bool `json:"upstream_tls_insecure" form:"Upstream_tls_insecure"`
	// Name of the secret with the certificate and key that the gateway presents to the upstream. Empty means none.
	// Requires Upstream_protocol tls or h2.
	ClientCertificate string `json:"upstream_client_certificate" form:"Upstream_client_certificate"`
	// Time to open a connection, including TLS.
	ConnectTimeoutSeconds int `json:"upstream_connect_timeoutseconds" form:"Upstream_connect_timeoutseconds" range:"1-3600"`
	// Time after which an idle connection is closed; 0 means never.
	IdleTimeoutSeconds int `json:"upstream_idle_timeoutseconds" form:"Upstream_idle_timeoutseconds" range:"0-86400"`
	// Silence before a connection is probed, and time between probes; 0 means never.
	KeepaliveIntervalSeconds int `json:"upstream_keepalive_intervalseconds" form:"Upstream_keepalive_intervalseconds" range:"0-7200"`
	// Concurrent connections, for all upstreams of a route with equal settings.
	MaxConnections int `json:"upstream_max_connections" form:"Upstream_max_connections" range:"1-1000000"`
	// Requests that wait for a connection; further requests get 503 immediately.
	MaxPending int `json:"upstream_max_pending" form:"Upstream_max_pending" range:"1-1000000"`
	// Concurrent requests, including waiting ones; further requests get 503 immediately.
	MaxRequests int `json:"upstream_max_requests" form:"Upstream_max_requests" range:"1-1000000"`
	// Concurrent retries.
	MaxRetries int `json:"upstream_max_retries" form:"Upstream_max_retries" range:"0-1000000"`
	// Percentage of the concurrent requests that may be retries (retry budget). It replaces Upstream_max_retries; 0
	// means no budget.
	RetryBudgetPercent int `json:"upstream_retry_budgetpercent" form:"Upstream_retry_budgetpercent" range:"0-100"`
	// Concurrent retries that a retry budget always allows, however few requests there are.
	RetryBudgetMinCount int `json:"upstream_retry_budgetmincount" form:"Upstream_retry_budgetmincount" range:"0-1000000"`
	// Consecutive failures to connect or to answer after which the upstream is ejected: it gets no requests for some
	// time; 0 means never.
	OutlierThresholdCount int `json:"upstream_outlier_thresholdcount" form:"Upstream_outlier_thresholdcount" range:"0-1000"`
	// Time without requests; it grows with each consecutive ejection.
	OutlierEjectionSeconds int `json:"upstream_outlier_ejectionseconds" form:"Upstream_outlier_ejectionseconds" range:"1-3600"`
	// If less than this percentage of the upstreams is healthy, all upstreams get requests; 0 means never.
	PanicThresholdPercent int  `json:"upstream_panic_thresholdpercent" form:"Upstream_panic_thresholdpercent" range:"0-100"`
	Tags                  Tags `json:"tags" form:"tags"`
	CreateTS              Time `json:"create_ts"`
	UpdateTS              Time `json:"update_ts"`

	discovered bool // see IsDiscovered
}

// Strategies and Protocols list the allowed values of the two fields.
func Strategies() []string {
	return []string{"round_robin", "least_request", "random", "ring_hash", "maglev"}
}

// What an active health check is.
const (
	HCTypeHTTP = "http" // a request
	HCTypeTCP  = "tcp"  // a connection
)

// Protocols lists the allowed values of Upstream.Protocol.
func Protocols() []string { return []string{"http", "h2c", "tls", "h2"} }

// DNSModes and DNSFamilies list the allowed values of the two fields.
func DNSModes() []string { return []string{"strict", "logical"} }

// DNSFamilies lists the allowed values of Upstream.DNSFamily.
func DNSFamilies() []string {
	return []string{"v4_preferred", "v6_preferred", "v4_only", "v6_only", "all"}
}

// ProxyProtocols lists the allowed values of Upstream.ProxyProtocol.
func ProxyProtocols() []string { return []string{"none", "v1", "v2"} }

// NewUpstream returns an upstream with the defaults of rest-api.md and, for what
// it does not name, those of docs/routing.md, which has the reasons.
func NewUpstream() *Upstream {
	return &Upstream{
		Weight: 100, HCType: HCTypeHTTP, HCIntervalSeconds: 5, HCTimeoutSeconds: 2,
		HCUnhealthyThresholdCount: 3, HCHealthyThresholdCount: 2,
		Strategy: "round_robin", Protocol: "http", DNS: "strict", DNSFamily: "v4_preferred", DNSRefreshSeconds: 5,
		ProxyProtocol:         "none",
		ConnectTimeoutSeconds: 5, IdleTimeoutSeconds: 4, KeepaliveIntervalSeconds: 30,
		MaxConnections: 4096, MaxPending: 4096, MaxRequests: 4096, MaxRetries: 4096, RetryBudgetMinCount: 3,
		OutlierThresholdCount: 3, OutlierEjectionSeconds: 3,
	}
}

// Key implements Object.
func (u *Upstream) Key() Key { return UpstreamKey(u.Name) }

// Meta implements Object.
func (u *Upstream) Meta() Meta { return Meta{&u.ID, &u.CreateTS, &u.UpdateTS} }

// TagList implements Tagged.
func (u *Upstream) TagList() *Tags { return &u.Tags }

// Names implements Namer: the secrets with the certificate authorities and with the
// client's certificate.
func (u *Upstream) Names() []Key {
	var keys []Key
	for _, name := range []string{u.ValidationCACertificate, u.ClientCertificate} {
		if name != "" && !slices.Contains(keys, SecretKey(name)) {
			keys = append(keys, SecretKey(name))
		}
	}
	return keys
}

// SpeaksTLS reports whether the protocol is one over TLS.
func (u *Upstream) SpeaksTLS() bool { return u.Protocol == "tls" || u.Protocol == "h2" }

// IsUnverified reports whether every certificate is accepted.
func (u *Upstream) IsUnverified() bool { return u.SpeaksTLS() && u.TLSInsecure }

// UnverifiedMessage is what is said of such an upstream.
const UnverifiedMessage = "its certificate is not verified (Upstream_tls_insecure): " +
	"anyone on the network path can read and change requests and answers"

// IsDNSName reports whether Envoy has to resolve the address.
func (u *Upstream) IsDNSName() bool {
	_, err := netip.ParseAddr(u.IP)
	_, socket := u.Socket()
	return err != nil && !socket
}

// Socket returns the path of the Unix socket that is the address; false if it is none.
func (u *Upstream) Socket() (path string, is bool) { return strings.CutPrefix(u.IP, SocketPrefix) }

// SocketPrefix begins an address that is a Unix socket.
const SocketPrefix = "unix:"

// Validate implements Object.
func (u *Upstream) Validate() []FieldError {
	var v validator
	v.name("Upstream_name", u.Name, true)
	if path, is := u.Socket(); is {
		v.socket("Upstream_ip", path)
	} else {
		v.address("Upstream_ip", u.IP)
	}
	if u.HCPath != "" {
		v.urlPath("Upstream_hc_path", u.HCPath)
	}
	if u.HCHost != "" {
		v.headerValue("Upstream_hc_host", u.HCHost)
	}
	v.oneOf("Upstream_hc_type", u.HCType, []string{HCTypeHTTP, HCTypeTCP})
	if u.HCType == HCTypeTCP {
		for _, f := range []struct{ name, value string }{{"Upstream_hc_path", u.HCPath}, {"Upstream_hc_host", u.HCHost}} {
			if f.value != "" {
				v.add(f.name, "is for Upstream_hc_type http: a connection has no request")
			}
		}
	}
	v.oneOf("Upstream_strategy", u.Strategy, Strategies())
	v.oneOf("Upstream_protocol", u.Protocol, Protocols())
	u.validateTLS(&v)
	u.validateBalancing(&v)
	v.tags(u.Tags)
	return v.finish(u)
}

func (u *Upstream) validateTLS(v *validator) {
	const needsTLS = "needs TLS: Upstream_protocol tls or h2"
	for _, f := range []struct{ name, secret string }{
		{"Upstream_validation_cacertificate", u.ValidationCACertificate},
		{"Upstream_client_certificate", u.ClientCertificate},
	} {
		if f.secret != "" {
			v.name(f.name, f.secret, false)
			if !u.SpeaksTLS() {
				v.add(f.name, needsTLS)
			}
		}
	}
	if _, is := u.Socket(); is && u.SpeaksTLS() && !u.TLSInsecure && u.ValidationSubjectName == "" {
		v.add("Upstream_validation_subjectname", "is required: a Unix socket has no name that a certificate could contain")
	}
	if u.ValidationSubjectName != "" {
		v.address("Upstream_validation_subjectname", u.ValidationSubjectName)
		if !u.SpeaksTLS() {
			v.add("Upstream_validation_subjectname", needsTLS)
		}
	}
	if u.ValidationAltNames != "" {
		v.altNames("Upstream_validation_altnames", u.AltNames())
		if !u.SpeaksTLS() {
			v.add("Upstream_validation_altnames", needsTLS)
		}
	}
	switch {
	case !u.TLSInsecure:
	case u.ValidationAltNames != "":
		v.add("Upstream_tls_insecure", "cannot be combined with Upstream_validation_altnames: one of them accepts every certificate")
	case !u.SpeaksTLS():
		v.add("Upstream_tls_insecure", needsTLS)
	case u.ValidationCACertificate != "":
		v.add("Upstream_tls_insecure", "cannot be combined with Upstream_validation_cacertificate: "+
			"one of them accepts every certificate")
	}
}

// maxAltNames bounds the names that a certificate is compared with.
const maxAltNames = 16

// AltNames are the names of Upstream_validation_altnames.
func (u *Upstream) AltNames() []string {
	if u.ValidationAltNames == "" {
		return nil
	}
	names := strings.Split(u.ValidationAltNames, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// IsURI reports whether the name of a certificate is a URI.
func IsURI(name string) bool { return strings.Contains(name, "://") }

func (v *validator) altNames(field string, names []string) {
	if len(names) > maxAltNames {
		v.add(field, "has %d names; at most %d are allowed", len(names), maxAltNames)
		return
	}
	for _, name := range names {
		if !IsURI(name) {
			v.address(field, name)
			continue
		}
		if u, err := url.Parse(name); err != nil || u.Scheme == "" || u.Host == "" || len(name) > maxHeaderName || u.String() != name {
			v.add(field, "%q is not a URI such as spiffe://example.com/shop", name)
		}
	}
}

func (u *Upstream) validateBalancing(v *validator) {
	if u.Zone != "" {
		v.name("Upstream_zone", u.Zone, false)
	}
	if u.ZoneMinCount > 0 && u.hashes() {
		v.add("Upstream_zone_mincount", "needs Upstream_strategy round_robin, least_request or random: "+
			"the others choose by a hash of the request")
	}
	if u.SlowStartSeconds > 0 && (u.hashes() || u.Strategy == "random") {
		v.add("Upstream_slowstart_seconds", "needs Upstream_strategy round_robin or least_request")
	}
	v.oneOf("Upstream_dns", u.DNS, DNSModes())
	v.oneOf("Upstream_dns_family", u.DNSFamily, DNSFamilies())
	v.oneOf("Upstream_proxyprotocol", u.ProxyProtocol, ProxyProtocols())
}

// hashes reports whether the strategy chooses by a hash of the request.
func (u *Upstream) hashes() bool { return u.Strategy == "ring_hash" || u.Strategy == "maglev" }

// Differences names the fields that upstreams of one cluster must have in common, and in which two upstreams differ.
func (u *Upstream) Differences(other *Upstream) []string {
	own := []string{"Upstream_name", "Upstream_ip", "Upstream_port", "Upstream_weight", "Upstream_priority", "Upstream_zone", "tags"}
	var names []string
	a, b := reflect.ValueOf(u).Elem(), reflect.ValueOf(other).Elem()
	for i := range a.NumField() {
		name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("form"), ",")
		if name != "" && !slices.Contains(own, name) && !a.Field(i).Equal(b.Field(i)) {
			names = append(names, name)
		}
	}
	return names
}
