package attack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// dialFrom connects an address of this machine with a port.
func dialFrom(ctx context.Context, from string, port int) net.Conn {
	GinkgoHelper()
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(ctx, "tcp", "127.0.0.1:"+strconv.Itoa(port))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	Expect(conn.SetDeadline(time.Now().Add(time.Minute))).To(Succeed())
	return conn
}

// clientOf returns the client's address that the backend was told, or the status if no backend answered.
func clientOf(a testkit.Answer) string {
	var echo testkit.Echo
	if a.Status != http.StatusOK || json.Unmarshal([]byte(a.Body), &echo) != nil {
		return strconv.Itoa(a.Status)
	}
	return echo.Headers.Get("X-Envoy-External-Address")
}

// readProxyProtocol has a gateway read the PROXY protocol of one address.
func (t target) readProxyProtocol(ctx context.Context, from string) {
	GinkgoHelper()
	a, err := t.API.Do(ctx, http.MethodPut, "/globalconfig/balancers?wait=applied&timeout=20s", "application/json",
		fmt.Sprintf(`{"globalconfig_type": "globalconfig_proxyprotocol", "config": {"from": [%q]}}`, from))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
}

var _ = Describe("The address of a client behind two gateways", Ordered, func() {
	const (
		v1 = "PROXY TCP4 203.0.113.7 127.0.0.1 4711 80\r\n"
		v2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xcb\x00\x71\x07\x7f\x00\x00\x01\x12\x67\x00\x50"
	)
	var outer, inner target
	BeforeAll(func(ctx SpecContext) {
		inner = startTarget(ctx)
		inner.readProxyProtocol(ctx, "127.0.0.1")
		outer = startEmpty(ctx, nil)
		for _, call := range [][]string{
			{"/upstream", "Upstream_name=inner", "Upstream_ip=127.0.0.1", "Upstream_port=" + strconv.Itoa(inner.port), "Upstream_proxyprotocol=v2", "Upstream_hc_path=/"},
			{"/service", "Service_Name=shop", "fqdn=*"}, {"/service/shop/route", "Route_Name=root", "Route_prefix=/"},
			{"/service/shop/route/root/upstream/inner"}, {"/proxy", "Name=gw"}, {"/proxy/gw/service/shop"},
		} {
			a, err := outer.API.Post(ctx, call[0], call[1:]...)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusCreated), "POST %q: %s", call, a.Body)
		}
		Eventually(func() string { return outer.served("/") }).WithContext(ctx).Should(Equal("blue"))
	}, NodeTimeout(2*time.Minute))

	change := func(ctx context.Context, path, body string) {
		GinkgoHelper()
		a, err := outer.API.Do(ctx, http.MethodPatch, path+"?wait=applied&timeout=20s", "application/json", body)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	}

	// A row is what a client sends first to a gateway, a header of its request, and whose address the backend is told, or the
	// status.
	DescribeTable("is that of its connection, whatever it sends", func(ctx SpecContext, to func() int, from, first, header, want string) {
		for _, version := range []string{"v2", "v1"} {
			change(ctx, "/upstream/inner", fmt.Sprintf(`{"upstream_proxyprotocol":%q}`, version))
			conn := dialFrom(ctx, from, to())
			if first != "" {
				_, err := conn.Write([]byte(first))
				Expect(err).NotTo(HaveOccurred())
			}
			Expect(clientOf(exchange(conn, "GET / HTTP/1.1", "Host: shop.test", header))).To(Equal(want), version)
		}
	},
		Entry("nothing", laterPort(&outer), "127.0.0.3", "", "X-Other: 1", "127.0.0.3"),
		Entry("X-Forwarded-For", laterPort(&outer), "127.0.0.3", "", "X-Forwarded-For: 203.0.113.7", "127.0.0.3"),
		Entry("a long X-Forwarded-For", laterPort(&outer), "127.0.0.3", "", "X-Forwarded-For: 203.0.113.7, 127.0.0.1, 127.0.0.1", "127.0.0.3"),
		Entry("X-Envoy-External-Address", laterPort(&outer), "127.0.0.3", "", "X-Envoy-External-Address: 203.0.113.7", "127.0.0.3"),
		Entry("version 1 itself", laterPort(&outer), "127.0.0.3", v1, "X-Other: 1", "400"),
		Entry("version 2 itself", laterPort(&outer), "127.0.0.3", v2, "X-Other: 1", "400"),
		Entry("both", laterPort(&outer), "127.0.0.3", v1, "X-Forwarded-For: 203.0.113.7", "400"),
		Entry("to the inner gateway, from an address that may not send the protocol, version 1", laterPort(&inner), "127.0.0.3", v1, "X-Other: 1", "0"),
		Entry("version 2", laterPort(&inner), "127.0.0.3", v2, "X-Other: 1", "0"),
		Entry("nothing", laterPort(&inner), "127.0.0.3", "", "X-Other: 1", "0"),
		Entry("nothing, from an address that may", laterPort(&inner), "127.0.0.1", "", "X-Forwarded-For: 203.0.113.7", "0"),
	)

	It("is not mixed up with that of another one, over connections that stay open", func(ctx SpecContext) {
		conns := map[string]net.Conn{"127.0.0.2": dialFrom(ctx, "127.0.0.2", outer.port), "127.0.0.3": dialFrom(ctx, "127.0.0.3", outer.port)}
		for range 20 {
			for from, conn := range conns {
				Expect(clientOf(exchange(conn, "GET / HTTP/1.1", "Host: shop.test"))).To(Equal(from))
			}
		}
	})

	It("is the same if the outer gateway trusts a proxy in front, whose clients it then does not name", func(ctx SpecContext) {
		change(ctx, "/proxy/gw", `{"trusted_hops":1}`)
		for _, forged := range []string{"X-Forwarded-For: 203.0.113.7", "X-Forwarded-For: 203.0.113.7, 203.0.113.8"} {
			Expect(clientOf(exchange(dialFrom(ctx, "127.0.0.3", outer.port), "GET / HTTP/1.1", "Host: shop.test", forged))).To(Equal("127.0.0.3"))
		}
		change(ctx, "/proxy/gw", `{"trusted_hops":0}`)
	})

	It("is what a load balancer in front says, over both hops, and not what its client adds", func(ctx SpecContext) {
		outer.readProxyProtocol(ctx, "127.0.0.1")
		send := func(from, first, header string) string {
			GinkgoHelper()
			conn := dialFrom(ctx, from, outer.port)
			_, err := conn.Write([]byte(first))
			Expect(err).NotTo(HaveOccurred())
			return clientOf(exchange(conn, "GET / HTTP/1.1", "Host: shop.test", header))
		}
		for _, first := range []string{v1, v2} {
			Expect(send("127.0.0.1", first, "X-Forwarded-For: 198.51.100.9")).To(Equal("203.0.113.7"))
			Expect(send("127.0.0.1", first+"PROXY TCP4 198.51.100.9 127.0.0.1 1 2\r\n", "X-Other: 1")).To(Equal("400"))
			Expect(send("127.0.0.3", first, "X-Other: 1")).To(Equal("0"))
		}
	})
})

// laterPort returns the port of a gateway that is started later.
func laterPort(t *target) func() int { return func() int { return t.port } }
