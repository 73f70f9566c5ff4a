package e2e_test

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/websocket"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Routing", Ordered, func() {
	var gw gateway
	var blue, green, red *testkit.Backend

	BeforeAll(func() {
		_, gw = standalone()
		blue, green, red = backend("blue"), backend("green"), backend("red")
		for _, b := range []*testkit.Backend{blue, green, red} {
			addUpstream(gw.api, b)
		}
		post(gw.api, "/proxy", "Name=gw")
	})

	// attach attaches the service to the proxy; the last one attached is live last.
	attach := func(services ...string) {
		GinkgoHelper()
		for _, s := range services {
			post(gw.api, "/proxy/gw/service/"+s)
		}
	}

	It("answers 404 where the proxy has no service", func() {
		gw.expect("shop.example", "/", "404")
	})

	It("selects the service by host: exact, suffix, any", func() {
		addService(gw.api, "any", "*", "blue")
		addService(gw.api, "suffix", "*.hosts.example", "green")
		addService(gw.api, "exact", "www.hosts.example", "red")
		attach("any", "suffix", "exact")
		gw.expect("www.hosts.example", "/", "red")
		for host, want := range map[string]string{
			"WWW.Hosts.Example":       "red",
			"www.hosts.example:31999": "red",
			"a.hosts.example":         "green",
			"a.b.HOSTS.example:80":    "green",
			"hosts.example":           "blue",
			"else.example":            "blue",
		} {
			Expect(gw.answers(host, "/")).To(Equal(want), host)
		}
		// The other specs check what happens if no service matches.
		remove(gw.api, "/proxy/gw/service/any")
		gw.expect("else.example", "/", "404")
	})

	It("tries the longest prefix first, and of equal ones the first by name, whatever was created first", func() {
		post(gw.api, "/service", "Service_Name=order", "fqdn=order.example")
		addRoute(gw.api, "order", "root", "/", "", "red")
		addRoute(gw.api, "order", "b", "/a/b", "", "blue")
		addRoute(gw.api, "order", "a", "/a", "", "green")
		addRoute(gw.api, "order", "same-z", "/same", "", "green")
		addRoute(gw.api, "order", "same-a", "/same", "", "blue")
		attach("order")
		gw.expect("order.example", "/", "red")
		for target, want := range map[string]string{
			"/a/b/c": "blue", "/a/b": "blue", "/a/c": "green", "/ab": "green", "/b": "red", "/same": "blue",
		} {
			Expect(gw.answers("order.example", target)).To(Equal(want), target)
		}
	})

	It("answers 404 if no route matches and 503 if a route has no upstream", func() {
		post(gw.api, "/service", "Service_Name=gaps", "fqdn=gaps.example")
		addRoute(gw.api, "gaps", "empty", "/empty", "")
		attach("gaps")
		gw.expect("gaps.example", "/empty", "503")
		Expect(gw.get("gaps.example", "/empty").Body).To(Equal("this service is not available\n"))
		Expect(gw.answers("gaps.example", "/")).To(Equal("404"))
	})

	DescribeTable("shares the requests by weight",
		func(name string, upstreams []string, most string, low, high int) {
			addService(gw.api, name, name+".example", upstreams...)
			attach(name)
			gw.expect(name+".example", "/", most)
			const requests = 400
			count := map[string]int{}
			for range requests {
				count[gw.answers(name+".example", "/")]++
			}
			Expect(count[most]).To(And(BeNumerically(">=", low), BeNumerically("<=", high)), "%v", count)
			others := 0
			for _, u := range upstreams {
				others += count[u]
			}
			Expect(others).To(Equal(requests), "%v", count)
		},
		// 300 of 400 within seven standard deviations of a fair draw.
		Entry("3 to 1 with equal settings", "weights", []string{"heavy", "light"}, "heavy", 240, 360),
		Entry("3 to 1 with different settings", "mixed", []string{"heavy2", "light"}, "heavy2", 240, 360),
		Entry("all to none with weight 0", "zero", []string{"heavy", "none"}, "heavy", 400, 400),
	)

	BeforeAll(func() {
		addUpstream(gw.api, backend("heavy"), "Upstream_weight=300")
		addUpstream(gw.api, backend("light"), "Upstream_weight=100")
		addUpstream(gw.api, backend("none"), "Upstream_weight=0")
		addUpstream(gw.api, backendWith("heavy2", testkit.BackendOptions{Protocol: "h2c"}), "Upstream_weight=300", "Upstream_protocol=h2c")
	})

	DescribeTable("reaches an upstream",
		func(name string, o testkit.BackendOptions, proto string, fields ...string) {
			addUpstream(gw.api, backendWith(name, o), fields...)
			addService(gw.api, name, name+".example", name)
			attach(name)
			gw.expect(name+".example", "/", name)
			Expect(gw.get(name+".example", "/").Echo.Proto).To(Equal(proto))
		},
		Entry("over IPv6", "ipv6", testkit.BackendOptions{IP: "::1"}, "HTTP/1.1"),
		Entry("over HTTP/2 in the clear", "h2c", testkit.BackendOptions{Protocol: "h2c"}, "HTTP/2.0", "Upstream_protocol=h2c"),
		Entry("over TLS", "tls", testkit.BackendOptions{Protocol: "tls"}, "HTTP/1.1", "Upstream_protocol=tls", "Upstream_tls_insecure=true"),
		Entry("over HTTP/2 and TLS", "h2", testkit.BackendOptions{Protocol: "h2"}, "HTTP/2.0", "Upstream_protocol=h2", "Upstream_tls_insecure=true"),
	)

	It("reaches an upstream by its DNS name", func() {
		post(gw.api, "/upstream", "Upstream_name=dns", "Upstream_ip=localhost", "Upstream_port="+strconv.Itoa(blue.Port))
		addService(gw.api, "dns", "dns.example", "dns")
		attach("dns")
		gw.expect("dns.example", "/", "blue")
	})

	It("keeps traffic from an upstream that is not healthy", func() {
		sick, well := backend("sick"), backend("well")
		health := []string{
			"Upstream_hc_path=" + testkit.HealthPath, "Upstream_hc_intervalseconds=1",
			"Upstream_hc_unhealthythresholdcount=1", "Upstream_hc_healthythresholdcount=1",
		}
		addUpstream(gw.api, sick, health...)
		addUpstream(gw.api, well, health...)
		addService(gw.api, "health", "health.example", "sick", "well")
		attach("health")
		gw.expect("health.example", "/", "sick")

		sick.SetHealthy(false)
		Eventually(func(check Gomega) {
			before := sick.Requests()
			for range 20 {
				check.Expect(gw.answers("health.example", "/")).To(Equal("well"))
			}
			check.Expect(sick.Requests()).To(Equal(before))
		}).Should(Succeed())
		well.SetHealthy(false)
		gw.expect("health.example", "/", "503")
		sick.SetHealthy(true)
		gw.expect("health.example", "/", "sick")
		well.SetHealthy(true)
		gw.expect("health.example", "/", "well")
	})

	It("lets websockets through, unless the route forbids it", func() {
		post(gw.api, "/service", "Service_Name=ws", "fqdn=ws.example")
		addRoute(gw.api, "ws", "yes", "/", "", "blue")
		addRoute(gw.api, "ws", "no", "/no", `{"websocket":false}`, "blue")
		attach("ws")
		gw.expect("ws.example", "/", "blue")

		ws, err := openWebsocket(gw, "ws://ws.example/chat")
		Expect(err).NotTo(HaveOccurred())
		for _, text := range []string{"hello", "again"} {
			Expect(websocket.Message.Send(ws, text)).To(Succeed())
			var back string
			Expect(websocket.Message.Receive(ws, &back)).To(Succeed())
			Expect(back).To(Equal(text))
		}
		Expect(ws.Close()).To(Succeed())

		_, err = openWebsocket(gw, "ws://ws.example/no")
		Expect(err).To(MatchError(ContainSubstring("bad status")))
		Expect(gw.answers("ws.example", "/no")).To(Equal("blue"))
	})
})

// openWebsocket does the handshake through the gateway.
func openWebsocket(gw gateway, url string) (*websocket.Conn, error) {
	GinkgoHelper()
	config, err := websocket.NewConfig(url, "http://ws.example")
	Expect(err).NotTo(HaveOccurred())
	conn, err := testkit.Bounded(net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(gw.port)))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = conn.Close() }) // most are closed by then
	return websocket.NewClient(config, conn)
}

// match is a request, and the backend that must answer it.
type match struct {
	method, target, header, want string
}

var _ = Describe("Route_config", Ordered, func() {
	var g *testkit.Gatehouse
	var gw gateway
	var blue *testkit.Backend

	BeforeAll(func() {
		g, gw = standalone()
		blue = backend("blue")
		addUpstream(gw.api, blue)
		addUpstream(gw.api, backend("green"))
		post(gw.api, "/proxy", "Name=gw")
	})

	// route creates a service whose special route goes to blue, and everything else to
	// green.
	route := func(name, prefix, config string) (host string) {
		GinkgoHelper()
		addService(gw.api, name, name+".example", "green")
		addRoute(gw.api, name, "special", prefix, config, "blue")
		post(gw.api, "/proxy/gw/service/"+name)
		gw.expect(name+".example", "/other", "green")
		return name + ".example"
	}

	DescribeTable("matches",
		func(name, prefix, config string, matches ...match) {
			host := route(name, prefix, config)
			for _, m := range matches {
				var header []string
				if m.header != "" {
					header = append(header, m.header)
				}
				r, err := gw.send(m.method, host, m.target, header...)
				Expect(err).NotTo(HaveOccurred())
				Expect(r.Header.Get(testkit.BackendHeader)).To(Equal(m.want), "%+v", m)
			}
		},
		Entry("methods", "methods", "/m", `{"methods":["POST","PUT"]}`,
			match{"POST", "/m", "", "blue"}, match{"PUT", "/m", "", "blue"}, match{"GET", "/m", "", "green"}),
		Entry("the value of a header", "exact-header", "/h", `{"headers":[{"name":"x-tier","exact":"gold"}]}`,
			match{"GET", "/h", "X-Tier: gold", "blue"}, match{"GET", "/h", "X-Tier: golden", "green"}, match{"GET", "/h", "", "green"}),
		Entry("the beginning of a header", "prefix-header", "/h", `{"headers":[{"name":"x-tier","prefix":"gold"}]}`,
			match{"GET", "/h", "X-Tier: golden", "blue"}, match{"GET", "/h", "X-Tier: old", "green"}),
		Entry("a header by expression", "regex-header", "/h", `{"headers":[{"name":"x-tier","regex":"g.*d"}]}`,
			match{"GET", "/h", "X-Tier: gild", "blue"}, match{"GET", "/h", "X-Tier: gilded!", "green"}),
		Entry("the presence of a header", "header", "/h", `{"headers":[{"name":"x-tier"}]}`,
			match{"GET", "/h", "X-Tier: any", "blue"}, match{"GET", "/h", "", "green"}),
		Entry("the absence of a header", "no-header", "/h", `{"headers":[{"name":"x-tier","invert":true}]}`,
			match{"GET", "/h", "", "blue"}, match{"GET", "/h", "X-Tier: any", "green"}),
		Entry("the query", "query", "/q", `{"query":[{"name":"v","exact":"2"},{"name":"debug"}]}`,
			match{"GET", "/q?v=2&debug=", "", "blue"}, match{"GET", "/q?v=2", "", "green"}, match{"GET", "/q?v=22&debug=1", "", "green"}),
		Entry("an exact path", "exact", "/exact", `{"match":"exact"}`,
			match{"GET", "/exact", "", "blue"}, match{"GET", "/exact?a=b", "", "blue"}, match{"GET", "/exact/", "", "green"}, match{"GET", "/exactly", "", "green"}),
		Entry("path segments", "segment", "/shop", `{"match":"segment"}`,
			match{"GET", "/shop", "", "blue"}, match{"GET", "/shop/a", "", "blue"}, match{"GET", "/shopping", "", "green"}),
		Entry("a string prefix", "prefix", "/shop", ``,
			match{"GET", "/shop", "", "blue"}, match{"GET", "/shopping", "", "blue"}, match{"GET", "/sho", "", "green"}),
		Entry("a path by expression", "regex", "/item/[0-9]+", `{"match":"regex"}`,
			match{"GET", "/item/42", "", "blue"}, match{"GET", "/item/42?a=b", "", "blue"}, match{"GET", "/item/x", "", "green"}, match{"GET", "/item/42/x", "", "green"}),
	)

	DescribeTable("rewrites",
		func(name, prefix, config, target, wantPath, wantHost string) {
			host := route(name, prefix, config)
			if wantHost == "" {
				wantHost = host
			}
			r := gw.get(host, target)
			Expect(r.Echo.Backend).To(Equal("blue"))
			Expect(r.Echo.Path).To(Equal(wantPath))
			Expect(r.Echo.Host).To(Equal(wantHost))
		},
		Entry("nothing by default", "keep", "/shop", ``, "/shop/a?b=c", "/shop/a?b=c", ""),
		Entry("the prefix", "replace", "/shop", `{"rewrite":{"prefix":"/v2"}}`, "/shop/a?b=c", "/v2/a?b=c", ""),
		Entry("a prefix that ends in a slash", "slash", "/shop/", `{"rewrite":{"prefix":"/v2"}}`, "/shop/a", "/v2/a", ""),
		Entry("the prefix to nothing", "strip", "/shop", `{"rewrite":{"prefix":"/"}}`, "/shop/a?b=c", "/a?b=c", ""),
		Entry("the prefix to nothing, for the prefix itself", "strip-all", "/shop", `{"rewrite":{"prefix":"/"}}`, "/shop", "/", ""),
		Entry("by expression", "groups", "/user/", `{"rewrite":{"regex":"^/user/([^/]+)/(.*)$","substitution":"/u/\\1?\\2"}}`, "/user/anna/cart", "/u/anna?cart", ""),
		Entry("the host", "host", "/shop", `{"rewrite":{"host":"inner.example"}}`, "/shop", "/shop", "inner.example"),
	)

	It("limits a request's time", func() {
		host := route("timeout", "/slow", `{"timeouts":{"request":"2s"}}`)
		Expect(gw.answers(host, "/slow?delay=1m")).To(Equal("504"))
		Expect(gw.answers(host, "/slow?delay=1ms")).To(Equal("blue"))
	})

	DescribeTable("limits how long a request and its response may last",
		func(name, request, answer string) {
			slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/slow/ready":
					w.WriteHeader(http.StatusNoContent)
					return
				case "/slow/begins":
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			}))
			DeferCleanup(slow.Close)
			_, port, err := net.SplitHostPort(slow.Listener.Addr().String())
			Expect(err).NotTo(HaveOccurred())
			post(gw.api, "/upstream", "Upstream_name="+name, "Upstream_ip=127.0.0.1", "Upstream_port="+port)
			host := route(name, "/socket", `{"timeouts":{"stream":"1s"}}`)
			addRoute(gw.api, name, "slow", "/slow", `{"timeouts":{"stream":"1s"},"retries":{"attempts":100,"on":["5xx"],"per_try":"300ms"}}`, name)
			gw.expect(host, "/slow/ready", "204")

			conn, err := testkit.Bounded(net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(gw.port)))
			Expect(err).NotTo(HaveOccurred())
			defer func() { _ = conn.Close() }()
			began := time.Now()
			_, err = io.WriteString(conn, request+"\r\nHost: "+host+"\r\n\r\n")
			Expect(err).NotTo(HaveOccurred())
			got, err := io.ReadAll(conn)
			Expect(err).NotTo(HaveOccurred())
			Expect(string(got)).To(MatchRegexp(answer))
			Eventually(g.Stdout.Lines).Should(ContainElement(And(
				ContainSubstring(`"authority":"`+host+`"`), ContainSubstring(`"response_code_details":"max_duration_timeout","response_flags":"-"`))))
			Expect(time.Since(began)).To(And(BeNumerically(">", 900*time.Millisecond), BeNumerically("<", 10*time.Second)))
		},
		Entry("without an answer, retries included", "silent", "GET /slow HTTP/1.1\r\nConnection: close", `^HTTP/1\.1 504 `),
		Entry("with a response that began", "begins", "GET /slow/begins HTTP/1.1", `^HTTP/1\.1 200 `),
		Entry("with a request that does not end", "upload", "POST /slow HTTP/1.1\r\nContent-Length: 9", `^HTTP/1\.1 408 `),
		Entry("of a websocket", "socket", "GET /socket HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://a", `^HTTP/1\.1 101 `),
	)

	It("retries as often as configured", func() {
		host := route("retries", "/twice", `{"retries":{"attempts":2,"on":["5xx"]}}`)
		addRoute(gw.api, "retries", "never", "/never", `{"retries":{"attempts":0}}`, "blue")
		gw.expect(host, "/never", "blue")

		before := blue.Requests()
		blue.FailNext(2)
		Expect(gw.answers(host, "/twice")).To(Equal("blue"))
		Expect(blue.Requests() - before).To(Equal(3))

		before = blue.Requests()
		blue.FailNext(3)
		Expect(gw.answers(host, "/twice")).To(Equal(strconv.Itoa(http.StatusServiceUnavailable)))
		Expect(blue.Requests() - before).To(Equal(3))

		before = blue.Requests()
		blue.FailNext(1)
		Expect(gw.answers(host, "/never")).To(Equal(strconv.Itoa(http.StatusServiceUnavailable)))
		Expect(blue.Requests() - before).To(Equal(1))
	})
})
