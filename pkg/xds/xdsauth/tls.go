package xdsauth

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
)

// checkEvery is how often files, and the expiry of certificates, are checked.
const checkEvery = time.Second

// TLSOptions of a TLS. Only ClientCA and ClientCRL may be empty.
type TLSOptions struct {
	// Cert and Key are the PEM files of the port's own certificate, ClientCA that of the authorities of clients.
	// ClientCRL has revocation lists, in PEM or DER.
	Cert, Key, ClientCA, ClientCRL string
	// ReadFile is os.ReadFile, Now time.Now.
	ReadFile func(name string) ([]byte, error)
	Now      func() time.Time
	// Refusals counts and logs failed handshakes.
	Refusals *server.Refusals
	Log      *slog.Logger
}

// TLS is what a port with TLS needs. Run watches its files. Use OpenTLS.
type TLS struct {
	opts  TLSOptions
	files []*follower

	mu   sync.Mutex
	now  *material
	open map[*openProof]struct{}
	// warned is when it last warned that something expires, by what that is.
	warned map[string]time.Time
}

// openProof is a certificate with an open stream.
type openProof struct {
	shown []*x509.Certificate
	// hangUp closes the connection soon.
	hangUp func()
	until  time.Time
	ended  chan struct{}
	why    string // written before ended is closed
}

// OpenTLS reads the files for the first time.
func OpenTLS(opts TLSOptions) (*TLS, error) {
	t := &TLS{opts: opts, open: map[*openProof]struct{}{}, now: &material{}, warned: map[string]time.Time{}}
	t.files = t.followers()
	for _, f := range t.files {
		next, err := f.read(*t.now, opts.ReadFile)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", f.setting, err)
		}
		t.now = next
	}
	t.warn()
	return t, nil
}

func (t *TLS) current() *material {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now
}

// Run watches the files and ends proofs that are no longer valid, until ctx ends.
func (t *TLS) Run(ctx context.Context) error {
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			t.Check()
		case <-ctx.Done():
			return nil
		}
	}
}

// Check checks the files and the proofs once.
func (t *TLS) Check() {
	changed := false
	for _, f := range t.files {
		changed = t.follow(f) || changed
	}
	for _, p := range t.due(changed) {
		if until, err := t.current().verify(p.shown, t.opts.Now()); err != nil {
			t.end(p, err)
		} else {
			t.extend(p, until)
		}
	}
	t.warn()
}

// due returns the proofs to check again: all, or those whose time has passed.
func (t *TLS) due(all bool) (list []*openProof) {
	now := t.opts.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for p := range t.open {
		if all || now.After(p.until) {
			list = append(list, p)
		}
	}
	return list
}

func (t *TLS) end(p *openProof, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, still := t.open[p]; still {
		delete(t.open, p)
		p.why = why.Error()
		close(p.ended)
		p.hangUp()
	}
}

func (t *TLS) extend(p *openProof, until time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	p.until = until
}

// prove returns what the certificates of a client prove, for as long as ctx. hangUp is called if the proof ends
// before.
func (t *TLS) prove(ctx context.Context, shown []*x509.Certificate, hangUp func()) (*proof, error) {
	n, err := namesOf(shown[0])
	if err != nil {
		return nil, refuseCertificate(shown[0], err)
	}
	p := &openProof{shown: shown, hangUp: hangUp, ended: make(chan struct{})}
	// The lock comes first, so that no change of the files is missed.
	t.mu.Lock()
	t.open[p] = struct{}{}
	m := t.now
	t.mu.Unlock()
	forget := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, p)
	}
	until, err := m.verify(shown, t.opts.Now())
	if err != nil {
		forget()
		return nil, err
	}
	t.extend(p, until)
	context.AfterFunc(ctx, forget)
	id := n.identity()
	id.Ended, id.Why = p.ended, func() string { return p.why }
	return &id, nil
}

// Open returns the number of open streams with certificates.
func (t *TLS) Open() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.open)
}

// warn warns, once a day, of what expires soon or has expired.
func (t *TLS) warn() {
	now, m := t.opts.Now(), t.current()
	leaf := m.pair.Leaf
	switch left := leaf.NotAfter.Sub(now); {
	case left < 0 && t.daily("expired", now):
		t.opts.Log.Warn("the certificate of the xds port has expired: envoys that connect refuse it", "cert", t.opts.Cert,
			"end", leaf.NotAfter)
	case left >= 0 && left < noticeOf(leaf) && t.daily("expires", now):
		t.opts.Log.Warn("the certificate of the xds port ends soon", "cert", t.opts.Cert, "end", leaf.NotAfter)
	}
	if list, stale := m.revoked.stale(now); stale && t.daily("stale", now) {
		t.opts.Log.Warn("a revocation list of the xds port is out of date and stays in use: write the next one",
			"crl", t.opts.ClientCRL, "issuer", list.Issuer.String(), "next_update", list.NextUpdate)
	}
}

// daily returns true at most once a day for each subject.
func (t *TLS) daily(about string, now time.Time) bool {
	if now.Sub(t.warned[about]) < 24*time.Hour {
		return false
	}
	t.warned[about] = now
	return true
}
