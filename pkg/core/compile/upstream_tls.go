package compile

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Credentials are what the TLS of upstreams needs.
type Credentials struct {
	// Secrets are the secrets that the upstreams name, by name.
	Secrets map[string]*model.Secret
	// Open opens the keys of client certificates; with nil, no client certificate can
	// be used.
	Open Opener
	// System are the authorities of the system in PEM; empty means that there are none.
	System string
}

// tlsSettings are the TLS settings that all upstreams of a cluster have in common.
// Secrets are compared by name, so that replacing one leaves the clusters unchanged.
// The zero value means no TLS.
type tlsSettings struct {
	on, insecure bool
	// authorities is the name of a secret; empty means the system's.
	authorities string
	// name is the name that the certificate must contain; empty means the endpoint's
	// own.
	name string
	// altNames are names of which the certificate must contain one, in place of name, sorted and separated by commas.
	altNames string
	// client is the name of a secret; empty means none.
	client string
}

func tlsSettingsOf(u *model.Upstream) tlsSettings {
	if !u.SpeaksTLS() {
		return tlsSettings{}
	}
	name := u.ValidationSubjectName
	if u.IsDiscovered() {
		name = cmp.Or(name, u.IP) // no certificate contains the addresses of endpoints that come and go
	}
	return tlsSettings{
		on: true, insecure: u.TLSInsecure, authorities: u.ValidationCACertificate,
		name: certificateName(name), altNames: altNames(u), client: u.ClientCertificate,
	}
}

func altNames(u *model.Upstream) string {
	names := u.AltNames()
	for i, name := range names {
		if !model.IsURI(name) {
			names[i] = certificateName(name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ",")
}

// certificateName normalizes a DNS name or an IP address to the form in certificates.
func certificateName(name string) string {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap().String()
	}
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// build returns the TLS of a cluster whose upstreams can be used (see unusableTLS).
func (s tlsSettings) build(with Credentials) *ir.UpstreamTLS {
	if !s.on {
		return nil
	}
	t := &ir.UpstreamTLS{Name: s.name}
	if s.altNames != "" {
		t.AltNames = strings.Split(s.altNames, ",")
	}
	switch ca := with.Secrets[s.authorities]; {
	case s.insecure:
	case s.authorities == "":
		t.Authorities = &ir.Authorities{PEM: with.System}
	case ca != nil:
		t.Authorities = &ir.Authorities{Secret: ca.Name, PEM: ca.Cert}
	}
	if pair := with.Secrets[s.client]; pair != nil {
		t.Client, _ = clientPair(pair, with.Open)
	}
	return t
}

// clientPair returns a client certificate with its key, for backends.
func clientPair(s *model.Secret, open Opener) (*ir.Pair, error) {
	if open == nil {
		return nil, fmt.Errorf("secret %q: nothing opens its key", s.Name)
	}
	key, err := s.OpenKey(open)
	if err != nil {
		return nil, err
	}
	return &ir.Pair{Secret: s.Name, Chain: s.Cert, Key: key}, nil
}

// unusableTLS returns which upstream cannot be used, and why: its certificate cannot be
// verified, so that any server could impersonate it, or the gateway lacks the client
// certificate that it requires. Empty means that all can be used.
func unusableTLS(upstreams []*model.Upstream, with Credentials) string {
	for _, u := range upstreams {
		if !u.SpeaksTLS() {
			continue
		}
		ca := with.Secrets[u.ValidationCACertificate]
		switch {
		case u.TLSInsecure:
		case u.ValidationCACertificate == "" && with.System == "":
			return "has upstream " + u.Name + ", whose certificate cannot be verified, because no certificate authorities were found on the system (--upstream-ca-file),"
		case u.ValidationCACertificate != "" && (ca == nil || ca.Cert == ""):
			return "has upstream " + u.Name + ", whose certificate authority has no certificate,"
		}
		if u.ClientCertificate == "" {
			continue
		}
		pair := with.Secrets[u.ClientCertificate]
		if pair == nil || pair.Cert == "" || pair.PrivateKey == "" {
			return "has upstream " + u.Name + ", whose client certificate does not exist,"
		}
		if _, err := clientPair(pair, with.Open); err != nil {
			return "has upstream " + u.Name + ", whose client certificate has a key that cannot be read,"
		}
	}
	return ""
}

// Unverified returns the conditions for upstreams of a route that accept every
// certificate.
func Unverified(t *model.RouteTree) []model.Condition {
	var list []model.Condition
	for _, u := range t.Upstreams {
		if u.IsUnverified() {
			list = append(list, model.Condition{Key: u.Key(), Code: model.UpstreamUnverified, Message: model.UnverifiedMessage})
		}
	}
	return list
}
