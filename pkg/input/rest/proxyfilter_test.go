package rest_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A proxy filter", func() {
	It("is attached, listed both ways and detached, and keeps its type", func() {
		a := startAPI()
		a.given("/proxy", "Name=gw", "/filter", `Filter_name=f&Filter_type=vh_filter_ipaccess&Filter_config={"allow":["192.0.2.1"]}`)
		Expect(a.post("/proxy/gw/filter/f", "").status).To(Equal(201))
		Expect(a.get("/proxy/gw/filter").body).To(ContainSubstring(`"filter_name":"f"`))
		Expect(a.get("/proxy/gw/filter/f").body).To(ContainSubstring(`"filter_name":"f"`))
		Expect(a.get("/filter/f/proxy").body).To(ContainSubstring(`"name":"gw"`))
		Expect(a.delete("/filter/f").body).To(ContainSubstring(`"referenced_by":["/proxy/gw"]`))
		got := a.patch("/filter/f", `Filter_type=route_filter_redirect&Filter_config={"path":"/a"}`)
		Expect(got.status).To(Equal(422))
		Expect(got.body).To(ContainSubstring(`filter \"f\" is attached to /proxy/gw, where a filter of type`))
		Expect(a.delete("/proxy/gw/filter/f").status).To(Equal(200))
		Expect(a.delete("/filter/f").status).To(Equal(200))
	})

	It("does not apply to a service that is exempt, whose tags are something else", func() {
		a := startAPI(checked)
		a.given("/service", "Service_Name=shop&fqdn=*&tags=one&Exempt_filters=f,g")
		Expect(a.get("/service/shop").body).To(ContainSubstring(`"exempt_filters":["f","g"],"tags":["one"]`))
		Expect(a.get("/config").body).To(ContainSubstring("exempt_filters:\n  - f\n  - g\n"))
		got := a.patch("/service/shop", "Exempt_filters=a/b")
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(ContainSubstring(`{"field":"Exempt_filters","message":`))
	})

	It("cannot have a type that makes no sense there, or clash with another", func() {
		a := startAPI(checked)
		a.given("/proxy", "Name=gw", "/filter", `Filter_name=f&Filter_type=route_filter_redirect&Filter_config={"path":"/a"}`,
			"/filter", `Filter_name=one&Filter_type=vh_filter_cors&Filter_config={"origins":["https://a.test"]}`,
			"/filter", `Filter_name=two&Filter_type=vh_filter_cors&Filter_config={"origins":["https://b.test"]}`, "/proxy/gw/filter/one", "")
		got := a.post("/proxy/gw/filter/f", "")
		Expect(got.status).To(Equal(422))
		Expect(got.body).To(ContainSubstring(`a filter of type \"route_filter_redirect\" cannot be attached to a proxy: it answers requests in place of the services`))
		got = a.post("/proxy/gw/filter/two", "")
		Expect(got.status).To(Equal(422))
		Expect(got.body).To(ContainSubstring("of which only one can say which pages may read the answers"))
	})
})
