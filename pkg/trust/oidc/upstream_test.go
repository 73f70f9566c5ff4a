package oidc_test

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

var _ = Describe("A provider behind an upstream", func() {
	var p provider
	var via *oidc.Via
	const issuer = "https://idp.example"
	source := model.ProviderSource{Issuer: issuer, Discover: true, Upstream: "idp", UpstreamFor: issuer}
	// client knows no authority of its own, and allows no special address.
	client := func() *oidc.Client {
		return oidc.NewClient(oidc.Options{
			Rules: oidc.Rules{}, Resolver: resolver(),
			Open: func(sealed, _ string) (string, error) { return sealed, nil },
		})
	}
	BeforeEach(func() {
		p = startProvider(testkit.CertificateOptions{Names: []string{"idp.internal"}})
		p.SetDocument(p.Document(issuer, "jwks_uri", issuer+"/keys", "token_endpoint", "https://10.0.0.1/token"))
		via = &oidc.Via{
			Upstream: &model.Upstream{
				Name: "idp", IP: "127.0.0.1", Port: p.Port(), Protocol: "tls", ValidationCACertificate: "ca", ValidationSubjectName: "idp.internal",
			},
			Secrets: map[string]*model.Secret{"ca": {Name: "ca", Cert: p.Authority.PEM}},
		}
	})

	DescribeTable("is called there, like Envoy does", func(ctx SpecContext, protocol, version string) {
		via.Upstream.Protocol = protocol
		a, err := client().Ask(ctx, source, via)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.JWKS).To(Equal(setP256))
		for range 2 {
			r := <-p.Asked
			Expect(r.Host).To(Equal("idp.example"))
			Expect(r.Proto).To(Equal(version))
			Expect(r.TLS.ServerName).To(Equal("idp.internal"))
		}
	},
		Entry(nil, "tls", "HTTP/1.1"),
		Entry(nil, "h2", "HTTP/2.0"),
	)

	It("is called without TLS, if that is the upstream's protocol", func(ctx SpecContext) {
		for _, protocol := range []string{"http", "h2c"} {
			plain := httptest.NewUnstartedServer(p.Config.Handler)
			plain.Config.Protocols = new(http.Protocols)
			plain.Config.Protocols.SetHTTP1(protocol == "http")
			plain.Config.Protocols.SetUnencryptedHTTP2(protocol == "h2c")
			plain.Start()
			DeferCleanup(plain.Close)
			via.Upstream = &model.Upstream{Name: "idp", IP: "127.0.0.1", Port: plain.Listener.Addr().(*net.TCPAddr).Port, Protocol: protocol}
			_, err := client().Ask(ctx, source, via)
			Expect(err).NotTo(HaveOccurred(), protocol)
			Expect((<-p.Asked).Host).To(Equal("idp.example"))
		}
	})

	It("may have keys at another host, which are fetched from there", func(ctx SpecContext) {
		p.SetDocument(p.Document(issuer, "jwks_uri", "https://keys.example/keys"))
		_, err := client().Ask(ctx, source, via)
		Expect(err).To(MatchError("the key set https://keys.example/keys cannot be verified, because no certificate authorities were found on the system: start with --upstream-ca-file"))
		Expect(p.Asked).To(HaveLen(1))
		// The same host in another spelling.
		p.SetDocument(p.Document(issuer, "jwks_uri", "https://IDP.example:443/keys"))
		_, err = client().Ask(ctx, source, via)
		Expect(err).NotTo(HaveOccurred())
	})

	It("gets the client certificate of the upstream", func(ctx SpecContext) {
		p.TLS.ClientAuth, p.TLS.ClientCAs = tls.RequireAndVerifyClientCert, p.Authority.Pool()
		_, err := client().Ask(ctx, source, via)
		Expect(err).To(MatchError(ContainSubstring("requires a client certificate, and got none or one that it refuses: name a secret in Upstream_client_certificate")))
		pair, err := p.Authority.Issue(testkit.CertificateOptions{Client: true})
		Expect(err).NotTo(HaveOccurred())
		via.Upstream.ClientCertificate = "mine"
		_, err = client().Ask(ctx, source, via)
		Expect(err).To(MatchError(ContainSubstring(`the client certificate "mine" of upstream "idp" cannot be used: the secret has no pair`)))
		via.Secrets["mine"] = &model.Secret{Name: "mine", Cert: pair.Cert, PrivateKey: pair.Key}
		_, err = client().Ask(ctx, source, via)
		Expect(err).NotTo(HaveOccurred())
	})

	DescribeTable("is refused with a reason that names the upstream",
		func(ctx SpecContext, change func(), words string) {
			change()
			_, err := client().Ask(ctx, source, via)
			Expect(err).To(MatchError(ContainSubstring(words)))
			Expect(p.Asked).To(BeEmpty())
		},
		Entry("that does not exist", func() { via = nil }, `the upstream "idp" does not exist`),
		Entry("whose authority is a different one", func() {
			other, err := testkit.NewAuthority("other")
			Expect(err).NotTo(HaveOccurred())
			via.Secrets["ca"].Cert = other.PEM
		}, `is not signed by any of the authorities of secret "ca": put the authority into a secret, and name it in Upstream_validation_cacertificate of upstream "idp"`),
		Entry("whose authority does not exist", func() { delete(via.Secrets, "ca") }, `the secret "ca", which upstream "idp" names, has no certificate authority`),
		Entry("whose certificate has another name", func() { via.Upstream.ValidationSubjectName = "" },
			`is not for 127.0.0.1, but for idp.internal: name one that it is for in Upstream_validation_subjectname of upstream "idp", or renew it`),
		Entry("without authorities", func() { via.Upstream.ValidationCACertificate = "" }, `name a secret in Upstream_validation_cacertificate of upstream "idp"`),
		Entry("that is down", func() { p.Close() }, `127.0.0.1 (upstream "idp", port`),
	)

	It("is accepted with any certificate, if the upstream is configured so", func(ctx SpecContext) {
		via.Upstream.TLSInsecure, via.Upstream.ValidationCACertificate, via.Upstream.ValidationSubjectName = true, "", ""
		_, err := client().Ask(ctx, source, via)
		Expect(err).NotTo(HaveOccurred())
	})

	It("is refused if upstreams may not have its address, or if the gateway listens there", func(ctx SpecContext) {
		deny := oidc.NewClient(oidc.Options{Rules: oidc.Rules{Upstreams: egress.Lists{Deny: entries("127.0.0.0/8")}}})
		_, err := deny.Ask(ctx, source, via)
		Expect(err).To(MatchError(ContainSubstring("must not be called: its address 127.0.0.1 is in 127.0.0.0/8, which --upstream-deny names")))
		own := oidc.NewClient(oidc.Options{Rules: oidc.Rules{OwnAddresses: func() []egress.OwnAddress {
			return []egress.OwnAddress{{What: "Gatehouse's own API", Addr: p.Listener.Addr().(*net.TCPAddr).AddrPort()}}
		}}})
		_, err = own.Ask(ctx, source, via)
		Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("its address 127.0.0.1:%d is that of Gatehouse's own API", p.Port()))))
		Expect(p.Asked).To(BeEmpty())
	})
})
