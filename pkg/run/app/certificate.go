package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"time"
)

// certificateCheck is how often files are looked at, at most.
const certificateCheck = time.Second

// certificate is the API's certificate. It is read again when its files change.
type certificate struct {
	certFile, keyFile string
	log               *slog.Logger
	now               func() time.Time

	mu      sync.Mutex
	current *tls.Certificate
	checked time.Time
	// seen are the versions of the files at the last read, whether that succeeded or
	// not.
	seen [2]fileVersion
}

// fileVersion identifies one version of a file; the zero value is a file that cannot be
// read.
type fileVersion struct {
	modified time.Time
	size     int64
}

// loadCertificate reads the files for the first time.
func loadCertificate(certFile, keyFile string, log *slog.Logger) (*certificate, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log, now: time.Now}
	c.seen, c.checked = c.versions(), c.now()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		hint := "they must be a PEM certificate chain and its key"
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			hint = "the user that runs the program needs to read both"
		}
		return nil, fmt.Errorf("reading --api-tls-cert %s and --api-tls-key %s: %w: %s", certFile, keyFile, err, hint)
	}
	c.current = &pair
	return c, nil
}

// get is tls.Config.GetCertificate. If the files hold no valid certificate, the one in
// use stays.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Sub(c.checked) < certificateCheck {
		return c.current, nil
	}
	c.checked = now
	versions := c.versions()
	if versions == c.seen {
		return c.current, nil
	}
	// The versions are taken before the read: the next call sees a change in between.
	c.seen = versions
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		c.log.Warn("new certificate of the api not used, the old one stays", "cert", c.certFile, "key", c.keyFile, "err", err)
		return c.current, nil
	}
	c.current = &pair
	c.log.Info("new certificate of the api in use", "cert", c.certFile)
	return c.current, nil
}

func (c *certificate) versions() (list [2]fileVersion) {
	for i, name := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(name); err == nil {
			list[i] = fileVersion{info.ModTime(), info.Size()}
		}
	}
	return list
}
