package tlsdir

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// maxFile is the largest size of a file, in bytes. The API has the same limit.
const maxFile = 1 << 20

// pair is a pair that was read.
type pair struct {
	files
	certPEM, keyPEM []byte
}

// readPair reads both halves. Its error says which file is wrong, why, and what to do.
func readPair(f files) (pair, error) {
	switch {
	case f.key == "":
		return pair{}, fmt.Errorf("%s has no key beside it (%s.key, privkey.pem or tls.key)", f.cert, f.name)
	case f.cert == "":
		return pair{}, fmt.Errorf("%s has no certificate beside it (%s.crt, %s.pem, fullchain.pem or tls.crt)", f.key, f.name,
			f.name)
	}
	cert, err := readFile(f.cert)
	if err != nil {
		return pair{}, err
	}
	key, err := readFile(f.key)
	return pair{f, cert, key}, err
}

// readFile reads a regular file. It does not wait for the writer of a named pipe.
func readFile(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		hint := ""
		if errors.Is(err, fs.ErrPermission) {
			hint = "; the user that runs gatehouse has to be able to read it"
		}
		return nil, fmt.Errorf("%s cannot be read: %w%s", path, pathCause(err), hint)
	}
	defer func() { _ = f.Close() }() // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, pathCause(err))
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	content, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s cannot be read: %w", path, pathCause(err))
	case len(content) > maxFile:
		return nil, fmt.Errorf("%s has more than 1 MiB: it is not a certificate or a key", path)
	}
	return content, nil
}

// pathCause returns err without the path that it may begin with.
func pathCause(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// version identifies the contents of a pair.
type version [sha256.Size]byte

func (p pair) version() version {
	first := sha256.Sum256(p.certPEM)
	return sha256.Sum256(append(first[:], p.keyPEM...))
}

// chain is a certificate chain, the leaf first.
type chain []*x509.Certificate

// check says what is wrong with a pair. It leaves out what only the store knows.
func (p pair) check() (chain, error) {
	for _, half := range []struct {
		path    string
		content []byte
	}{{p.cert, p.certPEM}, {p.key, p.keyPEM}} {
		if why := incomplete(half.content); why != "" {
			return nil, fmt.Errorf("%s %s; it is read again when it changes", half.path, why)
		}
	}
	for _, bad := range (&model.Secret{Name: p.name, Cert: string(p.certPEM), PrivateKey: string(p.keyPEM)}).Validate() {
		return nil, fmt.Errorf("%s %s", map[bool]string{true: p.key, false: p.cert}[bad.Field == "Secret_key"], bad.Message)
	}
	if _, err := tls.X509KeyPair(p.certPEM, p.keyPEM); err != nil {
		return nil, fmt.Errorf("the key in %s does not belong to the certificate in %s: one of the two has been replaced, "+
			"and the other half is waited for", p.key, p.cert)
	}
	return parseChain(p.certPEM)
}

// incomplete reports PEM that ends too early.
func incomplete(content []byte) string {
	if len(bytes.TrimSpace(content)) == 0 {
		return "is empty"
	}
	blocks, rest := 0, content
	for {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		blocks, rest = blocks+1, after
	}
	if blocks != bytes.Count(content, []byte("-----BEGIN ")) || bytes.Contains(rest, []byte("-----")) {
		return "is cut off, or damaged"
	}
	return ""
}

func parseChain(content []byte) (chain, error) {
	var c chain
	for rest := content; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("reading a certificate: %w", err)
		}
		c = append(c, cert)
	}
	if len(c) == 0 {
		return nil, errors.New("there is no certificate")
	}
	return c, nil
}

// equal reports whether two chains have the same certificates in the same order.
func (c chain) equal(other chain) bool {
	if len(c) != len(other) {
		return false
	}
	for i := range c {
		if !bytes.Equal(c[i].Raw, other[i].Raw) {
			return false
		}
	}
	return true
}

// issued returns when the leaf became valid.
func (c chain) issued() time.Time { return c[0].NotBefore }

func (c chain) fingerprint() version { return sha256.Sum256(c[0].Raw) }
