package pki

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Request describes a certificate to issue.
type Request struct {
	Identity Identity
	// File is the name of the two files, without .crt and .key. The default is the
	// name of the proxy, server or ratelimit.
	File string
	// Replace allows replacing files with a certificate for the same purpose and name,
	// including the key. A server without hosts keeps those that it has.
	Replace  bool
	Lifetime time.Duration
}

// Check returns what is wrong with a request, regardless of the directory.
func (r Request) Check() error {
	if r.Lifetime <= 0 {
		return errors.New("a certificate needs a lifetime: give --days a positive number")
	}
	if r.Identity.Purpose == Server && len(r.Identity.Hosts) == 0 && !r.Replace {
		return errors.New("a server needs --host: the names and addresses under which Envoys reach it")
	}
	return checkFile(r.base(), r.Identity, r.File != "")
}

func (r Request) base() string {
	if r.File != "" {
		return r.File
	}
	return r.Identity.file()
}

// Issue makes a certificate with a new key.
func (d *Directory) Issue(r Request, now time.Time) (Entry, error) {
	if err := r.Check(); err != nil {
		return Entry{}, err
	}
	base := r.base()
	if err := d.mayWrite(base, &r); err != nil {
		return Entry{}, err
	}
	return d.issue(base, r.Identity, nil, now, r.Lifetime)
}

// mayWrite checks the existing files of a request. If the request is for a server
// without hosts, it sets those of the certificate to replace.
func (d *Directory) mayWrite(base string, r *Request) error {
	name := d.file(base + ".crt")
	present, err := d.certificate(base + ".crt")
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(d.file(base + ".key")); err == nil && !r.Replace {
			return fmt.Errorf("%s exists, without %s (--force replaces it; --file NAME chooses other files)",
				d.file(base+".key"), name)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w (it is not replaced, because it is not a certificate of this authority; move it away, "+
			"or choose other files with --file NAME)", err)
	}
	identity, ok := identityOf(present)
	switch {
	case !ok || present.CheckSignatureFrom(d.cert) != nil:
		return fmt.Errorf("%s is not a certificate of this authority, and is not replaced (move it away, "+
			"or choose other files with --file NAME)", name)
	case identity.Purpose != r.Identity.Purpose || identity.Name != r.Identity.Name:
		return fmt.Errorf("%s is for %s, and is not replaced by one for %s (choose other files with --file NAME)", name,
			identity, r.Identity)
	case !r.Replace:
		return fmt.Errorf("%s exists and ends on %s (to extend it with its key: gatehouse pki renew %s %s.crt; "+
			"--force replaces it and its key)", name, present.NotAfter.UTC().Format(time.DateOnly), d.path, base)
	}
	if r.Identity.Purpose == Server && len(r.Identity.Hosts) == 0 {
		r.Identity.Hosts = identity.Hosts
	}
	return nil
}

// issue makes a certificate for key, or for a new one, and puts it into its files.
func (d *Directory) issue(
	base string, i Identity, key crypto.Signer, now time.Time, lifetime time.Duration,
) (Entry, error) {
	a, err := d.authority()
	if err != nil {
		return Entry{}, err
	}
	pair, err := a.Issue(i, key, now, lifetime)
	if err != nil {
		return Entry{}, err
	}
	if err := d.place(base, pair, key == nil, func() error { return d.record(pair.Cert) }); err != nil {
		return Entry{}, fmt.Errorf("writing %s: %w", d.file(base+".crt"), err)
	}
	return describe(pair.Cert, base+".crt", d.crl), nil
}

// Renew makes the certificate of a file, NAME.crt, again: for the same names and with
// the same key, so that only this file is replaced. A zero lifetime means that of the
// previous one.
func (d *Directory) Renew(file string, now time.Time, lifetime time.Duration) (Entry, error) {
	base, err := d.base(file)
	if err != nil {
		return Entry{}, err
	}
	cert, err := d.own(base)
	if err != nil {
		return Entry{}, err
	}
	identity, _ := identityOf(cert)
	if revokedAt(d.crl, cert.SerialNumber) != nil {
		return Entry{}, fmt.Errorf("%s was revoked, and its key is not used again (gatehouse pki issue %s %s --force makes "+
			"a new key)", d.file(base+".crt"), d.path, identity)
	}
	key, err := d.key(base + ".key")
	if err != nil {
		return Entry{}, fmt.Errorf("%w (gatehouse pki issue %s %s --force makes a new key)", err, d.path, identity)
	}
	if !belongs(key, cert) {
		return Entry{}, fmt.Errorf("%s is not the key of %s (gatehouse pki issue %s %s --force makes a new pair)",
			d.file(base+".key"), d.file(base+".crt"), d.path, identity)
	}
	if lifetime == 0 {
		lifetime = cert.NotAfter.Sub(cert.NotBefore) - skew
	}
	return d.issue(base, identity, key, now, lifetime)
}

// Due returns the certificates in files that expire before a time and are not revoked,
// and the first of the others to expire.
func (d *Directory) Due(now, before time.Time) (due []Entry, next *Entry, err error) {
	list, err := d.List(now)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range list[1:] {
		switch {
		case e.File == "" || e.RevokedAt != nil:
		case e.NotAfter.Before(before):
			due = append(due, e)
		case next == nil || e.NotAfter.Before(next.NotAfter):
			next = &e
		}
	}
	return due, next, nil
}

// Revoke revokes the certificate of a file, NAME.crt, with all that were ever issued
// for the same purpose and names; or that of a serial. Every certificate with the same
// key as one of these is revoked, too. The returned list leaves out those that have
// expired or were already revoked.
func (d *Directory) Revoke(what string, now time.Time) ([]Entry, error) {
	all, err := d.issued()
	if err != nil {
		return nil, err
	}
	file := strings.HasSuffix(what, ".crt")
	var cert *x509.Certificate
	if file {
		base, err := d.base(what)
		if err != nil {
			return nil, err
		}
		if cert, err = d.own(base); err != nil {
			return nil, err
		}
	} else {
		serial, ok := parseSerial(what)
		if !ok {
			return nil, fmt.Errorf("%q is neither NAME.crt nor a serial (see gatehouse pki list %s)", what, d.path)
		}
		at := slices.IndexFunc(all, func(c *x509.Certificate) bool { return c.SerialNumber.Cmp(serial) == 0 })
		if at < 0 {
			return nil, fmt.Errorf("no certificate of %s has the serial %s (see gatehouse pki list %s)", d.path, what, d.path)
		}
		cert = all[at]
	}
	var more []*x509.Certificate
	for _, c := range siblings(cert, all, file) {
		if c.NotAfter.After(now) && revokedAt(d.crl, c.SerialNumber) == nil {
			more = append(more, c)
		}
	}
	if len(more) == 0 {
		return nil, nil
	}
	return d.revoke(more, now)
}

func (d *Directory) revoke(more []*x509.Certificate, now time.Time) ([]Entry, error) {
	a, err := d.authority()
	if err != nil {
		return nil, err
	}
	crl, err := a.revocations(d.crl, more, now)
	if err != nil {
		return nil, err
	}
	files, err := d.current()
	if err != nil {
		return nil, err
	}
	if err := d.write(crlName, revocationsPEM(crl)); err != nil {
		return nil, fmt.Errorf("writing the list of revoked certificates: %w", err)
	}
	d.crl = crl
	var list []Entry
	for _, c := range more {
		list = append(list, describe(c, files[serialText(c.SerialNumber)], crl))
	}
	return list, nil
}

// base returns the name of a file of the directory without .crt. file may include the
// path of the directory.
func (d *Directory) base(file string) (string, error) {
	base, ok := strings.CutSuffix(filepath.Base(file), ".crt")
	switch dir := filepath.Dir(file); {
	case !ok:
		return "", fmt.Errorf("%q is not the name of a certificate, NAME.crt (see gatehouse pki list %s)", file, d.path)
	case dir != "." && dir != filepath.Clean(d.path):
		return "", fmt.Errorf("%q is not in %s (see gatehouse pki list %s)", file, d.path, d.path)
	case base == caFile:
		return "", errors.New("the authority itself is neither renewed nor revoked (make a new one in another directory " +
			"with gatehouse pki init, and trust both until everybody has a certificate of the new one)")
	}
	return base, nil
}

// own reads a certificate of the authority.
func (d *Directory) own(base string) (*x509.Certificate, error) {
	cert, err := d.certificate(base + ".crt")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s does not exist (see gatehouse pki list %s)", d.file(base+".crt"), d.path)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := identityOf(cert); !ok || cert.CheckSignatureFrom(d.cert) != nil {
		return nil, fmt.Errorf("%s is not a certificate of this authority", d.file(base+".crt"))
	}
	return cert, nil
}
