package rest_test

import (
	"context"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/acme"
)

// ordered are the certificates of a test.
type ordered []acme.Certificate

func (o ordered) List() []acme.Certificate { return o }

func (o ordered) Ask(_ context.Context, host string) ([]acme.Certificate, error) {
	if host != o[0].Host {
		return nil, &model.Error{Kind: model.NotFound, Message: "no service has the host " + host}
	}
	return o, nil
}

func (o ordered) StartTest(_ context.Context, host, by string) (acme.Test, error) {
	if host == "busy.a.test" {
		return acme.Test{}, &acme.TooManyTests{Message: "2 tests of yours run already", After: 90 * time.Second}
	}
	return acme.Test{Host: host, Service: o[0].Service, State: "running", Directory: "https://ca.test/dir", Challenge: "http-01", Issuer: by}, nil
}

func (o ordered) TestOf(ctx context.Context, host string) (acme.Test, error) {
	return o.StartTest(ctx, host, "")
}

var _ = Describe("Automatic certificates", func() {
	It("are listed, and ordered again on request", func() {
		a := startAPI(open, func(o *rest.Options) {
			o.Certificates = ordered{{Host: "shop.test", Service: "shop", State: "failing", Reason: "dns: no such host", Advice: "check A", Failures: 2, Challenge: "http-01"}}
		})
		want := `{"data":{"core_db_certificate":[{"host":"shop.test","service":"shop","state":"failing","reason":"dns: no such host","advice":"check A","failures":2,"challenge":"http-01"}]}}`
		a.get("/certificate").expectJSON(200, want)
		a.post("/certificate/shop.test/renew", "").expectJSON(200, want)
		tested := a.post("/certificate/%2A.shop.test/test", "")
		Expect(tested.status).To(Equal(200), tested.body)
		Expect(tested.body).To(ContainSubstring(`{"data":{"core_db_certificate_test":[{"host":"*.shop.test","service":"shop","state":"running"`))
		Expect(a.get("/certificate/*.shop.test/test").body).To(Equal(tested.body))
		Expect(a.get("/certificate/" + strings.Repeat("x", 256) + "/test").status).To(Equal(404))
		Expect(a.post("/certificate/other.test/renew", "").status).To(Equal(404))
		Expect(a.get("/certificate?x=1").status).To(Equal(400))
		Expect(a.post("/certificate/shop.test/renew?x=1", "").status).To(Equal(400))
	})

	It("are tested by an admin, and by an editor whose service has the host", func() {
		list := ordered{{Host: "a.test", Service: "a-shop"}, {Host: "busy.a.test", Service: "a-shop"}, {Host: "b.test", Service: "b-shop"}}
		a, editor := teams("", func(o *rest.Options) { o.Certificates = list })
		test := func(token, host string) answer { return a.send("POST", "/certificate/"+host+"/test", token, "") }
		got := test(adminToken, "b.test")
		Expect(got.status).To(Equal(200), got.body)
		Expect(got.body).NotTo(ContainSubstring("issuer"), "nothing bounds an admin")
		got = test(editor, "A.test")
		Expect(got.status).To(Equal(200), got.body)
		Expect(got.body).To(ContainSubstring(`"issuer":"a-ci"`), "who asks is known")
		for _, host := range []string{"b.test", "other.test"} {
			Expect(test(editor, host).status).To(Equal(403), host)
		}
		By("and the result is read by all, as the list of certificates is")
		for _, token := range []string{editor, a.makeToken(adminToken, "sam", "viewer")} {
			Expect(a.send("GET", "/certificate/b.test/test", token, "").status).To(Equal(200))
			Expect(a.send("POST", "/certificate/b.test/test", token, "").status).To(Equal(403))
		}
		got = test(editor, "busy.a.test")
		got.expectProblem(429, refused(429, "too_many_requests", "Too many tests", "2 tests of yours run already", "/certificate/busy.a.test/test"))
		Expect(got.header.Get("Retry-After")).To(Equal("90"))
		Expect(a.send("POST", "/certificate/a.test/test?x=1", editor, "").status).To(Equal(400))
		Expect(a.send("GET", "/certificate/a.test/test?x=1", editor, "").status).To(Equal(400))
	})

	It("are none where nobody orders", func() {
		a := startAPI(open)
		a.get("/certificate").expectJSON(200, `{"data":{"core_db_certificate":[]}}`)
		for _, got := range []answer{
			a.post("/certificate/shop.test/renew", ""), a.post("/certificate/shop.test/test", ""), a.get("/certificate/shop.test/test"),
		} {
			Expect(got.status).To(Equal(404))
			Expect(got.body).To(ContainSubstring("cert-manager"))
		}
	})

	DescribeTable("are refused for", func(fields, why string) {
		got := startAPI(open).post("/service", "Service_Name=shop&"+fields)
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(ContainSubstring(`"field":"Certificate","message":"` + why))
	},
		Entry("every host", "fqdn=*&Certificate=auto", `auto requires a host name or \"*.suffix\" in fqdn`),
		Entry("every host by DNS", "fqdn=*&Certificate=auto_dns", `auto_dns requires a host name or \"*.suffix\" in fqdn`),
		Entry("an address", "fqdn=192.0.2.1&Certificate=auto", "auto requires a host name in fqdn, and not an address"),
		Entry("connections", "fqdn=shop.test&Mode=tls&Certificate=auto", "auto is for mode http"),
		Entry("another word", "fqdn=shop.test&Certificate=always", `\"always\" is not one of manual, auto, auto_dns`),
	)

	DescribeTable("have an authority, which is refused with", func(config string, wants ...string) {
		a := startAPI(open)
		got := a.post("/globalconfig", "globalconfig_name=ca&globalconfig_type=globalconfig_acme&config="+url.QueryEscape(config))
		Expect(got.status).To(Equal(400), got.body)
		for _, want := range wants {
			Expect(got.body).To(ContainSubstring(want))
		}
	},
		Entry("nothing", `{}`, "config.directory", "config.terms_agreed"),
		Entry("the address of the production", `{"directory":"https://ACME-v02.api.letsencrypt.org/directory","terms_agreed":true}`, "write the word production"),
		Entry("its port", `{"directory":"https://acme-v02.api.letsencrypt.org.:443/directory","terms_agreed":true}`, "write the word production"),
		Entry("plain HTTP", `{"directory":"http://ca.test/dir","terms_agreed":true}`, "must be staging, production"),
		Entry("all wrong", `{"directory":"https://u@ca.test/","terms_agreed":false,"email":"x","external_account":{"key_id":"","hmac_key":"%"},`+
			`"key_type":"dsa","profile":"\n","preferred_chain":"\n","ca_certificate":"a/b"}`,
			"config.directory", "config.terms_agreed", "config.email", "config.external_account.key_id", "config.external_account.hmac_key",
			"config.key_type", "config.profile", "config.preferred_chain", "config.ca_certificate"),
		Entry("tests at the production", `{"directory":"staging","terms_agreed":true,"test_directory":"production"}`, "config.test_directory"),
		Entry("tests elsewhere", `{"directory":"staging","terms_agreed":true,"test_directory":"http://ca.test/"}`, "config.test_directory"),
		Entry("no hook", `{"directory":"staging","terms_agreed":true,"dns":{}}`, "config.dns.hook"),
		Entry("a program", `{"directory":"staging","terms_agreed":true,"dns":{"hook":"exec","exec":"/bin/sh"}}`, "exec"),
		Entry("an address of a program", `{"directory":"staging","terms_agreed":true,"dns":{"hook":"exec","url":"/bin/sh"}}`, "acme-dns-exec only"),
		Entry("a webhook over plain HTTP", `{"directory":"staging","terms_agreed":true,"dns":{"hook":"webhook","url":"http://dns.test/"}}`, "config.dns.url"),
		Entry("all of dns wrong", `{"directory":"staging","terms_agreed":true,"dns":{"hook":"webhook","url":"https://u@dns.test/","token":"\n",`+
			`"ca_certificate":"a/b","timeout":"6m","propagation":"11m","resolvers":["dns.test:53","192.0.2.1"]}}`, "config.dns.url", "config.dns.token",
			"config.dns.ca_certificate", "config.dns.timeout", "config.dns.propagation", "dns.test:53", "192.0.2.1"),
		Entry("too many resolvers", `{"directory":"staging","terms_agreed":true,"dns":{"hook":"exec","resolvers":["192.0.2.1:1","192.0.2.1:2",`+
			`"192.0.2.1:3","192.0.2.1:4","192.0.2.1:5","192.0.2.1:6","192.0.2.1:7","192.0.2.1:8","192.0.2.1:9"]}}`, "at most 8"),
	)

	It("never show the key of an external account, or the token of a webhook", func() {
		a := startAPI(open)
		config := `{"directory":"staging","terms_agreed":true,"external_account":{"key_id":"me","hmac_key":"c2VjcmV0LWtleQ"},"dns":{"hook":"webhook","url":"https://dns.test/","token":"c2VjcmV0LWtleQ-token"}}`
		a.given("/globalconfig", "globalconfig_name=ca&globalconfig_type=globalconfig_acme&config="+url.QueryEscape(config))
		for _, path := range []string{"/globalconfig/ca", "/config", "/revision/1"} {
			Expect(a.get(path).body).NotTo(ContainSubstring("c2VjcmV0LWtleQ"), path)
		}
	})
})
