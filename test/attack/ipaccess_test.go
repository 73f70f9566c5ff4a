package attack_test

import (
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// addressTry are headers of a client that falsely claims the address 192.0.2.1.
type addressTry struct {
	headers []string
	status  int
}

func addressTries() []addressTry {
	return []addressTry{
		{nil, 403},
		{[]string{"X-Forwarded-For: 192.0.2.1"}, 403},
		{[]string{"X-Forwarded-For: 192.0.2.1, 192.0.2.1"}, 403},
		{[]string{"X-Forwarded-For: 192.0.2.1", "X-Forwarded-For: 192.0.2.1"}, 403},
		{[]string{"X-Forwarded-For: 192.0.2.1:80"}, 403},
		{[]string{"X-Forwarded-For: ::ffff:192.0.2.1"}, 403},
		{[]string{"X-Forwarded-For: 192.0.2.1", "Connection: X-Forwarded-For"}, 400}, // CVE-2024-45410
		{[]string{"X_Forwarded_For: 192.0.2.1"}, 400},                                // GHSA-5m6w-wvh7-57vm
		{[]string{"X-Forwarded-Prefix: /", "X-Forwarded-Host: 192.0.2.1"}, 403},      // GHSA-6384-m2mw-rf54
		{[]string{"X-Envoy-External-Address: 192.0.2.1", "X-Envoy-Internal: true"}, 403},
		{[]string{"X-Real-Ip: 192.0.2.1"}, 403},
		{[]string{"True-Client-Ip: 192.0.2.1", "Cf-Connecting-Ip: 192.0.2.1", "X-Cluster-Client-Ip: 192.0.2.1"}, 403},
		{[]string{"Forwarded: for=192.0.2.1"}, 403},
		{[]string{"X-Original-Url: /open", "X-Envoy-Original-Path: /open"}, 403}, // CVE-2023-27487
	}
}

var _ = Describe("A list of addresses", func() {
	BeforeEach(func(ctx SpecContext) {
		gw.add(ctx, "/filter", "Filter_name=office", "Filter_type=vh_filter_ipaccess", `Filter_config={"allow":["192.0.2.1"]}`)
		gw.addService(ctx, "office", "office.test")
		gw.add(ctx, "/service/office/route", "Route_Name=admin", "Route_prefix=/admin", `Route_config={"match":"segment"}`)
		gw.link(ctx, "/service/office/route/admin/upstream/blue")
		gw.link(ctx, "/service/office/route/admin/filter/office")
		gw.link(ctx, "/proxy/gw/service/office?wait=applied")
	}, NodeTimeout(time.Minute))

	It("applies to the address of the connection, whatever a client claims", func(ctx SpecContext) {
		before := gw.blue.Requests()
		for _, t := range addressTries() {
			Expect(gw.raw(ctx, append([]string{"GET /admin HTTP/1.1", "Host: office.test"}, t.headers...)...).Status).To(Equal(t.status), "%q", t.headers)
		}
		Expect(gw.raw(ctx, "PROXY TCP4 192.0.2.1 127.0.0.1 80 80\r\nGET /admin HTTP/1.1", "Host: office.test").Status).To(Equal(http.StatusBadRequest))
		Expect(gw.blue.Requests()).To(Equal(before))
	}, SpecTimeout(time.Minute))

	It("applies to its path, however that is written", func(ctx SpecContext) {
		before := gw.blue.Requests()
		for _, try := range some(30, pathTries()) {
			if try.want == guarded {
				Expect(gw.raw(ctx, "GET "+try.target+" HTTP/1.1", "Host: office.test").Status).To(Equal(http.StatusForbidden), try.target)
			}
		}
		Expect(gw.blue.Requests()).To(Equal(before))
	}, SpecTimeout(time.Minute))
})
