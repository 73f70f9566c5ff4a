package explain_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("An external server", func() {
	// filters returns the filters that a POST to /a passes, by name.
	filters := func(h ir.Host, r ir.Route) map[string]string {
		GinkgoHelper()
		h.Name, h.Domain = "shop", "*"
		r.Name, r.Match, r.Respond = "root", ir.Match{Path: "/", PathKind: "prefix"}, &ir.Respond{Status: 418}
		encoded := must(snapshot.NewRoute(must(translate.Route(&r))))
		request, errs := explain.NewRequest("POST", "http://h/a?b=c", nil)
		Expect(errs).To(BeEmpty())
		a := must(explain.Explain(state(must(snapshot.NewHost(must(translate.VirtualHost(&h)), []*snapshot.Route{encoded}, snapshot.ObjectRef{}))), request))
		Expect(a.Code).To(Equal("direct_response"))
		list := map[string]string{}
		for _, f := range a.Filters {
			list[f.Name] = f.Message
		}
		delete(list, "envoy.filters.http.router")
		return list
	}
	const authz = "envoy.filters.http.ext_authz"

	It("is named, with the call it gets and what happens to the request while it is unavailable", func() {
		Expect(filters(ir.Host{ExtAuthz: &ir.ExtAuthz{Cluster: "auth", PathPrefix: "/authz", UpstreamHeaders: []string{"x-role", "x-user"}, Timeout: time.Second}}, ir.Route{})).To(Equal(map[string]string{
			authz: "calls cluster auth for POST /authz/a, for at most 1s, and returns its answer unless it allows the request; 503 if it is unavailable",
			"envoy.filters.http.header_mutation/in/authz": "removes headers that clients may not set where an authorization server is called: x-role, x-user",
		}))
		Expect(filters(ir.Host{ExtAuthz: &ir.ExtAuthz{Cluster: "auth", Path: "/check", Timeout: time.Second}}, ir.Route{
			ExtAuthz: &ir.ExtAuthz{Cluster: "other", GRPC: true, BodyBytes: 10, Timeout: time.Minute, Allow: true},
		})).To(Equal(map[string]string{
			"envoy.filters.http.header_mutation/in/authz": "removes headers that clients may not set where an authorization server is called: x-forwarded-uri, x-forwarded-method",
			authz + "/allow": "calls cluster other by gRPC, for at most 1m0s, and returns its answer unless it allows the request; it allows the request if it is unavailable; 413 for a body over 10 bytes",
		}))
		Expect(filters(ir.Host{ExtAuthz: &ir.ExtAuthz{Cluster: "auth", Timeout: time.Second}}, ir.Route{Public: true})).To(BeEmpty())
	})

	It("is a processor, with what it gets", func() {
		Expect(filters(ir.Host{ExtProc: &ir.ExtProc{Cluster: "p", RequestHeaders: true, ResponseBody: "streamed", Allow: true}}, ir.Route{Public: true})).To(Equal(map[string]string{
			"envoy.filters.http.ext_proc": "sends cluster p the headers of the request, the body of the answer, which may change them or answer itself; they pass unchanged if it is unavailable",
		}))
		Expect(filters(ir.Host{}, ir.Route{ExtProc: &ir.ExtProc{Cluster: "p", ResponseHeaders: true, RequestBody: "buffered"}})).To(Equal(map[string]string{
			"envoy.filters.http.ext_proc": "sends cluster p the body of the request, the headers of the answer, which may change them or answer itself; 503 if it is unavailable",
		}))
	})
})
