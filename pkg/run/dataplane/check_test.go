package dataplane_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/dataplane"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// files are the certificates of one Envoy.
type files struct {
	dir       string
	authority *testkit.Authority
}

func newFiles() *files {
	GinkgoHelper()
	ca, err := testkit.NewAuthority("ca")
	Expect(err).NotTo(HaveOccurred())
	f := &files{GinkgoT().TempDir(), ca}
	f.write("ca.crt", ca.PEM)
	return f
}

func (f *files) write(name, text string) {
	GinkgoHelper()
	Expect(os.WriteFile(filepath.Join(f.dir, name), []byte(text), 0o600)).To(Succeed())
}

func (f *files) issue(o testkit.CertificateOptions) {
	GinkgoHelper()
	pair, err := f.authority.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	f.write("gw.crt", pair.Cert)
	f.write("gw.key", pair.Key)
}

func (f *files) config() config.Config {
	join := func(name string) string { return filepath.Join(f.dir, name) }
	return config.Config{Proxy: "gw", XDSAddr: "127.0.0.1:18000", Connect: config.Connect{
		TLSCA: join("ca.crt"), TLSCert: join("gw.crt"), TLSKey: join("gw.key"),
	}}
}

var _ = Describe("A check of the certificates", func() {
	now := time.Now()
	good := testkit.CertificateOptions{Names: []string{"gw"}, Client: true}

	It("accepts certificates that belong together and name the proxy", func() {
		f := newFiles()
		f.issue(good)
		Expect(dataplane.Check(f.config(), now)).To(Succeed())
		f.issue(testkit.CertificateOptions{URIs: []string{"spiffe://other.example/proxy/gw"}, Client: true})
		Expect(dataplane.Check(f.config(), now)).To(Succeed())
		Expect(dataplane.Check(config.Config{Proxy: "gw"}, now)).To(Succeed(), "plain text")
	})

	It("accepts a certificate without a proxy name if there is a token, and none that names another proxy", func() {
		f := newFiles()
		withToken := f.config()
		withToken.Connect.TokenFile = "token"
		f.issue(testkit.CertificateOptions{URIs: []string{"spiffe://mesh.example/ns/default"}, Client: true})
		Expect(dataplane.Check(withToken, now)).To(Succeed())
		Expect(dataplane.Check(f.config(), now)).NotTo(Succeed())
		f.issue(testkit.CertificateOptions{URIs: []string{"spiffe://mesh.example/proxy/edge"}, Client: true})
		Expect(dataplane.Check(withToken, now)).NotTo(Succeed())
	})

	DescribeTable("reports what a control plane would refuse, and what to do",
		func(change func(*files), want string) {
			f := newFiles()
			f.issue(good)
			change(f)
			err := dataplane.Check(f.config(), now)
			Expect(err).To(MatchError(strings.ReplaceAll(want, "DIR/", f.dir+"/")))
		},
		Entry("another proxy's", func(f *files) { f.issue(testkit.CertificateOptions{Names: []string{"edge"}, Client: true}) },
			`--xds-tls-cert: DIR/gw.crt is for edge and not for proxy "gw": issue one with "gatehouse pki issue DIR proxy gw"`),
		Entry("one with several similar names", func(f *files) {
			f.issue(testkit.CertificateOptions{URIs: []string{"spiffe://a/proxy/gw/x", "spiffe://a/ratelimit", "http://a/proxy/gw", "spiffe://a:1/proxy/gw", "spiffe://u@a/proxy/gw", "spiffe://a/proxy/g%77", "spiffe://a/proxy/gw?x"}, Names: []string{"*.gw"}, Client: true})
		}, `--xds-tls-cert: DIR/gw.crt is for *.gw and not for proxy "gw": issue one with "gatehouse pki issue DIR proxy gw"`),
		Entry("a common name only", func(f *files) { f.issue(testkit.CertificateOptions{Subject: "gw", Client: true}) },
			`--xds-tls-cert: DIR/gw.crt names no proxy (subject alternative name URI:spiffe://gatehouse/proxy/gw or DNS:gw): issue one with "gatehouse pki issue DIR proxy gw"`),
		Entry("a server certificate", func(f *files) { f.issue(testkit.CertificateOptions{Names: []string{"gw"}}) },
			`--xds-tls-cert: DIR/gw.crt is not for clients (extended key usage clientAuth): issue one with "gatehouse pki issue DIR proxy gw"`),
		Entry("an expired one", func(f *files) {
			f.issue(testkit.CertificateOptions{Names: []string{"gw"}, Client: true, NotAfter: time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC), NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)})
		}, `--xds-tls-cert: DIR/gw.crt ended at 2020-01-02T03:04:05Z: issue one with "gatehouse pki issue DIR proxy gw"`),
		Entry("one that is not valid yet", func(f *files) {
			f.issue(testkit.CertificateOptions{Names: []string{"gw"}, Client: true, NotAfter: time.Date(2220, 1, 2, 3, 4, 5, 0, time.UTC), NotBefore: time.Date(2219, 1, 1, 0, 0, 0, 0, time.UTC)})
		}, `--xds-tls-cert: DIR/gw.crt begins at 2219-01-01T00:00:00Z; check the clock of this machine: issue one with "gatehouse pki issue DIR proxy gw"`),
		Entry("the key of another certificate", func(f *files) {
			pair, err := f.authority.Issue(good)
			Expect(err).NotTo(HaveOccurred())
			f.write("gw.key", pair.Key)
		}, `--xds-tls-key: DIR/gw.key is not the key, in PEM, of the certificate in DIR/gw.crt: give the two that were made together`),
		Entry("a key instead of the certificate", func(f *files) { f.write("gw.crt", "-----BEGIN PRIVATE KEY-----\n") },
			`--xds-tls-cert: DIR/gw.crt does not begin with a certificate in PEM: give the one of this Envoy, before those of its authorities`),
		Entry("no authority", func(f *files) { f.write("ca.crt", "?") },
			`--xds-tls-ca: DIR/ca.crt has no certificate in PEM: give the authority of the control plane's certificate`),
	)

	DescribeTable("names a file that is missing",
		func(name, want string) {
			f := newFiles()
			f.issue(good)
			Expect(os.Remove(filepath.Join(f.dir, name))).To(Succeed())
			err := dataplane.Check(f.config(), now)
			Expect(err).To(MatchError(strings.ReplaceAll(want, "DIR/", f.dir+"/")))
			Expect(err).To(MatchError(fs.ErrNotExist))
		},
		Entry(nil, "ca.crt", `--xds-tls-ca: there is no file DIR/ca.crt: it is the authority of the control plane ("gatehouse pki init DIR" makes its ca.crt)`),
		Entry(nil, "gw.crt", `--xds-tls-cert: there is no file DIR/gw.crt: issue one with "gatehouse pki issue DIR proxy gw"`),
		Entry(nil, "gw.key", `--xds-tls-key: there is no file DIR/gw.key: it was made with --xds-tls-cert`),
	)
})

var _ = Describe("The token", func() {
	params := func(text string) (string, error) {
		GinkgoHelper()
		f := newFiles()
		f.write("token", text)
		p, err := dataplane.Params(config.Config{Proxy: "gw", XDSAddr: "127.0.0.1:1", Connect: config.Connect{TokenFile: filepath.Join(f.dir, "token")}})
		if err != nil {
			Expect(err.Error()).NotTo(ContainSubstring("secret"))
			Expect(err.Error()).To(HavePrefix("--xds-token-file: " + f.dir + "/token "))
		}
		return p.Token, err
	}

	It("is the only line of the file", func() {
		Expect(params("ghx_secret\n")).To(Equal("ghx_secret"))
		Expect(params("ghx_secret")).To(Equal("ghx_secret"))
		Expect(params("ghx_secret\r\n")).To(Equal("ghx_secret"))
	})

	DescribeTable("is refused without quoting any part of it",
		func(text, want string) {
			_, err := params(text)
			Expect(err).To(MatchError(HaveSuffix(want)))
		},
		Entry("empty", " \n", "is empty: write the token that POST /proxy/gw/token answers to it"),
		Entry("the whole answer", `{"token":"ghx_secret"}`, `is not a token in one line: write only the value of "token" to it`),
		Entry("two lines", "ghx_secret\nghx_secret\n", `is not a token in one line: write only the value of "token" to it`),
		Entry("a header", "Bearer ghx_secret\n", `is not a token in one line: write only the value of "token" to it`),
		Entry("a certificate", "-----BEGIN secret-----"+strings.Repeat("A", 4096), `is not a token in one line: write only the value of "token" to it`),
	)

	It("must exist", func() {
		_, err := dataplane.Params(config.Config{Proxy: "gw", Connect: config.Connect{TokenFile: "/not/there"}})
		Expect(err).To(MatchError("--xds-token-file: there is no file /not/there: POST /proxy/gw/token answers a token"))
	})
})
