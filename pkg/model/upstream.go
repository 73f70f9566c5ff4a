package model

import (
	"net/netip"
	"slices"
)

// Upstream is one backend: an address, a port and how to speak to it.
type Upstream struct {
	ID   int64  `json:"upstream_id"`
	Name string `json:"upstream_name"`
	// IP is an IPv4 or IPv6 address or a DNS name, which Envoy resolves.
	IP   string `json:"upstream_ip"`
	Port int    `json:"upstream_port"`
	// Weight is this upstream's share beside the others of a route, 0 to
	// 1000000. 0 takes it out of rotation.
	Weight int `json:"upstream_weight"`
	// HCPath is the path of the active health check; empty means none.
	HCPath string `json:"upstream_hc_path"`
	// HCHost is the Host header of the health check; empty means the
	// cluster's name, Envoy's default.
	HCHost string `json:"upstream_hc_host"`
	// HCIntervalSeconds and HCTimeoutSeconds are in seconds.
	HCIntervalSeconds         int `json:"upstream_hc_intervalseconds"`
	HCTimeoutSeconds          int `json:"upstream_hc_timeoutseconds"`
	HCUnhealthyThresholdCount int `json:"upstream_hc_unhealthythresholdcount"`
	HCHealthyThresholdCount   int `json:"upstream_hc_healthythresholdcount"`
	// Strategy is how a request picks one of a route's upstreams.
	Strategy string `json:"upstream_strategy"`
	// Protocol is how Envoy speaks to the backend: http (HTTP/1.1), h2c
	// (HTTP/2 in the clear), tls (HTTP/1.1 over TLS) or h2 (HTTP/2 over TLS).
	Protocol string `json:"upstream_protocol"`
	// ValidationCACertificate names the secret with the certificate authorities, one
	// of which must have signed the certificate of a TLS backend; empty means the
	// system's.
	ValidationCACertificate string `json:"upstream_validation_cacertificate"`
	// ValidationSubjectName is the DNS name or IP address that this certificate must
	// carry, and a DNS name is the SNI; empty means IP.
	ValidationSubjectName string `json:"upstream_validation_subjectname"`
	// TLSInsecure accepts every certificate.
	TLSInsecure bool `json:"upstream_tls_insecure"`
	// ClientCertificate names the secret with the pair that is shown to a TLS
	// backend; empty means none.
	ClientCertificate string `json:"upstream_client_certificate"`
	// ConnectTimeoutSeconds bounds the making of a connection, TLS included.
	ConnectTimeoutSeconds int `json:"upstream_connect_timeoutseconds"`
	// IdleTimeoutSeconds is how long a connection without a request is kept;
	// 0 means for ever.
	IdleTimeoutSeconds int `json:"upstream_idle_timeoutseconds"`
	// KeepaliveIntervalSeconds is the time of silence after which a connection
	// is probed, and the time between probes; 0 means that it is not.
	KeepaliveIntervalSeconds int `json:"upstream_keepalive_intervalseconds"`
	// MaxConnections, MaxPending, MaxRequests and MaxRetries bound what there
	// may be at a time: connections, requests that wait for one, requests in
	// all and retries. They hold for all upstreams of a cluster together; what
	// is above them answers 503 at once.
	MaxConnections int `json:"upstream_max_connections"`
	MaxPending     int `json:"upstream_max_pending"`
	MaxRequests    int `json:"upstream_max_requests"`
	MaxRetries     int `json:"upstream_max_retries"`
	// RetryBudgetPercent bounds retries in the place of MaxRetries: at a time they are at most this share of the
	// requests, and RetryBudgetMinCount where that is less. 0 means that there is no budget.
	RetryBudgetPercent  int `json:"upstream_retry_budgetpercent"`
	RetryBudgetMinCount int `json:"upstream_retry_budgetmincount"`
	// OutlierThresholdCount is the number of failures to connect or to answer,
	// in a row, after which an upstream gets no requests for
	// OutlierEjectionSeconds; 0 means that it always gets them.
	OutlierThresholdCount  int `json:"upstream_outlier_thresholdcount"`
	OutlierEjectionSeconds int `json:"upstream_outlier_ejectionseconds"`
	// PanicThresholdPercent: when less than this share of a cluster's upstreams
	// is healthy, all of them get requests. 0 means that an unhealthy one never
	// does.
	PanicThresholdPercent int  `json:"upstream_panic_thresholdpercent"`
	Tags                  Tags `json:"tags"`
	CreateTS              Time `json:"create_ts"`
	UpdateTS              Time `json:"update_ts"`

	discovered bool // see IsDiscovered
}

// Strategies and Protocols list the allowed values of the two fields.
func Strategies() []string {
	return []string{"round_robin", "least_request", "random", "ring_hash", "maglev"}
}

// Protocols lists the allowed values of Upstream.Protocol.
func Protocols() []string { return []string{"http", "h2c", "tls", "h2"} }

// NewUpstream returns an upstream with the defaults of rest-api.md and, for what
// it does not name, those of docs/routing.md, which has the reasons.
func NewUpstream() *Upstream {
	return &Upstream{
		Weight: 100, HCIntervalSeconds: 5, HCTimeoutSeconds: 2,
		HCUnhealthyThresholdCount: 3, HCHealthyThresholdCount: 2,
		Strategy: "round_robin", Protocol: "http",
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
const UnverifiedMessage = "its certificate is not verified (Upstream_tls_insecure): anyone on the network path can read and change requests and answers"

// IsDNSName reports whether Envoy has to resolve the address.
func (u *Upstream) IsDNSName() bool {
	_, err := netip.ParseAddr(u.IP)
	return err != nil
}

// Validate implements Object.
func (u *Upstream) Validate() []FieldError {
	var v validator
	v.name("Upstream_name", u.Name, true)
	v.address("Upstream_ip", u.IP)
	v.checkRange("Upstream_port", u.Port, 1, 65535)
	v.checkRange("Upstream_weight", u.Weight, 0, 1_000_000)
	if u.HCPath != "" {
		v.urlPath("Upstream_hc_path", u.HCPath)
	}
	if u.HCHost != "" {
		v.headerValue("Upstream_hc_host", u.HCHost)
	}
	v.checkRange("Upstream_hc_intervalseconds", u.HCIntervalSeconds, 1, 86400)
	v.checkRange("Upstream_hc_timeoutseconds", u.HCTimeoutSeconds, 1, 86400)
	v.checkRange("Upstream_hc_unhealthythresholdcount", u.HCUnhealthyThresholdCount, 1, 1000)
	v.checkRange("Upstream_hc_healthythresholdcount", u.HCHealthyThresholdCount, 1, 1000)
	v.oneOf("Upstream_strategy", u.Strategy, Strategies())
	v.oneOf("Upstream_protocol", u.Protocol, Protocols())
	u.validateTLS(&v)
	u.validateRobustness(&v)
	v.tags(u.Tags)
	return v.errs
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
	if u.ValidationSubjectName != "" {
		v.address("Upstream_validation_subjectname", u.ValidationSubjectName)
		if !u.SpeaksTLS() {
			v.add("Upstream_validation_subjectname", needsTLS)
		}
	}
	switch {
	case !u.TLSInsecure:
	case !u.SpeaksTLS():
		v.add("Upstream_tls_insecure", needsTLS)
	case u.ValidationCACertificate != "":
		v.add("Upstream_tls_insecure", "cannot be combined with Upstream_validation_cacertificate: one of them accepts every certificate")
	}
}

func (u *Upstream) validateRobustness(v *validator) {
	const most = 1_000_000
	v.checkRange("Upstream_connect_timeoutseconds", u.ConnectTimeoutSeconds, 1, 3600)
	v.checkRange("Upstream_idle_timeoutseconds", u.IdleTimeoutSeconds, 0, 86400)
	v.checkRange("Upstream_keepalive_intervalseconds", u.KeepaliveIntervalSeconds, 0, 7200)
	v.checkRange("Upstream_max_connections", u.MaxConnections, 1, most)
	v.checkRange("Upstream_max_pending", u.MaxPending, 1, most)
	v.checkRange("Upstream_max_requests", u.MaxRequests, 1, most)
	v.checkRange("Upstream_max_retries", u.MaxRetries, 0, most)
	v.checkRange("Upstream_retry_budgetpercent", u.RetryBudgetPercent, 0, 100)
	v.checkRange("Upstream_retry_budgetmincount", u.RetryBudgetMinCount, 0, most)
	v.checkRange("Upstream_outlier_thresholdcount", u.OutlierThresholdCount, 0, 1000)
	v.checkRange("Upstream_outlier_ejectionseconds", u.OutlierEjectionSeconds, 1, 3600)
	v.checkRange("Upstream_panic_thresholdpercent", u.PanicThresholdPercent, 0, 100)
}
