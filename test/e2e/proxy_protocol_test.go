package e2e_test

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// balanced returns what a load balancer sends first (version 2 of the PROXY protocol).
func balanced(client string) string {
	a := netip.MustParseAddr(client).As4()
	head := append([]byte("\r\n\r\n\x00\r\nQUIT\n"), 0x21, 0x11, 0, 12)
	head = append(append(head, a[:]...), 127, 0, 0, 1)
	return string(binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(head, 4711), 80))
}

// viaBalancer sends a request on a connection that begins with a text, and returns the status and the X-Forwarded-For that
// the backend got. Status 0 means that the connection was closed.
func viaBalancer(port int, first, host string, secure *tls.Config, header ...string) (status int, forwarded string) {
	GinkgoHelper()
	conn, err := testkit.Dialer().DialContext(limit(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	if _, err = io.WriteString(conn, first); err != nil {
		return 0, ""
	}
	if secure != nil {
		conn = tls.Client(conn, secure)
	}
	request := "GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n"
	for _, h := range header {
		request += h + "\r\n"
	}
	if _, err = io.WriteString(conn, request+"\r\n"); err != nil {
		return 0, ""
	}
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, ""
	}
	defer func() { _ = res.Body.Close() }()
	var echo struct{ Headers http.Header }
	_ = json.NewDecoder(res.Body).Decode(&echo) // a refusal is no echo
	return res.StatusCode, echo.Headers.Get("X-Forwarded-For")
}

var _ = Describe("The PROXY protocol", func() {
	const line = "PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\n"
	readFrom := func(gw gateway, from string) {
		GinkgoHelper()
		a, err := gw.api.Do(limit(), http.MethodPut, "/globalconfig/balancers?wait=applied&timeout=20s", "application/json",
			`{"globalconfig_type": "globalconfig_proxyprotocol", "config": {"from": [`+strconv.Quote(from)+`]}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
	}

	It("says who the client is, to backends and to filters, on both listeners", func() {
		s, _ := secure()
		s.serve("shop", "shop.test", "shop.test")
		gw := s.gateway
		post(gw.api, "/filter", "Filter_name=office", "Filter_type=vh_filter_ipaccess", `Filter_config={"allow":["203.0.113.0/24"]}`)
		post(gw.api, "/service/shop/filter/office")
		readFrom(gw, "127.0.0.0/8")
		both := func(first string, status int, forwarded string, header ...string) {
			GinkgoHelper()
			for port, config := range map[int]*tls.Config{gw.port: nil, s.httpsPort: {ServerName: "shop.test", RootCAs: s.authority.Pool(), MinVersion: tls.VersionTLS12}} {
				have, seen := viaBalancer(port, first, "shop.test", config, header...)
				Expect([]any{have, seen}).To(Equal([]any{status, forwarded}), "%q", first)
			}
		}
		both(line, http.StatusOK, "203.0.113.7")
		both(balanced("203.0.113.8"), http.StatusOK, "203.0.113.8")
		both("PROXY TCP4 198.51.100.1 127.0.0.1 4711 80\r\n", http.StatusForbidden, "")
		Expect(read(gw.api, "/proxy/gw/explain?"+fields("url=http://shop.test/", "address=203.0.113.7").Encode())).
			To(And(ContainSubstring("the connection begins with the PROXY protocol"), ContainSubstring(`"code":"forwarded"`)))
		By("what a client adds")
		both(line, http.StatusOK, "198.51.100.9,203.0.113.7", "X-Forwarded-For: 198.51.100.9")
		both("PROXY TCP4 198.51.100.1 127.0.0.1 4711 80\r\n", http.StatusForbidden, "", "X-Forwarded-For: 203.0.113.7")
		By("connections without it, and with something like it")
		for _, first := range []string{"", "PROXY UNKNOWN", "PROXY TCP4 203.0.113.7\r\n", "PROXY TCP4 999.0.113.7 127.0.0.1 1 2\r\n", strings.Replace(balanced("203.0.113.8"), "\x21", "\x31", 1)} {
			both(first, 0, "")
		}
		By("a change of who may send it")
		readFrom(gw, "192.0.2.0/24")
		both(line, 0, "")
		both(balanced("192.0.2.1"), 0, "")
		a, err := gw.api.Delete(limit(), "/globalconfig/balancers?wait=applied&timeout=20s")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		both("", http.StatusForbidden, "")
	})

	It("has texts of the load balancer in the access log, whatever is in them", func() {
		g, gw, _ := shop("--access-log", "json")
		put := func(name, body string) {
			GinkgoHelper()
			a, err := gw.api.Do(limit(), http.MethodPut, "/globalconfig/"+name+"?wait=applied&timeout=20s", "application/json", body)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
		}
		put("log", `{"globalconfig_type": "globalconfig_accesslog", "config": {"fields": [{"name": "vpc", "tlv": "vpc"}, {"name": "asked_for", "tlv": "host"}]}}`)
		put("balancers", `{"globalconfig_type": "globalconfig_proxyprotocol", "config": {"from": ["127.0.0.1"], "tlvs": [{"type": 234, "name": "vpc"}, {"type": 2, "name": "host"}]}}`)
		told := balanced("203.0.113.7")
		for kind, text := range map[byte]string{234: "a\n\"b\xff", 2: strings.Repeat("x", 300)} {
			told += string([]byte{kind, byte(len(text) >> 8), byte(len(text))}) + text //nolint:gosec // short
		}
		told = told[:14] + string(binary.BigEndian.AppendUint16(nil, uint16(len(told)-16))) + told[16:] //nolint:gosec // short
		status, _ := viaBalancer(gw.port, told, "shop.test", nil)
		Expect(status).To(Equal(http.StatusOK))
		Eventually(g.Stdout.String).Should(And(
			ContainSubstring(`"vpc":"a\n\"b!"`), ContainSubstring(`"asked_for":"`+strings.Repeat("x", 256)+`"`), ContainSubstring("203.0.113.7")))
	})

	It("is refused without addresses, and with what is none", func() {
		_, gw, _ := shop()
		for config, field := range map[string]string{`{}`: "config.from", `{"from": []}`: "config.from", `{"from": ["example.test"]}`: "config.from", `{"from": "10.0.0.0/8"}`: "config.from",
			`{"from": ["10.0.0.0/8"], "tlvs": [{"type": 256, "name": "a"}]}`:                         "config.tlvs[0].type",
			`{"from": ["10.0.0.0/8"], "tlvs": [{"type": 2, "name": "a%b"}]}`:                         "config.tlvs[0].name",
			`{"from": ["10.0.0.0/8"], "tlvs": [{"type": 2, "name": "a"}, {"type": 2, "name": "b"}]}`: "config.tlvs[1].type",
			`{"from": ["10.0.0.0/8"], "tlvs": [{"type": 2, "name": "a"}, {"type": 3, "name": "a"}]}`: "config.tlvs[1].name"} {
			a, err := gw.api.Do(limit(), http.MethodPost, "/globalconfig", "application/json",
				fmt.Sprintf(`{"globalconfig_name": "balancers", "globalconfig_type": "globalconfig_proxyprotocol", "config": %s}`, config))
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusBadRequest), config)
			Expect(fieldsOf(a.Body)).To(ContainElement(field), config)
		}
	})
})

var _ = Describe("The PROXY protocol to an upstream", func() {
	It("comes before TLS, on health checks too, and a change loses no request", func() {
		s, _ := secure()
		s.serve("shop", "shop.test", "shop.test")
		inner := s.gateway
		a, err := inner.api.Do(limit(), http.MethodPut, "/globalconfig/balancers?wait=applied&timeout=20s", "application/json",
			`{"globalconfig_type": "globalconfig_proxyprotocol", "config": {"from": ["127.0.0.1"]}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)

		_, gw := standalone("--access-log", "off")
		post(gw.api, "/secret", "Secret_name=ca", "Secret_cert="+s.authority.PEM)
		post(gw.api, "/upstream", append([]string{
			"Upstream_name=inner", "Upstream_ip=127.0.0.1", "Upstream_port=" + strconv.Itoa(s.httpsPort), "Upstream_protocol=h2", "Upstream_hc_host=shop.test",
			"Upstream_validation_cacertificate=ca", "Upstream_validation_subjectname=shop.test", "Upstream_proxyprotocol=v1",
		}, checked...)...)
		addService(gw.api, "shop", "*", "inner")
		addProxy(gw.api, "gw", gw.port, "shop")
		Eventually(func() string {
			r, _ := gw.send(http.MethodGet, "shop.test", "/") // until it listens
			return r.Echo.Headers.Get("X-Envoy-External-Address")
		}).Should(Equal("127.0.0.1"))
		Eventually(saidOf).WithArguments(gw.api, "shop.test").Should(HavePrefix("healthy: "))
		_, stop := gw.traffic("shop.test", 200)
		for _, version := range []string{"v2", "v1", "v2"} {
			change(gw.api, "/upstream/inner?wait=applied", fmt.Sprintf(`{"upstream_proxyprotocol":%q}`, version))
		}
		stop()
	})
})
