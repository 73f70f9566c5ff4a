package policies_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func mirror() policy {
	same := func(what, said string, r request) request {
		r.what, r.off, r.on, r.changed, r.both = what, said, said, said, said
		return r
	}
	return policy{
		kind: "route_filter_mirror", silent: true,
		config:  `{"upstream":"green"}`,
		changed: `{"upstream":"green","percent":0.01,"strip_credentials":false}`,
		says:    from,
		requests: []request{
			same("a plain one", "200 blue", request{}),
			same("a route without upstreams", "503", request{path: "/empty"}),
			same("a redirect", "301", request{host: "moved.test"}),
			same("a path that no route has", "404", request{path: "/nowhere"}),
		},
		refusals: []refusal{
			{`{}`, "Filter_config.upstream", "is required"},
			{`{"upstream":"green","percent":0}`, "Filter_config.percent", "0 is not between 0.01 and 100"},
			{`{"upstream":"green","percent":101}`, "Filter_config.percent", "101 is not between 0.01 and 100"},
			{`{"upstream":"green","percent":"all"}`, "Filter_config.percent", "must be a number, not a string"},
		},
	}
}

var _ = Describe("A mirror", func() {
	It("receives copies without credentials, and its answers reach nobody", func() {
		w := newWorld(mirror())
		seen := make(chan *http.Request, 100)
		w.green.Watch(seen)
		w.attach(onRoute)
		secret := request{header: []string{"Authorization: Basic YTpi", "Cookie: a=b", "Proxy-Authorization: c", "X-Team: shop"}}
		a := w.send(secret)
		Expect(from(a)).To(Equal("200 blue"))
		Expect(a.seen).To(HaveKeyWithValue("Authorization", []string{"Basic YTpi"}))
		Expect(a.seen).To(HaveKeyWithValue("Cookie", []string{"a=b"}))
		var copied *http.Request
		Eventually(seen).Should(Receive(&copied))
		Expect(copied.Host).To(Equal("shop.test-shadow"))
		Expect(copied.Header).To(HaveKeyWithValue("X-Team", []string{"shop"}))
		for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization"} {
			Expect(copied.Header).NotTo(HaveKey(name))
		}

		By("answering 500, then slowly, then not at all")
		w.green.FailNext(1)
		Expect(from(w.send(secret))).To(Equal("200 blue"))
		Eventually(seen).Should(Receive())
		began := time.Now()
		Expect(from(w.send(request{path: "/shop?delay=1ms"}))).To(Equal("200 blue"))
		Expect(time.Since(began)).To(BeNumerically("<", 30*time.Second))
		w.green.Close()
		for range 20 {
			Expect(from(w.send(secret))).To(Equal("200 blue"))
		}

		By("keeping the credentials")
		w.configure(`{"upstream":"blue","strip_credentials":false}`)
		Expect(from(w.send(secret))).To(Equal("200 blue"))
	})

	It("is one of several, and each of them receives copies", func() {
		w := newWorld(mirror())
		seen := make(chan *http.Request, 100)
		w.post("/filter", "Filter_name=own", "Filter_type=route_filter_mirror", `Filter_config={"upstream":"green","strip_credentials":false}`)
		w.attach(onRoute, "/service/shop/route/root/filter/own")
		w.green.Watch(seen)
		Expect(from(w.send(request{header: []string{"Cookie: a=b"}}))).To(Equal("200 blue"))
		var first, second *http.Request
		Eventually(seen).Should(Receive(&first))
		Eventually(seen).Should(Receive(&second))
		Expect([]string{first.Header.Get("Cookie"), second.Header.Get("Cookie")}).To(ConsistOf("", "a=b"))
	})

	It("that does not answer, or does not read, delays nobody", func() {
		w := newWorld(mirror())
		const requests = 20
		got, release := make(chan string, 2*requests), make(chan struct{})
		slow := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			got <- r.Method // and reads no body
			<-release
		}))
		DeferCleanup(slow.Close)
		DeferCleanup(func() { close(release) })
		_, port, err := net.SplitHostPort(slow.Listener.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		w.post("/upstream", "Upstream_name=slow", "Upstream_ip=127.0.0.1", "Upstream_port="+port)
		w.configure(`{"upstream":"slow"}`)
		w.attach(onRoute)
		for range requests {
			Expect(from(w.send(request{}))).To(Equal("200 blue"))
			Expect(from(w.send(request{method: "POST", body: strings.Repeat("a", 2<<20)}))).To(Equal("200 blue"))
		}
		for range requests { // all of them wait
			Eventually(got).Should(Receive())
		}
	})

	It("prevents the deletion of its upstream", func() {
		w := newWorld(mirror())
		a, err := w.api.Delete(limit(), "/upstream/green")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusConflict), a.Body)
	})
})
