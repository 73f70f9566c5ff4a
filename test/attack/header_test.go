package attack_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// madeUp is the value that a client gives a header; own stands for one that the gateway
// sets itself.
const (
	madeUp = "made-up"
	own    = "own"
)

// headerTry is a header that a client sends, and its value at the upstream with no
// trusted hops and with one; "" means none.
type headerTry struct{ name, direct, behind string }

// headerTries returns headers that a backend, or Envoy itself, might trust.
func headerTries() []headerTry {
	list := []headerTry{
		{"X-Envoy-Attempt-Count", "", ""},
		{"X-Envoy-Immediate-Health-Check-Fail", "", ""},
		{"X-Forwarded-Host", "", madeUp},
		{"X-Envoy-External-Address", own, own},
		{"X-Envoy-Upstream-Rq-Timeout-Ms", "", ""},
		{"X-Envoy-Retry-On", "", ""},
		{"X-Forwarded-Port", "", madeUp},
		{"X-Forwarded-Prefix", "", madeUp},
		{"X-Forwarded-Server", "", madeUp},
		{"X-Forwarded-Scheme", "", madeUp},
		{"X-Forwarded-Ssl", "", madeUp},
		{"Forwarded", "", madeUp},
		{"X-Real-Ip", "", madeUp},
		{"X-Forwarded-Client-Cert", "", ""},
		{"X-Request-Id", own, own},
		// Headers that are passed on, and what docs/routing.md says about them.
		{"X-Original-Url", madeUp, madeUp},
		{"X-Rewrite-Url", madeUp, madeUp},
		{"X-Http-Method-Override", madeUp, madeUp},
		{"True-Client-Ip", madeUp, madeUp},
		{"X-Client-Trace-Id", madeUp, madeUp},
		{"Via", madeUp, madeUp},
		{"Traceparent", madeUp, madeUp},
		{"Xenvoy-Nothing", madeUp, madeUp},
	}
	for _, name := range []string{
		"Auth-Partial-Body", "Cluster", "Decorator-Operation", "Degraded", "Downstream-Service-Cluster", "Downstream-Service-Node", "Dynamic-X",
		"Expected-Rq-Timeout-Ms", "Fault-Abort-Request", "Fault-Delay-Request", "Force-Trace", "Hedge-On-Per-Try-Timeout", "Hostname", "Internal",
		"Ip-Tags", "Is-Timeout-Retry", "Local-Overloaded", "Max-Retries", "Nothing-Known", "Original-Dst-Host", "Original-Host", "Original-Method",
		"Original-Path", "Original-Url", "Overloaded", "Peer-Metadata", "Peer-Metadata-Id", "Protocol-Version", "Ratelimited", "Retriable-Header-Names",
		"Retriable-Status-Codes", "Retry-Grpc-On", "Upstream-Alt-Stat-Name", "Upstream-Canary", "Upstream-Healthchecked-Cluster",
		"Upstream-Rq-Per-Try-Timeout-Ms", "Upstream-Rq-Timeout-Alt-Response", "Upstream-Service-Time", "Upstream-Stream-Duration-Ms",
	} {
		list = append(list, headerTry{"X-Envoy-" + name, "", ""})
	}
	return list
}

// seen describes the values of a header in the words of the table.
func seen(values []string) string {
	switch {
	case len(values) == 0:
		return ""
	case slices.Equal(values, []string{madeUp}):
		return madeUp
	case slices.ContainsFunc(values, func(v string) bool { return strings.Contains(v, madeUp) }):
		return strings.Join(values, " and ")
	}
	return own
}

var _ = Describe("A header that only a gateway should set", func() {
	arrives := func(ctx context.Context, t target, behind bool) {
		GinkgoHelper()
		for _, h := range some(12, headerTries()) {
			var echo testkit.Echo
			a := t.raw(ctx, "GET / HTTP/1.1", "Host: shop.example", h.name+": "+madeUp)
			Expect(a.Status).To(Equal(http.StatusOK), h.name)
			Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed())
			want := h.direct
			if behind {
				want = h.behind
			}
			Expect(seen(echo.Headers[h.name])).To(Equal(want), h.name)

			a = t.raw2(ctx, ":method: GET", ":scheme: http", ":path: /", ":authority: shop.example", strings.ToLower(h.name)+": "+madeUp)
			Expect(a.Status).To(Equal(http.StatusOK), h.name)
			Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed())
			Expect(seen(echo.Headers[h.name])).To(Equal(want), h.name+" in HTTP/2")
		}
	}

	It("is not taken from a client", func(ctx SpecContext) {
		arrives(ctx, gw, false)
	}, SpecTimeout(2*time.Minute))

	It("is accepted from a trusted proxy if that one is responsible for it", func(ctx SpecContext) {
		arrives(ctx, startTarget(ctx, "--trusted-hops", "1"), true)
	}, SpecTimeout(2*time.Minute))

	It("does not select a route", func(ctx SpecContext) {
		gw.add(ctx, "/service", "Service_Name=conditional", "fqdn=conditional.test")
		gw.add(ctx, "/service/conditional/route", "Route_Name=root", "Route_prefix=/", `Route_config={"headers":[{"name":"x-envoy-attempt-count"}]}`)
		gw.link(ctx, "/service/conditional/route/root/upstream/blue")
		gw.link(ctx, "/proxy/gw/service/conditional?wait=applied")
		Expect(gw.raw(ctx, "GET / HTTP/1.1", "Host: conditional.test", "X-Envoy-Attempt-Count: 1").Status).To(Equal(http.StatusNotFound))
	}, SpecTimeout(time.Minute))

	// A proxy in front that is an Envoy would take the gateway out of rotation.
	It("is not passed on from an upstream if it marks whoever answers as unhealthy", func(ctx SpecContext) {
		sick := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Envoy-Immediate-Health-Check-Fail", "true")
			w.Header().Set("X-Kept", "1")
		}))
		DeferCleanup(sick.Close)
		at, err := url.Parse(sick.URL)
		Expect(err).NotTo(HaveOccurred())
		gw.add(ctx, "/upstream", "Upstream_name=sick", "Upstream_ip="+at.Hostname(), "Upstream_port="+at.Port())
		gw.add(ctx, "/service", "Service_Name=sick", "fqdn=sick.test")
		gw.add(ctx, "/service/sick/route", "Route_Name=root", "Route_prefix=/")
		gw.link(ctx, "/service/sick/route/root/upstream/sick")
		gw.link(ctx, "/proxy/gw/service/sick?wait=applied")
		a := gw.raw(ctx, "GET / HTTP/1.1", "Host: sick.test")
		Expect(a.Status).To(Equal(http.StatusOK))
		Expect(a.Header).To(HaveKeyWithValue("X-Kept", []string{"1"}))
		Expect(a.Header).NotTo(HaveKey("X-Envoy-Immediate-Health-Check-Fail"))
	}, SpecTimeout(time.Minute))
})
