package attack_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// slowReader sends a request and reads the first bytes of the answer, if any arrive;
// then nothing more. Its window is small.
type slowReader struct{ conn net.Conn }

func startSlowReader(ctx context.Context, url, path string) slowReader {
	GinkgoHelper()
	small := func(_, _ string, raw syscall.RawConn) error {
		return raw.Control(func(fd uintptr) {
			_ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096)
		})
	}
	conn, err := (&net.Dialer{Control: small}).DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = conn.Close() }) // it may be closed already
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	Expect(err).NotTo(HaveOccurred())
	return slowReader{conn}
}

// status returns the status of the answer; empty until it arrives.
func (r slowReader) status() string {
	GinkgoHelper()
	Expect(r.conn.SetReadDeadline(time.Now().Add(20 * time.Millisecond))).To(Succeed())
	b := make([]byte, len("HTTP/1.1 200"))
	n, err := r.conn.Read(b)
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(string(b[:n]), "HTTP/1.1 ")
}

// fill stores about 12 MB of configuration, more than fits in the buffers of a
// connection.
func fill(ctx context.Context, t target) {
	GinkgoHelper()
	var doc strings.Builder
	doc.WriteString("version: 1\nservices:\n- service_name: large\n  fqdn: large.example\n  routes:\n")
	for i := range 600 {
		fmt.Fprintf(&doc, "  - {route_name: r%d, route_prefix: /r%d, route_config: {headers: [{name: x, exact: %s}]}}\n", i, i, strings.Repeat("v", 20_000))
	}
	a, err := t.API.Do(ctx, http.MethodPut, "/config", "application/yaml", doc.String())
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
}

var _ = DescribeTable("Clients that do not read their answers delay nobody", func(ctx SpecContext, args func(context.Context) []string) {
	t := startTarget(ctx, args(ctx)...)
	fill(ctx, t)
	for _, path := range some(3, []string{"/config", "/revision/7", "/service/dump/large", "/events", "/service/large/route?limit=1000", "/proxy/gw/xds"}) {
		var readers []slowReader
		for range 20 {
			readers = append(readers, startSlowReader(ctx, t.API.URL, path))
		}
		By("reading " + path)
		for _, r := range readers {
			Eventually(r.status).WithContext(ctx).Should(Or(Equal("200"), Equal("429")))
		}
		quick := func(method, path, body string) {
			GinkgoHelper()
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			defer cancel()
			a := try(ctx, t.API, method, path, body, "Content-Type: application/x-www-form-urlencoded")
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		}
		for range 2 {
			quick(http.MethodGet, "/ready", "")
			quick(http.MethodGet, "/upstream?limit=1", "")
			quick(http.MethodPatch, "/upstream/blue?wait=applied", "Upstream_weight="+fmt.Sprint(GinkgoRandomSeed()%90+1))
			quick(http.MethodPatch, "/upstream/blue?wait=applied", "Upstream_weight=100")
		}
		for _, r := range readers {
			Expect(r.conn.Close()).To(Succeed())
		}
	}
},
	Entry("on SQLite", SpecTimeout(4*time.Minute), func(context.Context) []string { return nil }),
	Entry("on PostgreSQL", SpecTimeout(4*time.Minute), func(ctx context.Context) []string {
		server, err := postgres.Start(ctx, GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(server.Stop)
		Expect(server.CreateDatabase(ctx, "gatehouse")).To(Succeed())
		return []string{"--database-url", server.URL("gatehouse")}
	}),
)
