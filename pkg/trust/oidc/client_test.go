package oidc_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

var _ = Describe("A provider", func() {
	It("publishes its endpoints and its keys", func(ctx SpecContext) {
		p := startProvider(testkit.CertificateOptions{})
		a, err := p.client().Ask(ctx, p.source(), nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(a).To(Equal(oidc.Answer{Provider: model.Provider{
			Source: p.source(), AuthorizationEndpoint: p.Issuer() + "/auth", TokenEndpoint: p.Issuer() + "/token",
			EndSessionEndpoint: p.Issuer() + "/end", JWKSURI: p.Issuer() + "/keys", JWKS: setP256,
		}}))
		for _, path := range []string{"/.well-known/openid-configuration", "/keys"} {
			r := <-p.Asked
			Expect(r.Method + " " + r.URL.Path).To(Equal("GET " + path))
			Expect(r.Header).To(Equal(http.Header{
				"Accept": {"application/json"}, "Accept-Encoding": {"identity"}, "User-Agent": {"gatehouse"}, "Connection": {"close"},
			}))
		}
	})

	It("may have an issuer with a path, keys elsewhere, and a lifetime for them", func(ctx SpecContext) {
		p, keys := startProvider(testkit.CertificateOptions{}), startProvider(testkit.CertificateOptions{})
		issuer := p.Issuer() + "/realms/a"
		p.Handle("/realms/a/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "public, max-age=900")
			_, _ = w.Write([]byte(p.Document(issuer, "jwks_uri", keys.Issuer()+"/keys")))
		})
		keys.Handle("/keys", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", `Max-Age="120", must-revalidate`)
			_, _ = w.Write([]byte(`{"keys":[` + keyEd25519 + `]}`))
		})
		client := p.client(func(o *oidc.Options) { o.Authorities += keys.Authority.PEM })
		a, err := client.Ask(ctx, model.ProviderSource{Issuer: issuer, Discover: true}, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.JWKSURI).To(Equal(keys.Issuer() + "/keys"))
		Expect(a.MaxAge).To(Equal(2 * time.Minute))
	})

	It("needs no document if only its keys are fetched", func(ctx SpecContext) {
		p := startProvider(testkit.CertificateOptions{})
		p.HandleDocument(nil)
		source := model.ProviderSource{JWKSURI: p.Issuer() + "/keys"}
		a, err := p.client().Ask(ctx, source, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Provider).To(Equal(model.Provider{Source: source, JWKSURI: p.Issuer() + "/keys", JWKS: setP256}))
	})

	It("differs from one whose issuer ends with a slash", func(ctx SpecContext) {
		p := startProvider(testkit.CertificateOptions{})
		slash := model.ProviderSource{Issuer: p.Issuer() + "/", Discover: true}
		_, err := p.client().Ask(ctx, slash, nil)
		Expect(err).To(MatchError(fmt.Sprintf("the discovery document %s/.well-known/openid-configuration names the issuer %s, not %s/: write the one that it names, if it is the provider that you mean",
			p.Issuer(), p.Issuer(), p.Issuer())))
		p.SetDocument(p.Document(p.Issuer() + "/"))
		a, err := p.client().Ask(ctx, slash, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.TokenEndpoint).To(Equal(p.Issuer() + "/token"))
	})

	DescribeTable("is refused, with advice, if its document",
		func(ctx SpecContext, change func(p provider), words string) {
			p := startProvider(testkit.CertificateOptions{})
			change(p)
			a, err := p.client().Ask(ctx, p.source(), nil)
			Expect(err).To(MatchError(strings.ReplaceAll("the discovery document ISSUER/.well-known/openid-configuration "+words, "ISSUER", p.Issuer())))
			Expect(a.JWKS).To(BeEmpty())
			Expect(p.Asked).To(HaveLen(1), "nothing is followed")
		},
		Entry("does not exist", func(p provider) { p.HandleDocument(nil) },
			"does not exist (404): correct the URL; an issuer is written without /.well-known/openid-configuration"),
		Entry("requires a login", answer(401, "", ""), "is not public (401): the provider has to let everybody read it"),
		Entry("is answered with 503", answer(503, "", ""), "is answered with 503: check the provider"),
		Entry("is empty", answer(204, "", ""), "is answered with 204: check the provider"),
		Entry("is a redirect", answer(302, "Location", "https://login.example/x"), "redirects to https://login.example/x, which is not followed: write the URL to which it redirects"),
		Entry("redirects to itself", func(p provider) {
			p.HandleDocument(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) })
		}, "redirects to /.well-known/openid-configuration, which is not followed: write the URL to which it redirects"),
		Entry("redirects to a URL with a line separator", answer(307, "Location", "/\u2028"), `redirects to "/\u2028", which is not followed: write the URL to which it redirects`),
		Entry("is larger than 256 KiB", document(strings.Repeat(" ", 5<<20)), "is larger than 256 KiB: the URL may be wrong"),
		Entry("never ends", func(p provider) {
			p.HandleDocument(func(w http.ResponseWriter, _ *http.Request) {
				for _, err := w.Write([]byte("{")); err == nil; _, err = w.Write(bytes.Repeat([]byte(" "), 4096)) {
				}
			})
		}, "is larger than 256 KiB: the URL may be wrong"),
		Entry("is a gzip bomb", func(p provider) {
			p.HandleDocument(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				for range 64 {
					_, _ = z.Write(make([]byte, 1<<20))
				}
				_ = z.Close()
			})
		}, "is compressed (gzip), although no compression was requested: turn it off at the provider"),
		Entry("is a page", document("<!doctype html><p>login"), "is HTML or XML in place of JSON: open it in a browser, the URL may be wrong"),
		Entry("is text", document("hello"), "is not a JSON object: open it in a browser, the URL may be wrong"),
		Entry("is null", document("null"), "is not a JSON object: open it in a browser, the URL may be wrong"),
		Entry("has text after its end", document(`{"issuer":"x"} {}`), "is not a JSON object: open it in a browser, the URL may be wrong"),
		Entry("has no issuer", document("{}"), "names no issuer: it is not a discovery document of OpenID Connect"),
		Entry("spells issuer in another letter case", document(`{"Issuer":"x"}`), "names no issuer: it is not a discovery document of OpenID Connect"),
		Entry("has another issuer", document(`{"issuer":"https://other.example"}`),
			"names the issuer https://other.example, not ISSUER: write the one that it names, if it is the provider that you mean"),
		Entry("has an endpoint without TLS", with("token_endpoint", "http://login.example/token"),
			"has the token_endpoint http://login.example/token, which is not https: change it at the provider"),
		Entry("has an endpoint that is a script", with("authorization_endpoint", "javascript:alert(1)"),
			"has the authorization_endpoint javascript:alert(1), which is not a URL: change it at the provider"),
		Entry("has an endpoint with a line break", with("authorization_endpoint", "https://a.example/\r\nSet-Cookie: x"),
			`has the authorization_endpoint "https://a.example/\r\nSet-Cookie: x", which is not a URL: change it at the provider`),
		Entry("has an endpoint that Envoy refuses", with("authorization_endpoint", "https://my_login.example/auth"),
			"has the authorization_endpoint https://my_login.example/auth, which has an underscore in the host my_login.example, which Envoy does not accept in a URL: change it at the provider"),
		Entry("has an endpoint with a fragment", with("end_session_endpoint", "https://a.example/#x"),
			"has the end_session_endpoint https://a.example/#x, which has a user or a fragment (#): change it at the provider"),
		Entry("has no keys", with("jwks_uri", ""), "has no jwks_uri: give jwks_uri in the configuration"),
		Entry("has an endpoint at a metadata service", with("token_endpoint", "https://169.254.169.254/token"),
			"has the token_endpoint https://169.254.169.254/token, which must not be called: its address 169.254.169.254 is a link-local address; if the provider is at this address, "+
				"name an upstream with this address in the configuration, or start with --provider-allow 169.254.169.254"),
	)

	DescribeTable("is not awaited longer than the timeout",
		func(ctx SpecContext, write func(w http.ResponseWriter)) {
			p := startProvider(testkit.CertificateOptions{})
			p.HandleDocument(func(w http.ResponseWriter, r *http.Request) {
				write(w)
				<-r.Context().Done()
			})
			_, err := p.client(func(o *oidc.Options) { o.Timeout = 300 * time.Millisecond }).Ask(ctx, p.source(), nil)
			Expect(err).To(MatchError(ContainSubstring("did not arrive within 300ms: check whether this machine reaches localhost:")))
		},
		Entry("before the headers", func(http.ResponseWriter) {}),
		Entry("in the middle of the body", func(w http.ResponseWriter) { _, _ = w.Write([]byte("{")); w.(http.Flusher).Flush() }),
	)

	It("is not awaited if it accepts connections and is silent", func(ctx SpecContext) {
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(silent.Close)
		p := startProvider(testkit.CertificateOptions{})
		client := p.client(func(o *oidc.Options) { o.Timeout = 300 * time.Millisecond })
		_, err = client.Ask(ctx, model.ProviderSource{JWKSURI: "https://" + silent.Addr().String() + "/keys"}, nil)
		Expect(err).To(MatchError(ContainSubstring("did not arrive within 300ms")))
	})

	It("is reported as down", func(ctx SpecContext) {
		p := startProvider(testkit.CertificateOptions{})
		p.Close()
		_, err := p.client().Ask(ctx, p.source(), nil)
		Expect(err).To(MatchError(HaveSuffix(fmt.Sprintf("cannot be fetched: localhost:%d refuses connections: is the provider running there?", p.Port()))))
	})

	DescribeTable("is verified",
		func(ctx SpecContext, o testkit.CertificateOptions, trusted bool, words string) {
			p := startProvider(o)
			client := p.client(func(o *oidc.Options) {
				if !trusted {
					other, err := testkit.NewAuthority("other")
					Expect(err).NotTo(HaveOccurred())
					o.Authorities = other.PEM
				}
			})
			_, err := client.Ask(ctx, p.source(), nil)
			Expect(err).To(MatchError(ContainSubstring(fmt.Sprintf("cannot be trusted: the certificate of localhost:%d %s", p.Port(), words))))
			Expect(p.Asked).To(BeEmpty())
		},
		Entry("by an authority", testkit.CertificateOptions{}, false, "is not signed by any of the authorities of the system: put the authority into a secret, "+
			"and name it in Upstream_validation_cacertificate of an upstream of the login, or start with --upstream-ca-file"),
		Entry("by time", testkit.CertificateOptions{NotBefore: time.Date(2024, 1, 2, 3, 4, 0, 0, time.UTC), NotAfter: time.Date(2024, 2, 2, 3, 4, 0, 0, time.UTC)}, true,
			"is valid from 2024-01-02 03:04 UTC to 2024-02-02 03:04 UTC: renew it at the provider, or set this machine's clock"),
		Entry("by name", testkit.CertificateOptions{Names: []string{"a.example", "192.0.2.1"}}, true,
			"is not for localhost, but for a.example,192.0.2.1: write a host that it is for, or renew it"),
	)

	It("is not called without certificate authorities", func(ctx SpecContext) {
		p := startProvider(testkit.CertificateOptions{})
		_, err := p.client(func(o *oidc.Options) { o.Authorities = "" }).Ask(ctx, p.source(), nil)
		Expect(err).To(MatchError(ContainSubstring("no certificate authorities were found on the system: start with --upstream-ca-file")))
	})

	It("is reported if it does not speak TLS, or has no address", func(ctx SpecContext) {
		p := startProvider(testkit.CertificateOptions{})
		plain := httptest.NewServer(http.NotFoundHandler())
		DeferCleanup(plain.Close)
		_, err := p.client().Ask(ctx, model.ProviderSource{JWKSURI: "https://" + plain.Listener.Addr().String() + "/keys"}, nil)
		Expect(err).To(MatchError(ContainSubstring("does not speak TLS: is the port right?")))
		client := p.client(func(o *oidc.Options) { o.Resolver = resolver() })
		_, err = client.Ask(ctx, model.ProviderSource{JWKSURI: "https://idp.example/keys"}, nil)
		Expect(err).To(MatchError(ContainSubstring("cannot be fetched: the name idp.example does not resolve here: correct it, or check the resolver")))
	})
})

var _ = Describe("The address of a provider", func() {
	const special = "; if the provider is at this address, name an upstream with this address in the configuration, or start with --provider-allow "

	DescribeTable("is judged when it is connected to",
		func(ctx SpecContext, rules oidc.Rules, host, resolved, words string) {
			p := startProvider(testkit.CertificateOptions{Names: []string{"localhost", "idp.example", "127.0.0.1", "::1", "192.0.2.7"}})
			client := oidc.NewClient(oidc.Options{Authorities: p.Authority.PEM, Rules: rules, Timeout: 5 * time.Second, Resolver: resolver(resolved)})
			_, err := client.Ask(ctx, model.ProviderSource{JWKSURI: fmt.Sprintf("https://%s/keys", net.JoinHostPort(host, fmt.Sprint(p.Port())))}, nil)
			if words == "" {
				Expect(err).NotTo(HaveOccurred())
				return
			}
			Expect(err).To(MatchError(ContainSubstring(words)))
			Expect(p.Asked).To(BeEmpty())
		},
		Entry("a loopback address", oidc.Rules{}, "127.0.0.1", "", "must not be called: its address 127.0.0.1 is a loopback address"+special+"127.0.0.1"),
		Entry("a name of the loopback", oidc.Rules{}, "localhost", "", "is a loopback address"+special),
		Entry("another loopback address", oidc.Rules{}, "127.9.9.9", "", "is a loopback address"+special+"127.9.9.9"),
		Entry("the IPv6 loopback", oidc.Rules{}, "::1", "", "its address ::1 is a loopback address"+special+"::1"),
		Entry("IPv4 in IPv6", oidc.Rules{}, "::ffff:127.0.0.1", "", "its address 127.0.0.1 is a loopback address"+special+"127.0.0.1"),
		Entry("unspecified", oidc.Rules{}, "0.0.0.0", "", "its address 0.0.0.0 is an unspecified address"+special+"0.0.0.0"),
		Entry("unspecified in IPv6", oidc.Rules{}, "::", "", "its address :: is an unspecified address"+special+"::"),
		Entry("the metadata service", oidc.Rules{}, "169.254.169.254", "", "is a link-local address"+special+"169.254.169.254"),
		Entry("a name that resolves to the loopback", oidc.Rules{}, "idp.example", "127.0.0.1", "its address 127.0.0.1 is a loopback address"+special+"127.0.0.1"),
		Entry("a name that resolves to the metadata service", oidc.Rules{}, "idp.example", "169.254.169.254", "is a link-local address"+special+"169.254.169.254"),
		Entry("an allowed loopback address", oidc.Rules{Allow: entries("127.0.0.1")}, "idp.example", "127.0.0.1", ""),
		Entry("an allowed host", oidc.Rules{Allow: entries("*.example")}, "idp.example", "127.0.0.1", ""),
		Entry("an address that no entry allows", oidc.Rules{Allow: entries("127.0.0.2", "a.example")}, "idp.example", "127.0.0.1", "is a loopback address"+special+"127.0.0.1"),
		Entry("an address denied for upstreams", oidc.Rules{Allow: entries("127.0.0.1"), Upstreams: egress.Lists{Deny: entries("127.0.0.0/24")}}, "idp.example", "127.0.0.1",
			"must not be called: its address 127.0.0.1 is in 127.0.0.0/24, which --upstream-deny names"),
		Entry("a name denied for upstreams", oidc.Rules{Allow: entries("127.0.0.1"), Upstreams: egress.Lists{Deny: entries("idp.example")}}, "idp.example", "127.0.0.1",
			"must not be called: its address idp.example is in idp.example, which --upstream-deny names"),
		Entry("a name allowed for upstreams", oidc.Rules{Allow: entries("127.0.0.1"), Upstreams: egress.Lists{Deny: entries("127.0.0.0/24"), Allow: entries("idp.example")}}, "idp.example", "127.0.0.1", ""),
		Entry("a name that no entry allows for upstreams", oidc.Rules{Upstreams: egress.Lists{Allow: entries("a.example")}}, "idp.example", "192.0.2.1",
			"must not be called: its address idp.example is in nothing that --upstream-allow names"),
	)

	It("must not be an address of the gateway itself", func(ctx SpecContext) {
		p := startProvider(testkit.CertificateOptions{Names: []string{"idp.example"}})
		client := p.client(func(o *oidc.Options) {
			o.Resolver = resolver("127.0.0.1")
			o.Rules.OwnAddresses = func() []egress.OwnAddress {
				return []egress.OwnAddress{{What: "Gatehouse's own API", Addr: netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(p.Port()))}}
			}
		})
		_, err := client.Ask(ctx, model.ProviderSource{JWKSURI: fmt.Sprintf("https://idp.example:%d/keys", p.Port())}, nil)
		Expect(err).To(MatchError(HaveSuffix(fmt.Sprintf("must not be called: its address 127.0.0.1:%d is that of Gatehouse's own API", p.Port()))))
	})
})

// answer serves the document with a status and a header.
func answer(status int, name, value string) func(provider) {
	return func(p provider) {
		p.HandleDocument(func(w http.ResponseWriter, _ *http.Request) {
			if name != "" {
				w.Header().Set(name, value)
			}
			w.WriteHeader(status)
		})
	}
}

func document(text string) func(provider) {
	return func(p provider) { p.SetDocument(text) }
}

// with changes a field of the document.
func with(field, value string) func(provider) {
	return func(p provider) {
		p.SetDocument(p.Document(p.Issuer(), field, value))
	}
}

// resolver resolves each name to IPv4 addresses; without any, no name resolves.
func resolver(addrs ...string) *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		client, server := net.Pipe()
		go func() {
			defer server.Close()
			// RFC 1035 section 4: over a stream, a message is preceded by its length.
			var length [2]byte
			for {
				if _, err := io.ReadFull(server, length[:]); err != nil {
					return
				}
				query := make([]byte, binary.BigEndian.Uint16(length[:]))
				if _, err := io.ReadFull(server, query); err != nil {
					return
				}
				reply := dnsReply(query, addrs)
				binary.BigEndian.PutUint16(length[:], uint16(len(reply)))
				if _, err := server.Write(append(length[:], reply...)); err != nil {
					return
				}
			}
		}()
		return client, nil
	}}
}

// dnsReply answers a query for IPv4 addresses with addrs, and other queries with none.
func dnsReply(query []byte, addrs []string) []byte {
	question := 12
	for query[question] != 0 {
		question += 1 + int(query[question])
	}
	kind := query[question+2]
	question += 5
	reply := append([]byte(nil), query[:question]...)
	reply[2], reply[3] = 0x84, 0 // an authoritative answer
	copy(reply[6:], make([]byte, 6))
	if len(addrs) == 0 || addrs[0] == "" {
		reply[3] = 3 // no such name
		return reply
	}
	if kind != 1 {
		return reply
	}
	reply[7] = byte(len(addrs))
	for _, a := range addrs {
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4)
		reply = append(reply, netip.MustParseAddr(a).AsSlice()...)
	}
	return reply
}
