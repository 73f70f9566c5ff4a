package pki_test

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/pki"
)

func TestPKI(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "PKI")
}

const day = 24 * time.Hour

// lab is an authority in a directory that is open only during single calls.
type lab struct{ dir string }

func newLab(now time.Time) lab {
	GinkgoHelper()
	l := lab{filepath.Join(GinkgoT().TempDir(), "pki")}
	_, err := pki.Create(l.dir, now, 3650*day)
	Expect(err).NotTo(HaveOccurred())
	return l
}

func (l lab) do(work func(*pki.Directory) error) error {
	d, err := pki.Open(l.dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return work(d)
}

// try issues a certificate; change changes the request.
func (l lab) try(now time.Time, purpose, name string, hosts []string, change func(*pki.Request)) (e pki.Entry, err error) {
	GinkgoHelper()
	identity, err := pki.NewIdentity(purpose, name, hosts)
	Expect(err).NotTo(HaveOccurred())
	req := pki.Request{Identity: identity, Lifetime: 90 * day}
	if change != nil {
		change(&req)
	}
	err = l.do(func(d *pki.Directory) (err error) {
		e, err = d.Issue(req, now)
		return err
	})
	return e, err
}

func (l lab) issue(now time.Time, purpose, name string, hosts ...string) pki.Entry {
	GinkgoHelper()
	e, err := l.try(now, purpose, name, hosts, nil)
	Expect(err).NotTo(HaveOccurred())
	return e
}

func (l lab) list(now time.Time) (list []pki.Entry) {
	GinkgoHelper()
	Expect(l.do(func(d *pki.Directory) (err error) {
		list, err = d.List(now)
		return err
	})).To(Succeed())
	return list
}

func (l lab) revoke(now time.Time, what string) (list []pki.Entry) {
	GinkgoHelper()
	Expect(l.do(func(d *pki.Directory) (err error) {
		list, err = d.Revoke(what, now)
		return err
	})).To(Succeed())
	return list
}

func (l lab) file(name string) string { return filepath.Join(l.dir, name) }

func (l lab) read(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(l.file(name))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

func (l lab) write(name, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(l.file(name), []byte(text), 0o600)).To(Succeed())
}

func (l lab) cert(name string) *x509.Certificate {
	GinkgoHelper()
	block, rest := pem.Decode([]byte(l.read(name)))
	Expect(block).NotTo(BeNil())
	Expect(rest).To(BeEmpty())
	cert, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	return cert
}

// names lists the files below the directory.
func (l lab) names() (names []string) {
	GinkgoHelper()
	entries, err := os.ReadDir(l.dir)
	Expect(err).NotTo(HaveOccurred())
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// openssl returns what openssl prints.
func (l lab) openssl(args ...string) string {
	GinkgoHelper()
	cmd := exec.Command("openssl", args...)
	cmd.Dir = l.dir
	out, _ := cmd.CombinedOutput()
	return string(out)
}
