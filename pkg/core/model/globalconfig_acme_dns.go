package model

import (
	"net/netip"
	"net/url"
	"time"
)

// ACMEDNS says how records are written into DNS, by which an authority sees that a domain is the gateway's (DNS-01, RFC
// 8555 section 8.4). Wildcards need it. The page about certificates has the contract of both kinds of hooks.
type ACMEDNS struct {
	// What writes the records: exec is the program of the setting acme-dns-exec, webhook an HTTPS server.
	// +required
	// +enum=[exec, webhook]
	Hook string `json:"hook"`
	// URL of the webhook, with https.
	// +maxLength=maxURL
	URL string `json:"url,omitempty"`
	// The webhook gets it as Authorization: Bearer.
	// +maxLength=1024
	// +writeOnly=true
	Token string `json:"token,omitempty"` // stored sealed
	// Name of the secret with the authorities that sign the certificate of the webhook. Default: those of the system.
	CACertificate string `json:"ca_certificate,omitempty"`
	// How long a call of the hook may take, from 1s to 5m. Default: 1m.
	// +anyOf=[{type: string}]
	Timeout Duration `json:"timeout,omitempty"`
	// How long a record may take until it can be seen, from 1s to 10m; the authority is told only then. Default: 2m.
	// +anyOf=[{type: string}]
	Propagation Duration `json:"propagation,omitempty"`
	// Does not look whether a record can be seen, and tells the authority as soon as the hook has ended. Default: false.
	NoLookup bool `json:"no_lookup,omitempty"`
	// Addresses with a port of the DNS servers that are asked whether the record can be seen; all must have it. Default:
	// the resolver of the system, which may remember for long that there was none.
	// +maxItems=8
	// +items={type: string, maxLength: 64}
	// +example=['192.0.2.53:53']
	Resolvers []string `json:"resolvers,omitempty"`
}

// The kinds of hooks.
const (
	HookExec    = "exec"
	HookWebhook = "webhook"
)

const (
	dnsToken         = "dns.token"
	mostResolvers    = 8
	hookTimeout      = time.Minute
	longestHook      = 5 * time.Minute
	propagationTime  = 2 * time.Minute
	longestPropagate = 10 * time.Minute
)

func (d *ACMEDNS) check(v *validator, at string) {
	v.oneOf(at+".hook", d.Hook, []string{HookExec, HookWebhook})
	u, err := url.Parse(d.URL)
	switch {
	case d.Hook == HookExec && d.URL+d.Token+d.CACertificate != "":
		v.add(at+".url", "is for the hook %s, as token and ca_certificate are: the program of exec is named by the setting acme-dns-exec only",
			HookWebhook)
	case d.Hook == HookWebhook && (d.URL == "" || len(d.URL) > maxURL || err != nil || u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || u.Fragment != ""):
		v.add(at+".url", "must be an absolute URL of https without a user")
	}
	if len(d.Token) > 1024 && !IsSealed(d.Token) || d.Token != "" && !isText(d.Token) {
		v.add(at+".token", "must have up to 1024 printable characters")
	}
	if d.CACertificate != "" {
		v.secretName(at+".ca_certificate", d.CACertificate)
	}
	if d.Timeout != 0 && (d.CallTime() < time.Second || d.CallTime() > longestHook) {
		v.add(at+".timeout", "must be from 1s to %s", longestHook)
	}
	if d.Propagation != 0 && (d.PropagationTime() < time.Second || d.PropagationTime() > longestPropagate) {
		v.add(at+".propagation", "must be from 1s to %s", longestPropagate)
	}
	if len(d.Resolvers) > mostResolvers {
		v.add(at+".resolvers", "has %d addresses; at most %d are allowed", len(d.Resolvers), mostResolvers)
	}
	for _, r := range d.Resolvers {
		if p, err := netip.ParseAddrPort(r); err != nil || p.Port() == 0 {
			v.add(at+".resolvers", "%q is not an address with a port, such as 192.0.2.53:53", r)
		}
	}
}

// CallTime is how long a call of the hook may take.
func (d *ACMEDNS) CallTime() time.Duration {
	if d.Timeout == 0 {
		return hookTimeout
	}
	return time.Duration(d.Timeout)
}

// PropagationTime is how long a record may take until it can be seen.
func (d *ACMEDNS) PropagationTime() time.Duration {
	if d.Propagation == 0 {
		return propagationTime
	}
	return time.Duration(d.Propagation)
}

// OpenToken returns the token of the webhook. name is that of the global config.
func (d *ACMEDNS) OpenToken(name string, open func(sealed, place string) (string, error)) (string, error) {
	if d.Token == "" {
		return "", nil
	}
	return open(d.Token, "globalconfig/"+name+"/"+dnsToken)
}
