package rest_test

import (
	"context"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

var _ = Describe("Explain under a draft", func() {
	at := "/proxy/gw/explain?url=" + url.QueryEscape("http://shop.test/cart")
	const (
		yaml  = "application/yaml"
		draft = `version: 1
filters: [{filter_name: staff, filter_type: vh_filter_rbac, filter_config: {allow: [{}]}}]
services: [{service_name: shop, fqdn: shop.test, routes: [{route_name: root, route_prefix: /, filters: [staff]}]}]
`
	)
	// drafting answers that a filter refuses the request, and keeps what was changed.
	drafting := func(changed *[]string) func(*rest.Options) {
		return func(o *rest.Options) {
			o.Live.Drafts = func(context.Context) (inspect.Draft, error) {
				return func(proxy string, changes []model.Entry, r explain.Request) (inspect.Explained, error) {
					Expect(proxy).To(Equal("gw"))
					Expect(r.Target).To(Equal("/cart"))
					for _, c := range changes {
						*changed = append(*changed, c.Key.Path())
					}
					return inspect.Explained{Draft: true, Answer: explain.Answer{
						Code: "access_refused", Status: 403, Service: "shop", Route: "root", FilterType: model.FilterRBAC, Message: "a vh_filter_rbac does not allow it",
						Steps: []explain.Step{}, Hosts: []explain.Host{}, Routes: []explain.Route{}, Filters: []explain.Filter{},
					}}, nil
				}, nil
			}
		}
	}
	given := func(a *api) {
		a.given("/proxy", "Name=gw", "/service", "Service_Name=shop&fqdn=shop.test", "/proxy/gw/service/shop", "")
	}

	It("explains with what the document would change, names its objects, and stores nothing", func() {
		var changed []string
		a := startAPI(open, drafting(&changed))
		given(a)
		before, lists := a.revision(), a.everyList()
		got := a.do("POST", at, yaml, strings.NewReader(draft))
		Expect(got.status).To(Equal(200), got.body)
		Expect(got.body).To(HavePrefix(`{"data":{"core_db_explain":[{"basis":"draft","envoys":[],"code":"access_refused","message":"vh_filter_rbac staff does not allow it"`))
		Expect(got.body).To(ContainSubstring(`"refused_by":["/filter/staff"]`))
		Expect(changed).To(ConsistOf("/filter/staff", "/service/shop/route/root", "/service/shop/route/root/filter/staff"))
		a.expectNothingStored(before, lists)
	})

	It("is from nothing without Envoys", func() {
		a := startAPI(open)
		given(a)
		got := a.do("POST", at, "application/json", strings.NewReader(`{"version": 1}`))
		Expect(got.body).To(HavePrefix(`{"data":{"core_db_explain":[{"basis":"draft","envoys":[],"code":"no_listener"`), got.body)
	})

	DescribeTable("refuses what a dry run of the document refuses, and asks nothing then",
		func(path, contentType, body string, status int, want string) {
			var changed []string
			a := startAPI(open, checked, drafting(&changed))
			given(a)
			before, lists := a.revision(), a.everyList()
			got := a.do("POST", path, contentType, strings.NewReader(body))
			Expect(got.status).To(Equal(status), got.body)
			Expect(got.body).To(ContainSubstring(want))
			Expect(changed).To(BeEmpty())
			a.expectNothingStored(before, lists)
		},
		Entry("no request", "/proxy/gw/explain", yaml, draft, 400, "is missing: give the URL"),
		Entry("an unknown parameter", at+"&prune=true", yaml, draft, 400, "prune"),
		Entry("a proxy that does not exist", "/proxy/other/explain?url=http://shop.test/", yaml, draft, 404, "/proxy/other"),
		Entry("no document", at, yaml, "", 400, "it is empty"),
		Entry("an error in a line", at, yaml, "version: 1\nupstreams: [{upstream_name: blue, upstream_ip: nowhere:1, upstream_port: 80}]\n", 400, "line 2"),
		Entry("another type", at, "text/plain", draft, 415, "text/plain"),
		Entry("too large", at, yaml, strings.Repeat("#", 16<<20+1), 413, "16 MiB"),
		Entry("what cannot work", at, yaml, "version: 1\nfilters: [{filter_name: a, filter_type: route_filter_directresponse, filter_config: {status: 410}}, {filter_name: b, filter_type: route_filter_directresponse, filter_config: {status: 411}}]\n"+
			"services: [{service_name: shop, fqdn: shop.test, filters: [a, b]}]\n", 422, "of which only one can answer"),
	)

	It("refuses what others have changed meanwhile", func() {
		var changed []string
		a := startAPI(open, drafting(&changed))
		given(a)
		document := strings.Replace(a.do("GET", "/config", "", nil, "Accept", yaml).body, "fqdn: shop.test", "fqdn: x.test", 1)
		Expect(a.patch("/service/shop", "fqdn=y.test").status).To(Equal(200))
		got := a.do("POST", at, yaml, strings.NewReader(document))
		Expect(got.status).To(Equal(409), got.body)
		Expect(got.body).To(ContainSubstring(`{"field":"/service/shop","message":"changed in revision 4 by local: PATCH /service/shop"}`))
		Expect(changed).To(BeEmpty())
	})

	It("is for who may apply the document", func() {
		var changed []string
		a := startAPIThatFails(guarded, drafting(&changed))
		viewer := a.makeToken(adminToken, "ann", "viewer")
		Expect(a.send("PUT", "/proxy/gw", adminToken, "").status).To(Equal(201))
		got := a.send("POST", at, viewer, "version: 1\n", "Content-Type", yaml)
		Expect(got.status).To(Equal(403), got.body)
		editor := a.makeEditor("a", "")
		got = a.send("POST", at, editor, "version: 1\nupstreams: [{upstream_name: b, upstream_ip: 10.0.0.1, upstream_port: 80, tags: [b]}]\n", "Content-Type", yaml)
		Expect(got.status).To(Equal(403), got.body)
		Expect(changed).To(BeEmpty())
		got = a.send("POST", at, editor, "version: 1\nupstreams: [{upstream_name: a, upstream_ip: 10.0.0.1, upstream_port: 80, tags: [a]}]\n", "Content-Type", yaml)
		Expect(got.status).To(Equal(200), got.body)
		Expect(changed).To(ConsistOf("/upstream/a"))
	})
})
