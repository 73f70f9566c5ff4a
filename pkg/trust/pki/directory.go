package pki

import (
	"cmp"
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	caFile = "ca"
	// crlName is the list of revoked certificates.
	crlName = "ca.crl"
	// issuedDir has every certificate that was issued, as SERIAL.crt.
	issuedDir = "issued"
)

// Directory is an authority in a directory: ca.crt, ca.key, ca.crl, the pairs
// NAME.crt and NAME.key, and issued/SERIAL.crt for each certificate. It is locked
// until Close.
type Directory struct {
	path   string
	cert   *x509.Certificate
	crl    *x509.RevocationList
	unlock func()
}

// Entry is one certificate of a directory.
type Entry struct {
	// What is "authority", or what Identity.String returns.
	What string `json:"what"`
	// File is the name of the file that has it; empty if it was replaced.
	File   string `json:"file"`
	Serial string `json:"serial"`
	// SANs are its alternative names.
	SANs      []string  `json:"sans"`
	NotBefore time.Time `json:"not_before"`
	NotAfter  time.Time `json:"not_after"`
	// RevokedAt is when it was revoked; nil if it was not.
	RevokedAt *time.Time `json:"revoked_at"`
}

// Create makes an authority in a directory. It creates the directory with mode 0700 if
// that does not exist.
func Create(path string, now time.Time, lifetime time.Duration) (Entry, error) {
	if err := makeDirectory(path); err != nil {
		return Entry{}, err
	}
	d := &Directory{path: path}
	if err := d.lock(); err != nil {
		return Entry{}, err
	}
	defer d.Close()
	if err := d.settle(); err != nil {
		return Entry{}, err
	}
	for _, name := range []string{"ca.crt", "ca.key", crlName, issuedDir} {
		if _, err := os.Lstat(d.file(name)); !errors.Is(err, fs.ErrNotExist) {
			return Entry{}, fmt.Errorf("%s exists, and an authority is not replaced: "+
				"nothing that it has issued would be valid any more (make another one in another directory; "+
				"Envoys and control planes can trust both: cat old/ca.crt new/ca.crt > both.crt)", d.file(name))
		}
	}
	a, err := NewAuthority(now, lifetime)
	if err != nil {
		return Entry{}, err
	}
	crl, err := a.revocations(nil, nil, now)
	if err != nil {
		return Entry{}, err
	}
	err = d.place(caFile, Pair{a.Cert, a.key}, true, func() error {
		return errors.Join(d.write(crlName, revocationsPEM(crl)), os.Mkdir(d.file(issuedDir), 0o700))
	})
	return describe(a.Cert, "ca.crt", nil), err
}

// makeDirectory creates the directory, or checks that no other user can put files into
// an existing one.
func makeDirectory(path string) error {
	err := os.Mkdir(path, 0o700)
	switch {
	case err == nil:
		return os.Chmod(path, 0o700) //nolint:gosec // a directory, whatever the umask is
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("making the directory %s: %w (create the directory above it first: mkdir -p %s)", path, err,
			filepath.Dir(path))
	case !errors.Is(err, fs.ErrExist):
		return fmt.Errorf("making the directory %s: %w", path, err)
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.IsDir():
		return fmt.Errorf("%s is not a directory (name one, or a path that does not exist yet)", path)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("the directory %s has mode %04o, and others can put files into it (chmod 700 %s, "+
			"or name another directory)", path, info.Mode().Perm(), path)
	}
	return nil
}

// Open locks the directory of an authority, waiting for another program that has it
// locked, and finishes or undoes what an interrupted run has left.
func Open(path string) (*Directory, error) {
	d := &Directory{path: path}
	if err := d.lock(); err != nil {
		return nil, d.noAuthority(err)
	}
	err := d.load()
	if err == nil {
		err = d.settle()
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Close releases the lock.
func (d *Directory) Close() { d.unlock() }

func (d *Directory) noAuthority(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s has no authority (name the directory of one, or make it: gatehouse pki init %s)", d.path,
			d.path)
	}
	return err
}

func (d *Directory) lock() error {
	dir, err := os.Open(d.path)
	if err != nil {
		return err
	}
	for {
		err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX)
		if err == nil {
			d.unlock = func() { _ = dir.Close() }
			return nil
		}
		if !errors.Is(err, syscall.EINTR) {
			return errors.Join(fmt.Errorf("locking %s: %w", d.path, err), dir.Close())
		}
	}
}

// load reads the certificate of the authority and its revocation list.
func (d *Directory) load() error {
	cert, err := d.certificate("ca.crt")
	if errors.Is(err, fs.ErrNotExist) {
		// An interrupted run may have left it under its temporary name.
		if err = d.settle(); err == nil {
			cert, err = d.certificate("ca.crt")
		}
	}
	if err != nil {
		return d.noAuthority(err)
	}
	d.cert = cert
	text, err := os.ReadFile(d.file(crlName))
	if err != nil {
		return fmt.Errorf("reading the list of revoked certificates: %w (restore %s: without it, "+
			"what was revoked would be valid again)", err, d.file(crlName))
	}
	if d.crl, err = parseRevocations(text); err == nil {
		err = d.crl.CheckSignatureFrom(cert)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w (restore the one that belongs to %s)", d.file(crlName), err, d.file("ca.crt"))
	}
	return nil
}

// authority reads the key of the authority.
func (d *Directory) authority() (*Authority, error) {
	name := d.file("ca.key")
	info, err := os.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("reading the key of the authority: %w (restore it from where it is kept)", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, and whoever can read it can act as any proxy (chmod 600 %s; "+
			"if others may have read it, make a new authority)", name, info.Mode().Perm(), name)
	}
	key, err := d.key("ca.key")
	if err != nil {
		return nil, err
	}
	if !belongs(key, d.cert) {
		return nil, fmt.Errorf("%s is not the key of %s (restore the pair)", name, d.file("ca.crt"))
	}
	return &Authority{d.cert, key}, nil
}

// List returns the authority, then the certificates that have not expired or are in a
// file, by purpose and time of issue.
func (d *Directory) List(now time.Time) ([]Entry, error) {
	files, err := d.current()
	if err != nil {
		return nil, err
	}
	issued, err := d.issued()
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, cert := range issued {
		if file := files[serialText(cert.SerialNumber)]; file != "" || cert.NotAfter.After(now) {
			list = append(list, describe(cert, file, d.crl))
		}
	}
	slices.SortFunc(list, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.What, b.What), a.NotBefore.Compare(b.NotBefore), strings.Compare(a.Serial, b.Serial))
	})
	return slices.Insert(list, 0, describe(d.cert, "ca.crt", nil)), nil
}

func describe(cert *x509.Certificate, file string, crl *x509.RevocationList) Entry {
	e := Entry{
		What: "authority", File: file, Serial: serialText(cert.SerialNumber), SANs: []string{}, NotBefore: cert.NotBefore,
		NotAfter: cert.NotAfter,
	}
	if i, ok := identityOf(cert); ok {
		e.What, e.SANs = i.String(), append(e.SANs, i.names()...)
	}
	if crl != nil {
		e.RevokedAt = revokedAt(crl, cert.SerialNumber)
	}
	return e
}

// current returns the names of the files with a certificate of the authority, by its
// serial.
func (d *Directory) current() (map[string]string, error) {
	names, err := d.names(".", ".crt")
	if err != nil {
		return nil, err
	}
	files := map[string]string{}
	for _, name := range names {
		// Certificates of other authorities are ignored.
		if cert, err := d.certificate(name); err == nil && name != "ca.crt" && cert.CheckSignatureFrom(d.cert) == nil {
			files[serialText(cert.SerialNumber)] = name
		}
	}
	return files, nil
}

// issued returns every certificate that was ever issued.
func (d *Directory) issued() ([]*x509.Certificate, error) {
	names, err := d.names(issuedDir, ".crt")
	if err != nil {
		return nil, err
	}
	var list []*x509.Certificate
	for _, name := range names {
		cert, err := d.certificate(filepath.Join(issuedDir, name))
		if err != nil {
			return nil, err
		}
		list = append(list, cert)
	}
	return list, nil
}

// names returns the names of the files below the directory that have a suffix.
func (d *Directory) names(below, suffix string) ([]string, error) {
	entries, err := os.ReadDir(d.file(below))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.file(below), err)
	}
	var names []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func (d *Directory) file(name string) string { return filepath.Join(d.path, name) }

func (d *Directory) certificate(name string) (*x509.Certificate, error) {
	text, err := os.ReadFile(d.file(name))
	if err != nil {
		return nil, err
	}
	cert, err := parseCertificate(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.file(name), err)
	}
	return cert, nil
}

func (d *Directory) key(name string) (crypto.Signer, error) {
	text, err := os.ReadFile(d.file(name))
	if err != nil {
		return nil, err
	}
	key, err := parseKey(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", d.file(name), err)
	}
	return key, nil
}
