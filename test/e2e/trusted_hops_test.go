package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// inFront runs a load balancer in front of a port. It adds the address of its client to
// X-Forwarded-For.
func inFront(gw gateway) gateway {
	GinkgoHelper()
	target := &url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", gw.port)}
	balancer := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Host = r.In.Host
			r.Out.Header["X-Forwarded-For"] = r.In.Header["X-Forwarded-For"]
			r.SetXForwarded()
		},
		Transport: &http.Transport{DisableKeepAlives: true},
	})
	DeferCleanup(balancer.Close)
	at, err := url.Parse(balancer.URL)
	Expect(err).NotTo(HaveOccurred())
	port, err := strconv.Atoi(at.Port())
	Expect(err).NotTo(HaveOccurred())
	return gateway{gw.api, port}
}

// trust sets the number of proxies in front of the gateway, and returns when it is in
// effect: about once in a thousand times, a worker of Envoy accepts one more connection
// with the old setting after Envoy has acknowledged the listener.
func (g gateway) trust(hops int) {
	GinkgoHelper()
	a, err := g.api.Do(limit(), http.MethodPatch, "/proxy/gw?wait=applied", "application/json", fmt.Sprintf(`{"trusted_hops":%d}`, hops))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	const enough = 8
	asked := 0
	Eventually(func() (right int) {
		for ; right < enough; right++ {
			asked++ // another client each time, within its limit
			want := fmt.Sprintf("198.51.100.%d", asked%250)
			way := "X-Forwarded-For: " + want + strings.Repeat(", 203.0.113.1", max(hops-1, 0))
			if hops == 0 {
				want = "127.0.0.1"
			}
			if g.client(way) != want {
				break
			}
		}
		return right
	}).WithTimeout(10 * time.Second).Should(Equal(enough))
}

// client returns the client address that the backend receives, for a request on its own
// connection.
func (g gateway) client(header ...string) string {
	GinkgoHelper()
	return g.get("shop.example", "/", header...).Echo.Headers.Get("X-Envoy-External-Address")
}

var _ = Describe("A gateway behind proxies", func() {
	// limited runs a gateway whose clients may send 3 requests each.
	limited := func(args ...string) gateway {
		_, gw, _ := shop(args...)
		post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", "config="+rates(3))
		post(gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit", `Filter_config={"descriptors":[{"remote_address":"client"}]}`)
		post(gw.api, "/service/shop/filter/limit?wait=applied")
		return gw
	}
	// each sends 6 requests, each with another fake address, from an address of this
	// machine, and counts the answers.
	each := func(g gateway, from string, forwarded string) map[int]int {
		GinkgoHelper()
		seen := map[int]int{}
		for i := range 6 {
			value := ""
			if forwarded != "" {
				value = fmt.Sprintf(forwarded, i)
			}
			a, err := sendFrom(g, from, http.MethodGet, "/", "X-Forwarded-For", value)
			Expect(err).NotTo(HaveOccurred())
			seen[a.StatusCode]++
		}
		return seen
	}
	half, none := map[int]int{200: 3, 429: 3}, map[int]int{429: 6}

	It("counts each client separately, whatever it makes up", func() {
		gw := limited()
		balancer := inFront(gw)
		gw.trust(1)
		Expect(each(balancer, "127.0.0.2", "")).To(Equal(half), "an honest client")
		Expect(each(balancer, "127.0.0.3", "10.0.0.%d")).To(Equal(half), "a client that makes up an address")
		Expect(each(balancer, "127.0.0.4", "10.0.0.%d, 127.0.0.2")).To(Equal(half), "a client that makes up a way")
		Expect(each(balancer, "127.0.0.5", "10.0.0.%d, nonsense,")).To(Equal(half), "a client that makes up no address")
		Expect(each(balancer, "127.0.0.2", "")).To(Equal(none), "the first again")
	})

	It("counts the client behind two of them", func() {
		gw := limited()
		balancer := inFront(inFront(gw))
		gw.trust(2)
		Expect(each(balancer, "127.0.0.2", "")).To(Equal(half))
		Expect(each(balancer, "127.0.0.3", "10.0.0.%d")).To(Equal(half))
	})

	It("counts all as one client if they are not declared", func() {
		balancer := inFront(limited())
		Expect(each(balancer, "127.0.0.2", "")).To(Equal(half))
		Expect(each(balancer, "127.0.0.3", "")).To(Equal(none))
	})

	It("lets a client make up its address if one too many is declared, as the documentation warns", func() {
		gw := limited()
		gw.trust(1)
		Expect(each(gw, "127.0.0.2", "10.0.0.%d")).To(Equal(map[int]int{200: 6}))
	})

	It("sets the number of a standalone gateway with --trusted-hops", func() {
		gw := limited("--trusted-hops", "1")
		Expect(read(gw.api, "/proxy/gw")).To(ContainSubstring(`"trusted_hops":1,`))
		balancer := inFront(gw)
		Expect(each(balancer, "127.0.0.2", "10.0.0.%d")).To(Equal(half))
		Expect(each(balancer, "127.0.0.3", "10.0.0.%d")).To(Equal(half))
	})

	It("changes the number without losing a request", func() {
		_, gw, _ := shop("--access-log", "off")
		traffic, stop := gw.traffic("shop.example", 1000)
		const forwarded = "X-Forwarded-For: 192.0.2.1, 192.0.2.2"
		for range 5 {
			for hops, want := range []string{"127.0.0.1", "192.0.2.2", "192.0.2.1", "127.0.0.1"} {
				gw.trust(hops)
				Expect(gw.client(forwarded)).To(Equal(want), "%d hops", hops)
			}
			Expect(served(traffic, "blue")).To(Equal("only blue"))
		}
		stop()
	})

	DescribeTable("applies the new number to an open connection after one more request", func(http2 bool) {
		_, gw, _ := shop()
		kept := newKeptClient(http2)
		Expect(kept.ask(gw.port)).To(Equal("127.0.0.1"))
		first := kept.opened
		gw.trust(1)
		Expect(kept.ask(gw.port)).To(Equal("127.0.0.1"), "the connection has what it began with")
		Expect(kept.opened).To(Equal(first))
		Expect(kept.ask(gw.port)).To(Equal("192.0.2.2"))
		Expect(kept.opened).To(Equal(first+1), "it was ended with the last answer")
	},
		Entry("of HTTP/1.1", false),
		Entry("of HTTP/2", true),
	)
})

// keptClient keeps its connection as long as the gateway does.
type keptClient struct {
	transport http.Transport
	// opened counts its connections.
	opened int
}

func newKeptClient(http2 bool) *keptClient {
	c := &keptClient{}
	c.transport.Protocols = &http.Protocols{}
	c.transport.Protocols.SetHTTP1(!http2)
	c.transport.Protocols.SetUnencryptedHTTP2(http2)
	c.transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c.opened++
		return (&net.Dialer{}).DialContext(ctx, network, addr)
	}
	DeferCleanup(c.transport.CloseIdleConnections)
	return c
}

// ask returns the client address that the backend receives.
func (c *keptClient) ask(port int) string {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(limit(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/", port), http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	req.Host = "shop.example"
	req.Header.Set("X-Forwarded-For", "192.0.2.2")
	resp, err := c.transport.RoundTrip(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	var echo testkit.Echo
	Expect(json.NewDecoder(resp.Body).Decode(&echo)).To(Succeed())
	_, err = io.Copy(io.Discard, resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return echo.Headers.Get("X-Envoy-External-Address")
}
