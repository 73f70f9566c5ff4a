package model

import (
	"fmt"
	"strings"
)

// This file has the rules for services of a mode other than http: those of layer 4, of connections and datagrams.

// Port returns the port of a service on the proxy and its transport, tcp or udp, and reports whether the service has a
// listener of its own there: a service of mode http, and one of mode tls on the HTTPS port, has none.
func (p *Proxy) Port(s *Service) (port int, transport string, own bool) {
	switch {
	case !s.IsL4(), s.Mode == ModeTLS && (s.Port == 0 || s.Port == p.HTTPSPort):
		return p.HTTPSPort, ModeTCP, false
	case s.Mode == ModeUDP:
		return s.Port, ModeUDP, true
	}
	return s.Port, ModeTCP, true
}

// PortRefusal returns why the proxy cannot have the service, in words that follow the name of the service; empty means
// that it can.
func (p *Proxy) PortRefusal(s *Service) string {
	port, transport, own := p.Port(s)
	switch {
	case !own:
		return ""
	case transport == ModeTCP && port == p.HTTPPort:
		return fmt.Sprintf("wants port %d, which is the Http_port of proxy %s", port, p.Name)
	case transport == ModeTCP && port == p.HTTPSPort:
		return fmt.Sprintf("wants port %d, which is the Https_port of proxy %s; mode tls can share it", port, p.Name)
	case transport == ModeTCP && p.hasMorePort(port):
		return fmt.Sprintf("wants port %d, at which proxy %s takes requests", port, p.Name)
	case transport == ModeUDP && port == p.HTTPSPort:
		return fmt.Sprintf("wants UDP port %d, which is the Https_port of proxy %s, and kept for HTTP/3", port, p.Name)
	}
	return ""
}

// Clash returns why the proxy cannot have both services, one of which has a mode other than http, in words that follow
// the name of the first; empty means that it can.
func (p *Proxy) Clash(a, b *Service) string {
	port, transport, own := p.Port(a)
	otherPort, otherTransport, otherOwn := p.Port(b)
	named := func(s *Service) bool { return !s.IsL4() || s.Mode == ModeTLS }
	switch {
	case own != otherOwn, port != otherPort, transport != otherTransport:
		return ""
	case !named(a) || !named(b):
		return fmt.Sprintf("wants %s port %d, which service %s has", strings.ToUpper(transport), port, b.Name)
	case strings.EqualFold(a.FQDN, b.FQDN):
		return fmt.Sprintf("wants the host %s, which service %s of mode %s has", a.FQDN, b.Name, b.Mode)
	}
	return ""
}

// MaxL4Ports bounds the ports of a proxy besides those for HTTP: each is a listener, with a socket for each worker
// thread of Envoy.
const MaxL4Ports = 100

// L4Refusal returns why a filter does not work for connections, in words that follow its name; empty means that it
// does. Most are about requests. Envoy looks up countries when a connection already has its filters, and a backend that
// speaks first would have told the client something.
func (f *Filter) L4Refusal() string {
	if f.TypeName() != FilterIPAccess {
		return fmt.Sprintf("is of type %q, which is about requests", f.Type)
	}
	if access, ok := f.Parse().Spec.(*IPAccessFilter); ok && access.Locates() {
		return "has countries or networks, which are looked up for requests only: use allow and deny"
	}
	return ""
}

// SecretRefusal returns why a service cannot have a certificate, in words that follow its name; empty means that it can.
func (s *Service) SecretRefusal() string {
	if s.Mode == ModeUDP {
		return "is of mode udp, which has no TLS"
	}
	return ""
}

// UpstreamRefusal returns why a service cannot send anything to an upstream, in words that follow the name of the
// upstream; empty means that it can.
func (s *Service) UpstreamRefusal(u *Upstream) string {
	if u.SpeaksTLS() && (s.Mode == ModeTLS || s.Mode == ModeUDP) {
		return fmt.Sprintf("has Upstream_protocol %s, and a service of mode %s passes on what it gets: set it to http", u.Protocol, s.Mode)
	}
	return ""
}

// ValidateL4 returns what a route of a service of a mode other than http cannot have.
func (r *Route) ValidateL4() []FieldError {
	var v validator
	if r.Prefix != "/" {
		v.add("Route_prefix", `must be "/": connections have no path`)
	}
	rest := r.Config
	if t := rest.Timeouts; t != nil {
		if t.Request != 0 || t.GRPC != 0 {
			v.add("Route_config.timeouts", "may have idle and stream only: connections have no requests")
		}
		rest.Timeouts = nil
	}
	if rest.hasMore() {
		v.add("Route_config", "may have timeouts.idle and timeouts.stream only: connections have no requests")
	}
	return v.errs
}

// hasMore reports whether a configuration has anything but timeouts.
func (c RouteConfig) hasMore() bool {
	return c.Match != "" || len(c.Methods)+len(c.Headers)+len(c.Query)+len(c.Ports) > 0 || c.Rewrite != nil || c.Retries != nil ||
		c.Websocket != nil || c.Public || c.Priority != 0 || c.Exempt != nil || c.Unreadable != ""
}
