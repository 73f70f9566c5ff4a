package rest_test

import (
	"context"
	"net/url"

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

var _ = Describe("Automatic certificates", func() {
	It("are listed, and ordered again on request", func() {
		a := startAPI(open, func(o *rest.Options) {
			o.Certificates = ordered{{Host: "shop.test", Service: "shop", State: "failing", Reason: "dns: no such host", Advice: "check A", Failures: 2}}
		})
		want := `{"data":{"core_db_certificate":[{"host":"shop.test","service":"shop","state":"failing","reason":"dns: no such host","advice":"check A","failures":2}]}}`
		a.get("/certificate").expectJSON(200, want)
		a.post("/certificate/shop.test/renew", "").expectJSON(200, want)
		Expect(a.post("/certificate/other.test/renew", "").status).To(Equal(404))
		Expect(a.get("/certificate?x=1").status).To(Equal(400))
		Expect(a.post("/certificate/shop.test/renew?x=1", "").status).To(Equal(400))
	})

	It("are none where nobody orders", func() {
		a := startAPI(open)
		a.get("/certificate").expectJSON(200, `{"data":{"core_db_certificate":[]}}`)
		got := a.post("/certificate/shop.test/renew", "")
		Expect(got.status).To(Equal(404))
		Expect(got.body).To(ContainSubstring("cert-manager"))
	})

	DescribeTable("are refused for", func(fields, why string) {
		got := startAPI(open).post("/service", "Service_Name=shop&"+fields)
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(ContainSubstring(`"field":"Certificate","message":"` + why))
	},
		Entry("a wildcard", "fqdn=*.shop.test&Certificate=auto", "auto requires a host name in fqdn: for"),
		Entry("every host", "fqdn=*&Certificate=auto", "auto requires a host name in fqdn: for"),
		Entry("an address", "fqdn=192.0.2.1&Certificate=auto", "auto requires a host name in fqdn, and not an address"),
		Entry("connections", "fqdn=shop.test&Mode=tls&Certificate=auto", "auto is for mode http"),
		Entry("another word", "fqdn=shop.test&Certificate=always", `\"always\" is not one of manual, auto`),
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
	)

	It("never show the key of an external account", func() {
		a := startAPI(open)
		config := `{"directory":"staging","terms_agreed":true,"external_account":{"key_id":"me","hmac_key":"c2VjcmV0LWtleQ"}}`
		a.given("/globalconfig", "globalconfig_name=ca&globalconfig_type=globalconfig_acme&config="+url.QueryEscape(config))
		for _, path := range []string{"/globalconfig/ca", "/config", "/revision/1"} {
			Expect(a.get(path).body).NotTo(ContainSubstring("c2VjcmV0LWtleQ"), path)
		}
	})
})
