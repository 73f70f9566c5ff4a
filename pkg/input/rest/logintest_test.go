package rest_test

import (
	"context"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/logintest"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

var _ = Describe("The test of a login", func() {
	const login = `{"client_id":"c","client_secret":"s","cookie_secret":"cookies","issuer":"https://login.test","redirect_uri":"/callback"}`
	shop := func() *api {
		GinkgoHelper()
		a := startAPI(open, func(o *rest.Options) {
			o.LoginTest = func(context.Context, *logintest.Subject) logintest.Result {
				return logintest.Result{
					Service: "shop", Proxy: "gw", By: "/filter/staff", URL: "https://shop.test:8443/",
					Steps: []logintest.Step{{Name: "secret", Result: logintest.Failed, Message: "wrong", Advice: "write it again"}},
				}
			}
		})
		a.given("/proxy", "Name=gw", "/service", "Service_Name=shop&fqdn=shop.test", "/secret", "Secret_name=cookies&Secret_value=0123456789abcdef0123456789abcdef",
			"/filter", "Filter_name=staff&Filter_type=http_filter_oidc&Filter_config="+url.QueryEscape(login))
		return a
	}

	It("has a result for a service with a login on a proxy", func() {
		a := shop()
		a.given("/proxy/gw/service/shop", "", "/service/shop/filter/staff", "")
		a.post("/service/shop/login/test?proxy=gw", "").expectJSON(200, `{"data":{"core_db_login_test":[`+
			`{"service_name":"shop","proxy_name":"gw","login":"/filter/staff","url":"https://shop.test:8443/","ok":false,`+
			`"steps":[{"step":"secret","result":"failed","message":"wrong","advice":"write it again"}]}]}}`)
	})

	It("is refused if there is nothing to test", func() {
		a := shop()
		refused := func(query string, status int, text string) {
			GinkgoHelper()
			got := a.post("/service/shop/login/test"+query, "")
			Expect(got.status).To(Equal(status), got.body)
			Expect(got.body).To(ContainSubstring(text))
		}
		Expect(a.post("/service/no/login/test", "").status).To(Equal(404))
		refused("", 409, `service \"shop\" is on no proxy`)
		a.given("/proxy/gw/service/shop", "")
		refused("", 409, `service \"shop\" requires no login; attach a filter of type http_filter_oidc to it`)
		a.given("/service/shop/filter/staff", "")
		refused("?url=https://other.test/", 400, "its host other.test is not that of service")
		refused("?proxy=no", 404, "does not exist")
		a.given("/proxy", "Name=edge&Http_port=8090&Https_port=8490", "/proxy/edge/service/shop", "")
		refused("", 400, `service \"shop\" is on the proxies gw, edge: name one`)
	})
})
