package explain_test

import (
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

// configured returns what the Envoys of a proxy have for a configuration.
func configured(objects ...model.Object) explain.State {
	GinkgoHelper()
	b := must(pipeline.NewBuild(compile.Settings{Open: func(sealed, _ string) (string, error) { return sealed, nil }}))
	proxy := model.NewProxy()
	proxy.Name = "gw"
	change := model.Change{Revision: 1, Full: true}
	for i, o := range append([]model.Object{proxy}, objects...) {
		Expect(o.Validate()).To(BeEmpty(), "%s", o.Key().Path())
		*o.Meta().ID = int64(i + 1)
		change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	s := b.Apply(change).Snapshots["gw"]
	return explain.State{
		Listeners: s.Listeners, Clusters: s.Clusters, Secrets: s.Secrets, Certificates: s.Candidates, Routes: s.RouteConfiguration(), Hosts: s.Hosts,
	}
}

// world makes the objects of a configuration.
type world struct {
	authority *testkit.Authority
	objects   []model.Object
}

func newWorld() *world {
	GinkgoHelper()
	return &world{authority: must(testkit.NewAuthority("test"))}
}

func (w *world) state() explain.State {
	GinkgoHelper()
	return configured(w.objects...)
}

// serve adds a service with a route and secrets.
func (w *world) serve(name, fqdn string, change func(*model.Service), secrets ...string) {
	s := model.NewService()
	s.Name, s.FQDN = name, fqdn
	if change != nil {
		change(s)
	}
	w.objects = append(w.objects, s, &model.ProxyService{Proxy: "gw", Service: name}, &model.Route{Service: name, Name: "root", Prefix: "/"})
	for _, secret := range secrets {
		w.objects = append(w.objects, &model.ServiceSecret{Service: name, Secret: secret})
	}
}

// issue adds a secret with a certificate.
func (w *world) issue(secret string, o testkit.CertificateOptions) {
	GinkgoHelper()
	pair := must(w.authority.Issue(o))
	w.objects = append(w.objects, &model.Secret{Name: secret, Cert: pair.Cert, PrivateKey: pair.Key})
}

// stepsOf returns the steps with a code.
func stepsOf(a explain.Answer, code string) (list []string) {
	for _, s := range a.Steps {
		if s.Code == code {
			list = append(list, s.Message)
		}
	}
	return list
}

var _ = Describe("An https URL", func() {
	names := func(names ...string) testkit.CertificateOptions { return testkit.CertificateOptions{Names: names} }

	It("is explained with HTTP/3, if the proxy has it", func() {
		w := newWorld()
		w.issue("shop", names("shop.test"))
		w.serve("shop", "shop.test", nil, "shop")
		w.issue("bank", names("bank.test"))
		w.serve("bank", "bank.test", func(s *model.Service) { s.ClientCACertificate = "clients" }, "bank")
		w.objects = append(w.objects, &model.Secret{Name: "clients", Cert: w.authority.PEM})
		Expect(stepsOf(ask(w.state(), "https://shop.test/"), "http3")).To(BeEmpty())
		proxy := model.NewProxy()
		proxy.Name, proxy.HTTP3 = "gw", true
		w.objects = append(w.objects, proxy)
		have := w.state()
		Expect(ask(have, "https://shop.test/").Envoy.Listener).To(Equal("https-0.0.0.0:8443"))
		Expect(ask(have, "http://shop.test/").Envoy.Listener).To(Equal("http-0.0.0.0:8080"))
		Expect(stepsOf(ask(have, "https://shop.test/"), "http3")).To(Equal([]string{
			"listener http3-0.0.0.0:8443 accepts the connection over HTTP/3 too, with the same answer; alt-svc tells clients",
		}))
		Expect(ask(have, "https://shop.test/").Filters).To(ContainElement(HaveField("Message",
			`tells clients about HTTP/3, with alt-svc: h3=":8443"; ma=3600 in the answer (field Http3 of the proxy)`)))
		Expect(stepsOf(ask(have, "https://bank.test/"), "http3")).To(Equal([]string{
			`listener http3-0.0.0.0:8443 closes connections for "bank.test": HTTP/3 cannot verify clients`,
		}))
		have.Refused = []explain.RefusedListener{{Name: "http3-0.0.0.0:8443", Text: "Address already in use"}}
		Expect(stepsOf(ask(have, "https://shop.test/"), "http3")).To(Equal([]string{
			"Envoy refused listener http3-0.0.0.0:8443, so clients stay with HTTP/2: Address already in use",
		}))
	})

	It("is explained with the certificate that answers, and how the connection is made", func() {
		w := newWorld()
		w.issue("shop-2026", testkit.CertificateOptions{Names: []string{"shop.test", "www.shop.test"}, NotAfter: time.Date(2099, 1, 2, 3, 4, 5, 0, time.UTC)})
		w.serve("shop", "shop.test", nil, "shop-2026")
		a := ask(w.state(), "https://SHOP.test/")
		Expect(a.Service).To(Equal("shop"))
		Expect(a.Envoy.Listener).To(Equal("https-0.0.0.0:8443"))
		Expect(a.Envoy.FilterChain).To(Equal("any"))
		Expect(a.TLS.Certificates).To(HaveLen(1))
		Expect(a.TLS.Certificates[0].Fingerprint).To(MatchRegexp("^[0-9a-f]{64}$"))
		a.TLS.Certificates[0].Fingerprint = ""
		c := a.TLS.Certificates[0]
		Expect([]any{a.TLS.ServerName, a.TLS.MinVersion, a.TLS.MaxVersion, a.TLS.ALPN, a.TLS.ClientAuthorities, a.TLS.Others}).To(Equal(
			[]any{"SHOP.test", "1.2", "1.3", []string{"h2", "http/1.1"}, "", []explain.Certificate(nil)}))
		Expect([]any{c.Secret, c.Service, c.Kind, c.Names, c.KeyType, c.NotAfter.Format(time.RFC3339)}).To(Equal(
			[]any{"shop-2026", "shop", "exact", []string{"shop.test", "www.shop.test"}, "ECDSA", "2099-01-02T03:04:05Z"}))
		Expect(a.Steps[:3]).To(Equal([]explain.Step{
			{Code: "listener", Message: "listener https-0.0.0.0:8443 accepts the connection"},
			{Code: "tls", Message: `the client connects for "SHOP.test", with TLS 1.2 to 1.3 and HTTP/2 or HTTP/1.1 by ALPN`},
			{Code: "certificate", Message: "the certificate of secret shop-2026 of service shop answers: it is for SHOP.test"},
		}))
	})

	It("is explained with the reason why another certificate does not answer", func() {
		w := newWorld()
		w.issue("all", names("*.shop.test", "a.shop.test"))
		w.issue("wide", names("*.shop.test"))
		w.issue("one", names("a.shop.test"))
		w.issue("star", names("*.shop.test"))
		w.issue("old", testkit.CertificateOptions{Names: []string{"a.shop.test"}, NotAfter: time.Now().Add(time.Minute)})
		w.serve("all", "*", nil, "all")
		w.serve("wide", "*.shop.test", nil, "wide")
		w.serve("one", "a.shop.test", nil, "star", "old", "one")
		a := ask(w.state(), "https://a.shop.test/")
		Expect(stepsOf(a, "certificate")).To(Equal([]string{
			"the certificate of secret one of service one answers: it is for a.shop.test",
			"the certificate of secret old of service one is for a.shop.test too, but secret one is valid for longer",
			"the certificate of secret star of service one covers a.shop.test with *.shop.test too, but secret one names it itself",
			"the certificate of secret all of service all is for a.shop.test too, but service one has the more exact host",
			"the certificate of secret wide of service wide covers a.shop.test with *.shop.test too, but service one serves the name itself",
		}))
		Expect(a.TLS.Others).To(HaveLen(4))
		a = ask(w.state(), "https://b.shop.test/")
		Expect(stepsOf(a, "certificate")).To(Equal([]string{
			"the certificate of secret wide of service wide answers: it covers b.shop.test with *.shop.test",
			"the certificate of secret all of service all covers b.shop.test with *.shop.test too, but service wide has the more exact host",
		}))
		a = ask(w.state(), "https://192.0.2.1/")
		Expect(a.TLS.ServerName).To(BeEmpty())
		Expect(stepsOf(a, "certificate")).To(Equal([]string{"the certificate of secret all of service all answers: it is for clients that name no host"}))
		Expect(stepsOf(a, "tls")[0]).To(HavePrefix("the client connects for an address, which is not a host name (no SNI), with"))
	})

	It("fails without a certificate, with advice", func() {
		w := newWorld()
		w.issue("shop", names("shop.test"))
		w.serve("shop", "shop.test", nil, "shop")
		w.serve("plain", "plain.test", nil)
		have := w.state()
		a := ask(have, "https://plain.test/")
		Expect(a.Code).To(Equal(explain.NoCertificate))
		Expect(a.Status).To(BeZero())
		Expect(a.Service).To(BeEmpty())
		Expect(a.Message).To(Equal(`no certificate is for "plain.test", so the handshake fails; ` +
			"attach a secret with a certificate that covers plain.test to service plain (POST /service/plain/secret/{secret})"))
		Expect(ask(have, "https://shop.tset/").Message).To(Equal(`no certificate is for "shop.tset", so the handshake fails; ` +
			`no service of the proxy has host "shop.tset"; the nearest is shop.test`))
		Expect(ask(have, "https://10.0.0.1/").Message).To(Equal("no certificate is for an address, which is not a host name (no SNI), so the handshake fails; " +
			"a client that connects to an address gets the certificate of a service whose fqdn is * or that address: attach a secret to such a service"))
	})

	It("is refused for an invalid name", func() {
		w := newWorld()
		w.issue("all", names("*.test"))
		w.serve("all", "*", nil, "all")
		a := ask(w.state(), "https://a!b.test/")
		Expect(a.Code).To(Equal(explain.NoCertificate))
		Expect(a.Message).To(Equal(`"a!b.test" is not a host name, so the connection is closed in the handshake`))
	})

	It("uses the filter chain with the name, or with the longest wildcard for it", func() {
		w := newWorld()
		w.issue("all", names("*.a.test", "*.test"))
		w.objects = append(w.objects, &model.Secret{Name: "one", Cert: w.authority.PEM}, &model.Secret{Name: "two", Cert: w.authority.PEM})
		verify := func(ca string) func(*model.Service) { return func(s *model.Service) { s.ClientCACertificate = ca } }
		w.serve("wide", "*.test", verify("one"), "all")
		w.serve("narrow", "*.a.test", verify("two"), "all")
		w.serve("open", "b.a.test", nil, "all")
		have := w.state()
		for host, authorities := range map[string]string{"x.test": "one", "x.a.test": "two", "y.x.a.test": "two", "b.a.test": "", "a.test": "one"} {
			a := ask(have, "https://"+host+"/")
			if a.Code != explain.NoCertificate {
				Expect(a.TLS.ClientAuthorities).To(Equal(authorities), host)
			} else {
				Expect(host).To(Equal("y.x.a.test"))
			}
		}
	})

	It("reaches only services that verify clients if the client was verified", func() {
		w := newWorld()
		w.issue("all", names("*.test"))
		w.objects = append(w.objects, &model.Secret{Name: "one", Cert: w.authority.PEM})
		w.serve("wide", "*.test", func(s *model.Service) { s.ClientCACertificate = "one" }, "all")
		w.serve("bare", "x.test", nil)
		a := ask(w.state(), "https://x.test/")
		Expect(a.Code).To(Equal(explain.CertificateRequired))
		Expect(a.Message).To(Equal("the authorities of secret one verified the client of this connection, " +
			`and it serves only services with these authorities, unlike host "x.test"`))
		Expect(ask(w.state(), "https://y.test/").Code).To(Equal(explain.DirectResponse))
	})

	DescribeTable("is answered with 421 for a different Host", func(url, host string, refused bool) {
		w := newWorld()
		w.issue("all", names("*.test"))
		w.serve("all", "*", nil, "all")
		a := ask(w.state(), url, "Host: "+host)
		if !refused {
			Expect(a.Code).To(Equal(explain.DirectResponse), a.Message)
		} else {
			Expect(a.Code).To(Equal(explain.Misdirected), a.Message)
			Expect(a.Status).To(Equal(421))
			Expect(a.Body).To(Equal("this connection was made for another host; open one for this host\n"))
			Expect(a.Service).To(BeEmpty())
		}
	},
		Entry("the same", "https://a.test/", "a.test", false),
		Entry("the same with a port, a dot and in upper case", "https://a.test/", "A.TEST.:8443", false),
		Entry("different", "https://a.test/", "b.test", true),
		Entry("a different name with the same beginning", "https://a.test/", "a.test.b.test", true),
		Entry("an address", "https://a.test/", "127.0.0.1", true),
		Entry("an address, from a client that sends no server name", "https://127.0.0.1/", "127.0.0.1:8443", false),
		Entry("an address in IPv6", "https://[::1]/", "[::1]", false),
		Entry("a name, from a client that sends no server name", "https://127.0.0.1/", "a.test", true),
	)

	It("is explained with the name for which the connection was made", func() {
		w := newWorld()
		w.issue("all", names("*.test"))
		w.serve("all", "*", nil, "all")
		Expect(ask(w.state(), "https://a.test/", "Host: b.test").Message).To(Equal(
			`the connection was made for "a.test", so a request for the Host "b.test" gets 421: a client makes another connection for that host`))
		Expect(ask(w.state(), "https://[::1]/", "Host: b.test").Message).To(HavePrefix("the connection was made for no host name, so"))
	})

	It("requires the client's certificate", func() {
		w := newWorld()
		w.issue("bank", names("bank.test"))
		w.objects = append(w.objects, &model.Secret{Name: "clients", Cert: w.authority.PEM})
		w.serve("bank", "bank.test", func(s *model.Service) { s.ClientCACertificate = "clients" }, "bank")
		a := ask(w.state(), "https://bank.test/")
		Expect(a.Code).To(Equal(explain.DirectResponse))
		Expect(a.TLS.ClientAuthorities).To(Equal("clients"))
		Expect(stepsOf(a, "client_certificate")).To(Equal([]string{
			"the client must present a certificate that an authority of secret clients has signed, or the connection is closed",
		}))
		a = ask(w.state(), "http://bank.test/")
		Expect(a.Code).To(Equal(explain.CertificateRequired))
		Expect(a.Status).To(Equal(403))
		Expect(a.Body).To(Equal("this host requires a client certificate: connect to it over https\n"))
		Expect(a.Message).To(Equal("service bank verifies clients (its field Client_validation_cacertificate), " +
			"and the client has shown no certificate: request https://bank.test"))
	})

	It("has a certificate for each key type", func() {
		w := newWorld()
		w.issue("ec", names("shop.test"))
		w.issue("rsa", testkit.CertificateOptions{Names: []string{"shop.test"}, RSA: true})
		w.serve("shop", "shop.test", nil, "ec", "rsa")
		a := ask(w.state(), "https://shop.test/")
		Expect(a.Envoy.FilterChain).To(HavePrefix("pairs"))
		Expect(stepsOf(a, "certificate")).To(Equal([]string{
			"the certificate of secret ec of service shop answers clients that accept ECDSA: it is for shop.test",
			"the certificate of secret rsa of service shop answers clients that accept RSA only: it is for shop.test",
		}))
	})

	It("is explained with what the browser receives", func() {
		w := newWorld()
		w.issue("shop", names("shop.test"))
		w.serve("shop", "shop.test", func(s *model.Service) { s.HSTSSeconds = 600 }, "shop")
		told := func(url string) []string {
			var list []string
			for _, f := range ask(w.state(), url).Filters {
				list = append(list, f.Message)
			}
			return list
		}
		const hsts = "tells browsers to keep to HTTPS, with strict-transport-security: max-age=600 in the answer (field Hsts_seconds of the service)"
		Expect(told("https://shop.test/")).To(ContainElement(hsts))
		Expect(told("http://shop.test/")).NotTo(ContainElement(hsts))
	})
})

var _ = Describe("Plain HTTP to a service with HTTPS", func() {
	have := func(https string) explain.State {
		GinkgoHelper()
		w := newWorld()
		w.issue("shop", testkit.CertificateOptions{Names: []string{"shop.test"}})
		w.serve("shop", "shop.test", func(s *model.Service) { s.HTTPS = https }, "shop")
		return w.state()
	}

	It("is redirected to https, and the field that causes it is named", func() {
		a := ask(have("redirect"), "http://shop.test/a/../cart?b=c")
		Expect(a.Code).To(Equal(explain.Redirected))
		Expect(a.Status).To(Equal(301))
		Expect(a.Location).To(Equal("https://shop.test/cart?b=c"))
		Expect(a.Message).To(Equal("service shop is served over HTTPS only (its field Https is redirect), so the client is sent to https://shop.test/cart?b=c with 301"))
		Expect(ask(have("redirect"), "https://shop.test/").Code).To(Equal(explain.DirectResponse))
	})

	DescribeTable("is redirected to", func(method, url, location string, status int) {
		r, errs := explain.NewRequest(method, url, nil)
		Expect(errs).To(BeEmpty())
		a := must(explain.Explain(have("redirect"), r))
		Expect(a.Location).To(Equal(location))
		Expect(a.Status).To(Equal(status))
	},
		Entry("the usual port", "POST", "http://shop.test/", "https://shop.test/", 308),
		Entry("the configured port", "GET", "http://shop.test:8080/", "https://shop.test:8443/", 301),
		Entry("the configured port, with a body", "PUT", "http://shop.test:8080/", "https://shop.test:8443/", 308),
		Entry("the usual port, explicitly", "HEAD", "http://shop.test:80/", "https://shop.test/", 301),
	)

	It("is refused", func() {
		a := ask(have("only"), "http://shop.test/cart")
		Expect(a.Code).To(Equal(explain.DirectResponse))
		Expect(a.Status).To(Equal(403))
		Expect(a.Message).To(Equal("service shop is served over HTTPS only (its field Https is only), so plain HTTP gets 403: request https://shop.test"))
	})

	It("is HTTPS if a trusted proxy in front says so", func() {
		w := newWorld()
		w.issue("shop", testkit.CertificateOptions{Names: []string{"shop.test"}})
		w.serve("shop", "shop.test", func(s *model.Service) { s.HTTPS = "only" }, "shop")
		for hops, status := range []int{403, 503} {
			objects := slices.Clone(w.objects)
			proxy := model.NewProxy()
			proxy.Name, proxy.TrustedHops = "gw", hops
			a := ask(configured(append(objects, proxy)...), "http://shop.test/", "X-Forwarded-Proto: https")
			Expect(a.Status).To(Equal(status), strings.Join(stepsOf(a, "answer"), ""))
		}
	})
})
