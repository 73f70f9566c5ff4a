package e2e_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// odd is a backend whose requests at / are handled by the spec, with their number since the last reset.
type odd struct {
	requests atomic.Int64
	handle   func(n int64, w http.ResponseWriter, r *http.Request)
}

// shopWith returns a gateway with a route / of this configuration to the backend, for shop.example.
func (o *odd) shopWith(config string) gateway {
	GinkgoHelper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(testkit.BackendHeader, "odd")
		if r.URL.Path != "/live" {
			o.handle(o.requests.Add(1), w, r)
		}
	}))
	DeferCleanup(server.Close)
	at, err := url.Parse(server.URL)
	Expect(err).NotTo(HaveOccurred())
	_, gw := standalone()
	post(gw.api, "/upstream", "Upstream_name=odd", "Upstream_ip="+at.Hostname(), "Upstream_port="+at.Port())
	post(gw.api, "/service", "Service_Name=shop", "fqdn=shop.example")
	addRoute(gw.api, "shop", "root", "/", config, "odd")
	addProxy(gw.api, "gw", gw.port, "shop")
	gw.expect("shop.example", "/live", "odd")
	return gw
}

var _ = Describe("retries.methods", Ordered, func() {
	var gw gateway
	cut := &odd{handle: func(_ int64, w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			_ = conn.Close()
		}
	}}

	BeforeAll(func() { gw = cut.shopWith("") })

	DescribeTable("are those of the requests that are retried after the upstream has received them",
		func(config string, attempts map[string]int) {
			a, err := gw.api.Do(limit(), http.MethodPatch, "/service/shop/route/root?wait=applied&timeout=20s", "application/json", `{"Route_config":`+config+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			for method, want := range attempts {
				cut.requests.Store(0)
				r, err := gw.send(method, "shop.example", "/")
				Expect(err).NotTo(HaveOccurred())
				Expect(r.Status).To(Equal(http.StatusServiceUnavailable))
				Expect(cut.requests.Load()).To(BeEquivalentTo(want), method)
			}
		},
		Entry("no methods by default", `{}`, map[string]int{"GET": 1, "POST": 1}),
		Entry("no methods if only a number is set", `{"retries":{"attempts":2}}`, map[string]int{"GET": 1, "POST": 1}),
		Entry("idempotent methods", `{"retries":{"attempts":2,"methods":["GET","PUT"]}}`, map[string]int{"GET": 3, "PUT": 3, "POST": 1, "DELETE": 1}),
		Entry("those of the route", `{"methods":["GET","PUT"],"retries":{"attempts":2}}`, map[string]int{"GET": 3, "PUT": 3}),
		Entry("no POST that is only named", `{"retries":{"attempts":2,"methods":["POST"]}}`, map[string]int{"POST": 1, "GET": 1}),
		Entry("a POST that is named with a condition", `{"retries":{"attempts":2,"methods":["POST"],"on":["reset"]}}`, map[string]int{"POST": 3, "GET": 1}),
		Entry("all with a condition and no methods", `{"retries":{"attempts":2,"on":["reset"]}}`, map[string]int{"POST": 3, "GET": 3}),
	)
})

var _ = Describe("retries.hedge", func() {
	// hedging sends a request of a method to a route that hedges GET, and returns the answer.
	hedging := func(config, method string, handle func(n int64, w http.ResponseWriter, r *http.Request)) (reply, *odd) {
		GinkgoHelper()
		slow := &odd{handle: handle}
		gw := slow.shopWith(config)
		r, err := gw.send(method, "shop.example", "/")
		Expect(err).NotTo(HaveOccurred())
		return r, slow
	}
	answer := func(w http.ResponseWriter, n int64) { w.Header().Set("X-Attempt", strconv.FormatInt(n, 10)) }
	const config = `{"methods":["GET","HEAD"],"retries":{"attempts":1,"per_try":"200ms","hedge":true}}`

	It("sends a second request in parallel, and uses its answer if it arrives first", func() {
		firstGone := make(chan struct{})
		r, slow := hedging(config, http.MethodGet, func(n int64, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				<-r.Context().Done() // the gateway cancels it when it has the other answer
				close(firstGone)
				return
			}
			Expect(firstGone).NotTo(BeClosed())
			answer(w, n)
		})
		Expect(r.Status).To(Equal(http.StatusOK))
		Expect(r.Header.Get("X-Attempt")).To(Equal("2"))
		Eventually(firstGone).Should(BeClosed())
		Expect(slow.requests.Load()).To(BeEquivalentTo(2))
	})

	It("takes the first answer if it comes first, and ends the second request", func() {
		second, secondGone := make(chan struct{}), make(chan struct{})
		r, slow := hedging(config, http.MethodGet, func(n int64, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				select {
				case <-second:
				case <-r.Context().Done():
				}
				answer(w, n)
				return
			}
			close(second)
			<-r.Context().Done()
			close(secondGone)
		})
		Expect(r.Status).To(Equal(http.StatusOK))
		Expect(r.Header.Get("X-Attempt")).To(Equal("1"))
		Eventually(secondGone).Should(BeClosed())
		Expect(slow.requests.Load()).To(BeEquivalentTo(2))
	})

	It("ends the first request without it", func() {
		firstGone := make(chan struct{})
		r, _ := hedging(`{"methods":["GET"],"retries":{"attempts":1,"per_try":"1s","on":["reset"]}}`, http.MethodGet, func(n int64, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				<-r.Context().Done()
				close(firstGone)
				return
			}
			select {
			case <-firstGone:
			case <-r.Context().Done():
			}
			answer(w, n)
		})
		Expect(r.Header.Get("X-Attempt")).To(Equal("2"))
	})

	It("is refused if Envoy would send a POST twice, which it does whatever retries.methods are", func() {
		_, gw, _ := shop()
		a, err := gw.api.Do(limit(), http.MethodPatch, "/service/shop/route/root", "application/json",
			`{"Route_config":{"retries":{"attempts":1,"per_try":"200ms","hedge":true,"methods":["GET"]}}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusBadRequest), a.Body)
		Expect(a.Body).To(ContainSubstring("set methods of the route"))
	})
})
