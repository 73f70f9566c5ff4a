package pki

import (
	"crypto/x509"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// beside is the suffix of a file that is not in its place yet: .NAME.new.
const beside = ".new"

// place puts a pair into the files base.crt and base.key. If newKey is false, base.key
// already has the key, and one rename replaces the pair. Otherwise the key goes first:
// a program that reads at that moment finds a key that does not match the certificate,
// and reads again when the certificate changes. before is called when both are written,
// but not in their places yet.
func (d *Directory) place(base string, p Pair, newKey bool, before func() error) (err error) {
	// What a failure leaves is finished or undone as after an interruption.
	defer func() {
		if err != nil {
			err = errors.Join(err, d.settle())
		}
	}()
	if newKey {
		text, err := keyPEM(p.Key)
		if err != nil {
			return err
		}
		if err := d.prepare(base+".key", text); err != nil {
			return err
		}
	}
	if err := d.prepare(base+".crt", certificatePEM(p.Cert)); err != nil {
		return err
	}
	if err := before(); err != nil {
		return err
	}
	if newKey {
		if err := d.commit(base + ".key"); err != nil {
			return err
		}
	}
	return d.commit(base + ".crt")
}

// record stores a certificate before others can see it.
func (d *Directory) record(cert *x509.Certificate) error {
	return d.write(filepath.Join(issuedDir, serialText(cert.SerialNumber)+".crt"), certificatePEM(cert))
}

func (d *Directory) write(name string, text []byte) error {
	if err := d.prepare(name, text); err != nil {
		return err
	}
	return d.commit(name)
}

// temporary returns the name of a file before it is in its place.
func (d *Directory) temporary(name string) string {
	return d.file(filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+beside))
}

// prepare writes a file next to its place, with mode 0600, or the mode and the owner of
// the file that it will replace.
func (d *Directory) prepare(name string, text []byte) error {
	f, err := os.OpenFile(d.temporary(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o600), like(f, d.file(name)), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, remove(d.temporary(name)))
	}
	return nil
}

// like gives f the owner and the mode of the file at path, if there is one.
func like(f *os.File, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil
	}
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		if err := f.Chown(int(owner.Uid), int(owner.Gid)); err != nil {
			return err
		}
	}
	return f.Chmod(info.Mode().Perm())
}

// commit renames a prepared file to its place.
func (d *Directory) commit(name string) error {
	if err := os.Rename(d.temporary(name), d.file(name)); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(d.file(name)))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// settle finishes or undoes what an interrupted run has left. A key goes into its place
// before its certificate: if a temporary key is left, nothing was replaced.
func (d *Directory) settle() error {
	left, err := d.leftovers()
	if err != nil {
		return err
	}
	for _, name := range left {
		if base, ok := strings.CutSuffix(name, ".key"); ok {
			if err := d.undo(base); err != nil {
				return err
			}
		}
	}
	if left, err = d.leftovers(); err != nil {
		return err
	}
	for _, name := range left {
		base, ok := strings.CutSuffix(name, ".crt")
		if ok && filepath.Dir(name) == "." && d.finish(base) == nil {
			continue
		}
		if err := remove(d.temporary(name)); err != nil {
			return err
		}
	}
	return nil
}

// leftovers returns the files that are not in their places.
func (d *Directory) leftovers() ([]string, error) {
	var left []string
	for _, below := range []string{".", issuedDir} {
		names, err := d.names(below, beside)
		if below == issuedDir && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if name, hidden := strings.CutPrefix(strings.TrimSuffix(name, beside), "."); hidden {
				left = append(left, filepath.Join(below, name))
			}
		}
	}
	return left, nil
}

// undo removes a pair of which neither file is in its place. The key is removed last,
// so that another interruption is detected.
func (d *Directory) undo(base string) error {
	if text, err := os.ReadFile(d.temporary(base + ".crt")); err == nil {
		if cert, err := parseCertificate(text); err == nil {
			if err := remove(d.file(filepath.Join(issuedDir, serialText(cert.SerialNumber)+".crt"))); err != nil {
				return err
			}
		}
	}
	if base == caFile && d.cert == nil {
		// Without ca.crt the authority has issued and revoked nothing.
		if err := errors.Join(remove(d.file(crlName)), remove(d.file(issuedDir))); err != nil {
			return err
		}
	}
	return errors.Join(remove(d.temporary(base+".crt")), remove(d.temporary(base+".key")))
}

// finish puts the certificate of base into its place, if it matches the key that is
// there.
func (d *Directory) finish(base string) error {
	text, err := os.ReadFile(d.temporary(base + ".crt"))
	if err != nil {
		return err
	}
	cert, err := parseCertificate(text)
	if err != nil {
		return err
	}
	key, err := d.key(base + ".key")
	if err != nil {
		return err
	}
	if !belongs(key, cert) {
		return errors.New("the key belongs to another certificate")
	}
	switch {
	case base == caFile && d.cert == nil:
	case d.cert == nil:
		return errors.New("there is no authority")
	default:
		if err := errors.Join(cert.CheckSignatureFrom(d.cert), d.record(cert)); err != nil {
			return err
		}
	}
	return d.commit(base + ".crt")
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
