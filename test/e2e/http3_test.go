package e2e_test

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// overQUIC is a client of HTTP/3, and the file of the authority of a gateway.
type overQUIC struct {
	*testkit.HTTP3
	secured
	ca string
}

func quic(s secured) overQUIC {
	GinkgoHelper()
	client, err := testkit.NewHTTP3()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(client.Stop)
	ca := filepath.Join(GinkgoT().TempDir(), "ca.pem")
	Expect(os.WriteFile(ca, []byte(s.authority.PEM), 0o600)).To(Succeed())
	return overQUIC{client, s, ca}
}

// connect opens a connection that is called like its server name.
func (q overQUIC) connect(sni string) error { return q.Connect(sni, q.httpsPort, sni, q.ca) }

func (q overQUIC) get(sni, host, path string) testkit.HTTP3Answer {
	GinkgoHelper()
	a, err := q.Ask(sni, "GET", host, path, nil, "")
	Expect(err).NotTo(HaveOccurred())
	return a
}

// request is the same over every version of HTTP.
type request struct {
	method, host, path, body string
	headers                  [][2]string
}

// overTCP sends a request over HTTP/1.1, or HTTP/2, and a connection for a name.
func (s secured) overTCP(proto, sni string, r request) testkit.HTTP3Answer {
	GinkgoHelper()
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{ServerName: sni, RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: proto == "HTTP/2.0", DisableCompression: true,
	}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(limit(), r.method, "https://127.0.0.1:"+strconv.Itoa(s.httpsPort)+r.path, strings.NewReader(r.body))
	Expect(err).NotTo(HaveOccurred())
	if r.body == "" {
		req.Body = nil
	}
	req.Host = r.host
	for _, h := range r.headers {
		req.Header.Add(h[0], h[1])
	}
	req.Header.Add("user-agent", "spec")
	resp, err := transport.RoundTrip(req)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = resp.Body.Close() }()
	Expect(resp.Proto).To(Equal(proto))
	body, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	return testkit.HTTP3Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body)}
}

// essential leaves out what differs between any two requests.
func essential(a testkit.HTTP3Answer) testkit.HTTP3Answer {
	header := http.Header{}
	for name, values := range a.Header {
		header[http.CanonicalHeaderKey(name)] = values
	}
	for _, name := range []string{"Date", "X-Envoy-Upstream-Service-Time", "Content-Length"} {
		header.Del(name)
	}
	var echo testkit.Echo
	if json.Unmarshal([]byte(a.Body), &echo) == nil {
		for _, name := range []string{"X-Request-Id", "X-Envoy-Expected-Rq-Timeout-Ms"} {
			echo.Headers.Del(name)
		}
		text, err := json.Marshal(echo)
		Expect(err).NotTo(HaveOccurred())
		a.Body = string(text)
	}
	return testkit.HTTP3Answer{Status: a.Status, Header: header, Body: a.Body}
}

var _ = Describe("HTTP/3", func() {
	It("answers as HTTP/1.1 and HTTP/2 do", func() {
		s, _ := secure("--access-log", "json")
		s.serve("shop", "shop.test", "shop.test")
		s.serve("wide", "*.wide.test", "*.wide.test")
		patch(s.api, "/service/shop", "Hsts_seconds=600", "Https=redirect")
		for name, deny := range map[string]string{"me": `"127.0.0.0/8"`, "others": `"192.0.2.0/24"`} {
			post(s.api, "/filter", "Filter_name="+name, "Filter_type=vh_filter_ipaccess", `Filter_config={"deny":[`+deny+`]}`)
			addRoute(s.api, "shop", name, "/"+name, "", "blue")
			post(s.api, "/service/shop/route/"+name+"/filter/"+name)
		}
		By("only when the proxy says so")
		_, _, header := s.ask("shop.test", "shop.test")
		Expect(header).NotTo(HaveKey("Alt-Svc"))
		applied(s.api, http.MethodPatch, "/proxy/gw", "Http3=true")
		q := quic(s)
		for _, name := range []string{"shop.test", "a.wide.test"} {
			Expect(q.connect(name)).To(Succeed(), name)
		}
		port := strconv.Itoa(s.httpsPort)
		for _, row := range []struct {
			sni    string
			r      request
			status int
			holds  string
		}{
			{"shop.test", request{method: "GET", host: "shop.test", path: "/x?a=b"}, 200, `"X-Forwarded-Proto":["https"]`},
			{"shop.test", request{method: "GET", host: "Shop.Test:" + port, path: "/"}, 200, `"X-Envoy-External-Address":["127.0.0.1"]`},
			{"shop.test", request{method: "POST", host: "shop.test", path: "/", body: strings.Repeat("x", 100_000)}, 200, `"Method":"POST"`},
			{"shop.test", request{method: "GET", host: "shop.test", path: "/?bytes=200000"}, 200, ""},
			{"shop.test", request{method: "GET", host: "shop.test", path: "/?status=418"}, 418, ""},
			{"shop.test", request{method: "GET", host: "shop.test", path: "/others"}, 200, `"Path":"/others"`},
			{"shop.test", request{method: "GET", host: "shop.test", path: "/me"}, 403, "address"},
			{"shop.test", request{method: "GET", host: "a.wide.test", path: "/"}, 421, "made for another host"},
			{"shop.test", request{method: "GET", host: "shop.test, wide.test", path: "/"}, 0, ""},
			{"shop.test", request{method: "GET", host: "shop.test", path: "/a%2fb"}, 307, ""},
			{"shop.test", request{method: "GET", host: "shop.test", path: "/%2e%2e;x/"}, 400, "dot segment"},
			{"shop.test", request{method: "GET", host: "shop.test", path: "/", headers: [][2]string{{"x_y", "z"}}}, 0, ""},
			{"shop.test", request{method: "GET", host: "shop.test", path: "/", headers: [][2]string{
				{"x-forwarded-for", "192.0.2.1"}, {"x-forwarded-proto", "http"}, {"x-forwarded-client-cert", "Hash=1"}, {"x-envoy-internal", "true"},
			}}, 200, `"X-Envoy-External-Address":["127.0.0.1"]`},
			{"a.wide.test", request{method: "GET", host: "a.wide.test", path: "/"}, 200, `"Host":"a.wide.test"`},
		} {
			r := row.r
			h3, err := q.Ask(row.sni, r.method, r.host, r.path, append([][2]string{{"user-agent", "spec"}}, r.headers...), r.body)
			if row.status == 0 { // no HTTP at all: Envoy closes the connection, as for HTTP/2
				Expect(err).To(HaveOccurred(), "%+v %+v", r, h3)
				Expect(q.connect(row.sni)).To(Succeed())
				continue
			}
			Expect(err).NotTo(HaveOccurred(), "%+v", r)
			Expect(h3.Status).To(Equal(row.status), "%+v: %s", r, h3.Body)
			Expect(h3.Body).To(ContainSubstring(row.holds), "%+v", r)
			for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
				Expect(essential(h3)).To(Equal(essential(s.overTCP(proto, row.sni, r))), "%s %+v", proto, r)
			}
			Expect(h3.Header.Get("Alt-Svc")).To(Equal(`h3=":`+port+`"; ma=3600`), "%+v", r)
			Expect(h3.Header.Get("Strict-Transport-Security")).To(Equal(map[bool]string{true: "max-age=600"}[r.host != "a.wide.test" && row.status != 307]), "%+v", r)
		}
		By("and leaves lines in the access log as they do")
		Eventually(s.Stdout.Lines).Should(ContainElement(And(
			ContainSubstring(`"protocol":"HTTP/3"`), ContainSubstring(`"sni":"shop.test"`), ContainSubstring(`"tls_version":"TLSv1.3"`),
			ContainSubstring(`"authority":"a.wide.test"`), ContainSubstring(`"response_code":421`),
		)))
		By("but plain HTTP does not know it")
		status, header := plainGet(s, "a.wide.test")
		Expect(status).To(Equal(200))
		Expect(header).NotTo(HaveKey("Alt-Svc"))
		By("and another port, if the proxy says so")
		applied(s.api, http.MethodPatch, "/proxy/gw", "Alt_svc_port=443")
		_, _, header = s.ask("shop.test", "shop.test")
		Expect(header.Get("Alt-Svc")).To(Equal(`h3=":443"; ma=3600`))
		applied(s.api, http.MethodPatch, "/proxy/gw", "Http3=false")
		_, _, header = s.ask("shop.test", "shop.test")
		Expect(header).NotTo(HaveKey("Alt-Svc"))
	})

	It("keeps open connections while certificates of other hosts come, change and go", func() {
		s, _ := secure()
		s.serve("shop", "shop.test", "shop.test")
		applied(s.api, http.MethodPatch, "/proxy/gw", "Http3=true")
		q := quic(s)
		Expect(q.connect("shop.test")).To(Succeed())
		Expect(q.get("shop.test", "shop.test", "/").Status).To(Equal(200))
		before := envoyListeners(s)

		s.serve("new", "new.test", "new.test")
		Expect(q.connect("new.test")).To(Succeed())
		Expect(q.get("new.test", "new.test", "/").Status).To(Equal(200))
		Expect(q.get("shop.test", "shop.test", "/").Status).To(Equal(200))
		pair, err := s.authority.Issue(testkit.CertificateOptions{Names: []string{"new.test"}})
		Expect(err).NotTo(HaveOccurred())
		applied(s.api, http.MethodPatch, "/secret/new", "Secret_cert="+url.QueryEscape(pair.Cert), "Secret_key="+url.QueryEscape(pair.Key))
		Expect(q.get("new.test", "new.test", "/").Status).To(Equal(200))
		applied(s.api, http.MethodDelete, "/service/new/secret/new")
		Expect(q.get("shop.test", "shop.test", "/").Status).To(Equal(200))
		By("and a new connection for a name without a certificate is closed")
		Expect(q.Connect("again", s.httpsPort, "new.test", q.ca)).NotTo(Succeed())
		By("without touching the listeners of TCP")
		Expect(envoyListeners(s)).To(Equal(before))
	})

	It("does not serve hosts that verify clients, and sends nobody there", func() {
		s, _ := secure()
		s.serve("bank", "*.bank.test", "*.bank.test")
		s.serve("all", "*", "x.bank.test", "other.test")
		clients, err := testkit.NewAuthority("clients")
		Expect(err).NotTo(HaveOccurred())
		post(s.api, "/secret", "Secret_name=clients", "Secret_cert="+clients.PEM)
		patch(s.api, "/service/bank", "Client_validation_cacertificate=clients")
		applied(s.api, http.MethodPatch, "/proxy/gw", "Http3=true")
		q := quic(s)
		Expect(q.connect("other.test")).To(Succeed())
		Expect(q.get("other.test", "other.test", "/").Status).To(Equal(200))
		Expect(q.get("other.test", "a.bank.test", "/").Status).To(Equal(421))
		Expect(q.connect("a.bank.test")).NotTo(Succeed())
		By("not even by a certificate of another service")
		Expect(q.connect("x.bank.test")).To(Succeed())
		Expect(q.get("x.bank.test", "x.bank.test", "/").Status).To(Equal(403))
		client, err := clients.Issue(testkit.CertificateOptions{Names: []string{"me"}, Client: true})
		Expect(err).NotTo(HaveOccurred())
		status, _, header := s.ask("a.bank.test", "a.bank.test", func(c *tls.Config) {
			pair, err := tls.X509KeyPair([]byte(client.Cert), []byte(client.Key))
			Expect(err).NotTo(HaveOccurred())
			c.Certificates = []tls.Certificate{pair}
		})
		Expect(status).To(Equal(200))
		Expect(header).NotTo(HaveKey("Alt-Svc"))
	})

	It("leaves HTTPS as it is if the UDP port is taken, and says so", func() {
		s, _ := secure()
		taken, err := net.ListenPacket("udp4", "127.0.0.1:"+strconv.Itoa(s.httpsPort)) //nolint:noctx // in a spec
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(taken.Close)
		s.serve("shop", "shop.test", "shop.test")
		patch(s.api, "/proxy/gw", "Http3=true")
		Eventually(func() string { return read(s.api, "/proxy/gw/status") }).Should(And(
			ContainSubstring(`"state":"refused"`), ContainSubstring(`"resource":"http3-127.0.0.1:`), ContainSubstring("Address already in use"),
		))
		status, _, _ := s.ask("shop.test", "shop.test")
		Expect(status).To(Equal(200))
	})

	It("knows a client by the address of its handshake", func() {
		s, _ := secure("--access-log", "json")
		s.serve("shop", "shop.test", "shop.test")
		applied(s.api, http.MethodPatch, "/proxy/gw", "Http3=true")
		q := quic(s)
		Expect(q.connect("shop.test")).To(Succeed())
		Expect(q.Move("shop.test", "127.0.0.5")).To(Succeed())
		Expect(q.get("shop.test", "shop.test", "/moved").Body).To(ContainSubstring(`"X-Envoy-External-Address":["127.0.0.1"]`))
	})
})

// plainGet sends a request over plain HTTP.
func plainGet(s secured, host string) (int, http.Header) {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(limit(), http.MethodGet, "http://127.0.0.1:"+strconv.Itoa(s.port)+"/", nil)
	Expect(err).NotTo(HaveOccurred())
	req.Host = host
	resp, err := http.DefaultTransport.RoundTrip(req)
	Expect(err).NotTo(HaveOccurred())
	Expect(resp.Body.Close()).To(Succeed())
	return resp.StatusCode, resp.Header
}

// envoyListeners returns when Envoy got its listeners of TCP.
func envoyListeners(s secured) string {
	GinkgoHelper()
	var dump struct {
		Configs []struct {
			Name        string `json:"name"`
			ActiveState struct {
				LastUpdated string `json:"last_updated"`
			} `json:"active_state"`
		} `json:"configs"`
	}
	Expect(json.Unmarshal([]byte(read(adminOf(s.Gatehouse), "/config_dump?resource=dynamic_listeners")), &dump)).To(Succeed())
	var times []string
	for _, l := range dump.Configs {
		if !strings.HasPrefix(l.Name, "http3-") {
			times = append(times, l.Name+" "+l.ActiveState.LastUpdated)
		}
	}
	Expect(times).To(HaveLen(2))
	return strings.Join(times, "\n")
}
