package upstreams

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

const (
	// handshakeTimeout bounds one handshake, handshakesTimeout all handshakes of one
	// call.
	handshakeTimeout  = 2 * time.Second
	handshakesTimeout = 3 * time.Second
	// handshakeKept is how long a finding is reported before the next handshake.
	handshakeKept = 5 * time.Second
	// maxHandshakes bounds the handshakes at a time, maxFindings the findings that are
	// kept.
	maxHandshakes = 8
	maxFindings   = 1000
	// alertWait is how long a backend has to refuse a client without a certificate,
	// which in TLS 1.3 it may do after the handshake.
	alertWait = 200 * time.Millisecond
)

// handshakes finds out why TLS with upstreams fails. It makes handshakes of its own and
// sends nothing else.
type handshakes struct {
	mu       sync.Mutex
	findings map[handshakeKey]finding
}

type handshakeKey struct {
	address                                 string
	sni, name, authorities, pair, protocols string
	altNames                                string
	version                                 string // of the authorities
}

type finding struct {
	health.Finding
	at time.Time
}

// find returns what is wrong with endpoints of a proxy, for as many as time allows.
func (h *handshakes) find(ctx context.Context, secrets []*snapshot.Resource, list []explain.Endpoint) []health.Finding {
	ctx, cancel := context.WithTimeout(ctx, handshakesTimeout)
	defer cancel()
	out := make([]health.Finding, len(list))
	turns := make(chan struct{}, maxHandshakes)
	var group sync.WaitGroup
	for i, e := range list {
		if e.TLS == nil {
			continue
		}
		group.Go(func() {
			select {
			case turns <- struct{}{}:
				defer func() { <-turns }()
				out[i] = h.findOne(ctx, secrets, e)
			case <-ctx.Done():
			}
		})
	}
	group.Wait()
	return out
}

func (h *handshakes) findOne(ctx context.Context, secrets []*snapshot.Resource, e explain.Endpoint) health.Finding {
	t := e.TLS
	key := handshakeKey{
		address: net.JoinHostPort(e.Address, strconv.FormatUint(uint64(e.Port), 10)), sni: t.SNI, name: t.Name, altNames: strings.Join(t.AltNames, ","),
		authorities: t.Authorities, pair: t.ClientCertificate, protocols: strings.Join(t.Protocols, ","),
	}
	i := slices.IndexFunc(secrets, func(r *snapshot.Resource) bool { return r.Name == t.Authorities })
	if i >= 0 {
		key.version = secrets[i].Version
	}
	h.mu.Lock()
	kept, ok := h.findings[key]
	h.mu.Unlock()
	if ok && time.Since(kept.at) < handshakeKept {
		return kept.Finding
	}
	want := health.Expected{
		HTTP2: slices.Contains(t.Protocols, "h2"), Name: t.Name, AltNames: t.AltNames,
		RootsName: authoritiesText(t.Authorities), ClientCertificate: secretOf(t.ClientCertificate),
	}
	if i >= 0 {
		if text, err := explain.ReadAuthorities(secrets[i]); err == nil {
			want.Verified, want.Roots = true, x509.NewCertPool()
			want.Roots.AppendCertsFromPEM([]byte(text))
		}
	}
	found := shakeHands(ctx, key.address, t).Find(want, time.Now())
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.findings) >= maxFindings || h.findings == nil {
		h.findings = map[handshakeKey]finding{}
	}
	h.findings[key] = finding{found, time.Now()}
	return found
}

// authoritiesText describes authorities for a sentence.
func authoritiesText(resource string) string {
	if name := secretOf(resource); name != "" {
		return "the authorities of secret " + strconv.Quote(name)
	}
	return "the authorities of the system"
}

// secretOf returns the secret that a resource is made from; empty if there is none.
func secretOf(resource string) string {
	prefix, name, _ := strings.Cut(resource, "/")
	if prefix == "system" {
		return ""
	}
	return name
}

// shakeHands makes a handshake and closes the connection.
func shakeHands(ctx context.Context, address string, t *explain.UpstreamTLS) (h health.Handshake) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return h
	}
	defer func() { _ = conn.Close() }()
	client := tls.Client(conn, &tls.Config{
		ServerName: t.SNI, NextProtos: t.Protocols, MinVersion: tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // nothing is sent; what is shown is judged
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			h.AsksForCertificate = true
			return &tls.Certificate{}, nil
		},
		VerifyConnection: func(s tls.ConnectionState) error {
			h.Chain, h.Protocol = s.PeerCertificates, s.NegotiatedProtocol
			return nil
		},
	})
	err = client.HandshakeContext(ctx)
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &record):
		h.NotTLS = true
	case err != nil:
		// Go has no type for the alerts that the other side sends.
		h.Refused = strings.HasSuffix(err.Error(), "tls: no application protocol")
	}
	if err != nil || !h.AsksForCertificate {
		return h
	}
	// A backend that also accepts clients without a certificate sends nothing.
	_ = conn.SetReadDeadline(time.Now().Add(alertWait))
	_, err = client.Read(make([]byte, 1))
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		h.AsksForCertificate = false
	}
	return h
}
