package e2e_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/http2"
	"golang.org/x/net/websocket"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// retryRoute is a route with its settings for retries.
type retryRoute struct {
	name, config string
	upstreams    []string
	// explained is the explanation of explain; empty means none.
	retries   int
	explained string
}

// retryRoutes returns a route for each kind of retries, for two upstreams.
func retryRoutes(one, other string) []retryRoute {
	const where = "connect-failure,refused-stream,reset-before-request"
	lone, both := []string{one}, []string{one, other}
	return []retryRoute{
		{"default", "", lone, 2, where},
		{"post", `{"methods":["POST","GET"]}`, lone, 2, where},
		{"idempotent", `{"methods":["GET"]}`, lone, 2, where + ",reset"},
		{"stated", `{"retries":{"attempts":5,"on":["5xx"]}}`, lone, 5, "5xx"},
		{"number", `{"methods":["GET"],"retries":{"attempts":1}}`, lone, 1, where + ",reset"},
		{"off", `{"retries":{"attempts":0}}`, lone, 0, ""},
		{"off-idempotent", `{"methods":["GET"],"retries":{"attempts":0,"on":["5xx"]}}`, lone, 0, ""},
		{"two", "", both, 2, where},
		{"two-idempotent", `{"methods":["GET"]}`, both, 2, where + ",reset"},
		{"two-stated", `{"retries":{"attempts":3,"on":["gateway-error"]}}`, both, 3, "gateway-error"},
		{"two-off", `{"retries":{"attempts":0}}`, both, 0, ""},
	}
}

// refusal is a backend that refuses every HTTP/2 stream.
type refusal struct {
	port    int
	refused atomic.Int64
}

func refusingStreams() *refusal {
	GinkgoHelper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	r := &refusal{port: l.Addr().(*net.TCPAddr).Port}
	var group sync.WaitGroup
	var conns []net.Conn
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			conns = append(conns, conn)
			group.Go(func() { r.serve(conn) })
		}
	}()
	DeferCleanup(func() {
		_ = l.Close()
		<-closed
		for _, c := range conns {
			_ = c.Close()
		}
		group.Wait()
	})
	return r
}

// serve answers frames until the connection ends.
func (r *refusal) serve(conn net.Conn) {
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(conn, conn)
	err := f.WriteSettings()
	for err == nil {
		var frame http2.Frame
		if frame, err = f.ReadFrame(); err != nil {
			return
		}
		switch frame := frame.(type) {
		case *http2.SettingsFrame:
			if !frame.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !frame.IsAck() {
				err = f.WritePing(true, frame.Data)
			}
		case *http2.HeadersFrame:
			r.refused.Add(1)
			err = f.WriteRSTStream(frame.StreamID, http2.ErrCodeRefusedStream)
		}
	}
}

var _ = Describe("The retries of a route", func() {
	const host = "shop.example"
	// retried returns how many retries the Envoy of a gateway has made.
	retried := func(g *testkit.Gatehouse) (n int) {
		GinkgoHelper()
		for line := range strings.Lines(read(adminOf(g), "/stats?filter=[.]upstream_rq_retry$")) {
			_, count, _ := strings.Cut(strings.TrimSpace(line), ": ")
			more, err := strconv.Atoi(count)
			Expect(err).NotTo(HaveOccurred(), line)
			n += more
		}
		return n
	}
	addRoutes := func(gw gateway, routes []retryRoute) {
		GinkgoHelper()
		post(gw.api, "/service", "Service_Name=shop", "fqdn="+host)
		for _, r := range routes {
			addRoute(gw.api, "shop", r.name, "/"+r.name+"/", r.config, r.upstreams...)
		}
		addProxy(gw.api, "gw", gw.port, "shop")
	}

	It("are as many as explain says, whatever a client requests", func() {
		g, gw := standalone()
		blue, green := backend("blue"), backend("green")
		addUpstream(gw.api, blue)
		addUpstream(gw.api, green)
		routes := retryRoutes("blue", "green")
		addRoutes(gw, routes)
		gw.expect(host, "/default/", "blue")
		blue.Kill()
		green.Kill()
		for _, r := range routes {
			for _, asked := range [][]string{
				nil,
				{"X-Envoy-Retry-On: 5xx,reset,connect-failure", "X-Envoy-Max-Retries: 9"},
				{"X-Envoy-Max-Retries: 0"},
				{"X-Envoy-Retry-Grpc-On: unavailable", "Content-Type: application/grpc"},
				{"Connection: X-Envoy-Retry-On, X-Envoy-Max-Retries"},
			} {
				before := retried(g)
				answer := gw.get(host, "/"+r.name+"/", asked...)
				Expect(answer.Header.Get(testkit.BackendHeader)).To(BeEmpty())
				Expect(retried(g)-before).To(Equal(r.retries), "%s: %q", r.name, asked)
			}
			explained := read(gw.api, "/proxy/gw/explain?url=http://"+host+"/"+r.name+"/")
			if r.retries == 0 {
				Expect(explained).NotTo(ContainSubstring(`"retries"`), r.name)
				continue
			}
			Expect(explained).To(ContainSubstring(fmt.Sprintf(`"retries":{"attempts":%d,"on":%q}`, r.retries, r.explained)), r.name)
		}
	})

	DescribeTable("stay within the gateway: a backend does not see them",
		func(protocol string) {
			_, gw := standalone()
			blue, green := backendWith("blue", testkit.BackendOptions{Protocol: protocol}), backendWith("green", testkit.BackendOptions{Protocol: protocol})
			addUpstream(gw.api, blue, "Upstream_protocol="+protocol)
			addUpstream(gw.api, green, "Upstream_protocol="+protocol)
			routes := retryRoutes("blue", "green")
			addRoutes(gw, routes)
			gw.expect(host, "/default/", "blue")
			hidden := func(r reply) {
				GinkgoHelper()
				Expect(r.Status).To(Equal(http.StatusOK))
				for name := range r.Echo.Headers {
					Expect(strings.ToLower(name)).NotTo(Or(ContainSubstring("retr"), ContainSubstring("attempt")))
				}
			}
			for _, r := range routes {
				hidden(gw.get(host, "/"+r.name+"/"))
				hidden(gw.get(host, "/"+r.name+"/", "X-Envoy-Retry-On: 5xx", "X-Envoy-Max-Retries: 9"))
				hidden(gw.get(host, "/"+r.name+"/", "Content-Type: application/grpc"))
			}
			before := blue.Requests()
			blue.FailNext(2)
			hidden(gw.get(host, "/stated/"))
			Expect(blue.Requests()-before).To(Equal(3), "it was the third attempt")
		},
		Entry("over HTTP/1.1", "http"),
		Entry("over HTTP/2", "h2c"),
	)

	It("are not seen by a websocket's backend either", func() {
		_, gw := standalone()
		seen := make(chan http.Header, 1)
		backend := httptest.NewServer(websocket.Server{Handler: func(ws *websocket.Conn) { seen <- ws.Request().Header }})
		DeferCleanup(backend.Close)
		at, err := url.Parse(backend.URL)
		Expect(err).NotTo(HaveOccurred())
		post(gw.api, "/upstream", "Upstream_name=ws", "Upstream_ip="+at.Hostname(), "Upstream_port="+at.Port())
		routes := []retryRoute{{name: "default", upstreams: []string{"ws"}}, {name: "off", config: `{"retries":{"attempts":0}}`, upstreams: []string{"ws"}}}
		addRoutes(gw, routes)
		gw.expect(host, "/off/", strconv.Itoa(http.StatusBadRequest)) // it accepts only websockets
		for _, r := range routes {
			ws, err := openWebsocket(gw, "ws://"+host+"/"+r.name+"/")
			Expect(err).NotTo(HaveOccurred())
			var header http.Header
			Eventually(seen).Should(Receive(&header))
			Expect(header.Get("Upgrade")).To(Equal("websocket"))
			Expect(header).NotTo(Or(HaveKey("X-Envoy-Retry-On"), HaveKey("X-Envoy-Max-Retries")))
			Expect(ws.Close()).To(Succeed())
		}
	})

	It("are made if a backend refuses streams", func() {
		g, gw := standalone()
		streams := refusingStreams()
		post(gw.api, "/upstream", "Upstream_name=busy", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(streams.port), "Upstream_protocol=h2c")
		addRoutes(gw, []retryRoute{
			{name: "default", upstreams: []string{"busy"}}, {name: "off", config: `{"retries":{"attempts":0}}`, upstreams: []string{"busy"}},
		})
		gw.expect(host, "/off/", strconv.Itoa(http.StatusServiceUnavailable))
		for name, want := range map[string]int{"default": 2, "off": 0} {
			before, refused := retried(g), streams.refused.Load()
			Expect(gw.answers(host, "/"+name+"/")).To(Equal(strconv.Itoa(http.StatusServiceUnavailable)))
			Expect(retried(g)-before).To(Equal(want), name)
			Expect(streams.refused.Load()-refused).To(BeEquivalentTo(want+1), name)
		}
	})

	It("count once in a rate limit", func() {
		g, gw, blue := shop()
		post(gw.api, "/filter", "Filter_name=each", "Filter_type=route_filter_ratelimit", `Filter_config={"per":"client","limit":"3/week"}`)
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/each")
		blue.Kill()
		var answers []string
		for range 4 {
			answers = append(answers, gw.answers(host, "/"))
		}
		Expect(answers).To(Equal([]string{"503", "503", "503", "429"}))
		Expect(retried(g)).To(Equal(6))
	})

	It("are unchanged if a filter changes headers", func() {
		g, gw := standalone()
		blue := backend("blue")
		addUpstream(gw.api, blue)
		addRoutes(gw, retryRoutes("blue", "blue")[:6])
		refused, err := gw.api.Post(limit(), "/filter", "Filter_name=retry", "Filter_type=route_filter_headers",
			`Filter_config={"request":{"set":{"X-Envoy-Retry-On":"5xx"},"remove":["x-envoy-max-retries"]}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(refused.Status).To(Equal(http.StatusBadRequest), refused.Body)
		for name, value := range map[string]string{"service": "of-service", "route": "of-route"} {
			post(gw.api, "/filter", "Filter_name="+name, "Filter_type=route_filter_headers",
				`Filter_config={"request":{"set":{"x-team":"`+value+`"},"add":{"x-tag":"`+value+`"}},"response":{"set":{"x-by":"`+value+`"}}}`)
		}
		applied(gw.api, http.MethodPost, "/service/shop/filter/service")
		for _, name := range []string{"default", "off"} {
			applied(gw.api, http.MethodPost, "/service/shop/route/"+name+"/filter/route")
			a := gw.get(host, "/"+name+"/", "X-Tag: client")
			Expect(a.Echo.Headers.Values("X-Team")).To(Equal([]string{"of-route"}), name)
			Expect(a.Echo.Headers.Values("X-Tag")).To(Equal([]string{"client", "of-service", "of-route"}), name)
			Expect(a.Header.Values("X-By")).To(Equal([]string{"of-route"}), name)
		}
		blue.Kill()
		for name, want := range map[string]int{"default": 2, "stated": 5, "off": 0} {
			before := retried(g)
			Expect(gw.get(host, "/"+name+"/").Header.Values("X-By")).NotTo(BeEmpty(), "filters work on the gateway's own 503")
			Expect(retried(g)-before).To(Equal(want), name)
		}
	})
})
