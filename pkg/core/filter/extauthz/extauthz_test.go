package extauthz_test

import (
	"net/http"
	"testing"
	"time"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/extauthz"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

func TestExtAuthz(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "extauthz")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-extauthz shows the messages.
var _ = Describe("An authorization server", func() {
	server := func(s extauthz.Server) ir.Filters { return ir.Filters{"extAuthz": &s} }
	// says are what the filters that are on say of a POST to /a, by name.
	says := func(ofHost, ofRoute ir.Filters) map[string]string {
		GinkgoHelper()
		list := map[string]string{}
		describe := func(f seam.Filter, name string) {
			r, err := filtertest.Request(f, ofHost, ofRoute, http.MethodPost)
			Expect(err).NotTo(HaveOccurred())
			r.Path, r.On = "/a", &hcmv3.HttpFilter{Name: name, Disabled: true}
			if seam.IsOff(r.On, r.VirtualHost, r.Route) {
				return
			}
			text, err := f.Describe(r)
			Expect(err).NotTo(HaveOccurred())
			list[name] = text
		}
		describe(extauthz.Spoofed(), "envoy.filters.http.header_mutation/in/authz")
		describe(extauthz.Filter(), "envoy.filters.http.ext_authz")
		describe(extauthz.Filter(), "envoy.filters.http.ext_authz/allow")
		return list
	}

	It("is named, with the call that it gets and what happens while it is unavailable", func() {
		Expect(says(server(extauthz.Server{
			Cluster: "auth/1", PathPrefix: "/authz", UpstreamHeaders: []string{"x-role", "x-user"}, Timeout: time.Second,
		}), nil)).To(Equal(map[string]string{
			"envoy.filters.http.ext_authz": "calls cluster auth for POST /authz/a, for at most 1s, " +
				"and returns its answer unless it allows the request; 503 if it is unavailable",
			"envoy.filters.http.header_mutation/in/authz": "removes headers that clients may not set where " +
				"an authorization server is called: x-role, x-user",
		}))
	})

	It("of a route replaces that of its service", func() {
		Expect(says(server(extauthz.Server{Cluster: "auth", Path: "/check", Timeout: time.Second}), server(extauthz.Server{
			Cluster: "other", GRPC: true, BodyBytes: 10, Timeout: time.Minute, Allow: true,
		}))).To(Equal(map[string]string{
			"envoy.filters.http.ext_authz/allow": "calls cluster other by gRPC, for at most 1m0s, and returns its answer " +
				"unless it allows the request; it allows the request if it is unavailable; 413 for a body over 10 bytes",
			"envoy.filters.http.header_mutation/in/authz": "removes headers that clients may not set where " +
				"an authorization server is called: x-forwarded-uri, x-forwarded-method",
		}))
	})

	It("is not asked about a public route", func() {
		messages, err := extauthz.Filter().Route(&ir.Route{Public: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(messages).To(HaveLen(2), "both filters are off")
	})
})
