package rest_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// addLarge stores routes with 5 MB of text, more than lies in the buffers of a
// connection that request makes.
func addLarge(ctx context.Context, a *api) {
	GinkgoHelper()
	_, err := a.store.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
		if err := w.Insert(&model.Service{Name: "large", FQDN: "large.example", HTTPS: model.HTTPSBoth, Mode: model.ModeHTTP}); err != nil {
			return err
		}
		for i := range 25 {
			text := strings.Repeat("v", 200_000)
			if err := w.Insert(&model.Route{Service: "large", Name: fmt.Sprint("r", i), Prefix: "/", Config: model.RouteConfig{Headers: []model.ValueMatch{{Name: "x", Exact: &text}}}}); err != nil {
				return err
			}
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
}

// request sends a request and reads nothing.
func request(ctx context.Context, a *api, path string) net.Conn {
	GinkgoHelper()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(a.url, "http://"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = conn.Close() })
	Expect(conn.(*net.TCPConn).SetReadBuffer(4096)).To(Succeed())
	_, err = fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	Expect(err).NotTo(HaveOccurred())
	return conn
}

var _ = Describe("A large answer", func() {
	It("is cut off for a client that does not read it, and leaves no file", func(ctx SpecContext) {
		log := &lockedBuffer{}
		a := startAPI(func(o *rest.Options) {
			o.Pace = 100 * time.Millisecond
			o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		addLarge(ctx, a)
		dir := GinkgoT().TempDir()
		GinkgoT().Setenv("TMPDIR", dir)
		conn := request(ctx, a, "/config")
		Eventually(log.String).WithTimeout(30 * time.Second).Should(ContainSubstring("answer cut off"))
		Expect(os.ReadDir(dir)).To(BeEmpty())
		got, err := io.Copy(io.Discard, conn)
		Expect(got).To(BeNumerically("<", 5_000_000), "%v", err)
	})

	It("is limited to eight at a time for each caller", func(ctx SpecContext) {
		// However slow the machine is, those who read nothing yet are not cut off.
		a := startAPI(func(o *rest.Options) { o.Pace = time.Hour })
		addLarge(ctx, a)
		read := func(conn net.Conn) string {
			line := make([]byte, len("HTTP/1.1 200"))
			_, err := io.ReadFull(conn, line)
			Expect(err).NotTo(HaveOccurred())
			return string(line[9:])
		}
		var open []net.Conn
		for _, path := range []string{"/config", "/config", "/config", "/config", "/service/large/route?limit=1000", "/revision/1", "/revision/1", "/config"} {
			conn := request(ctx, a, path)
			Expect(read(conn)).To(Equal("200"))
			open = append(open, conn)
		}
		for _, path := range []string{"/config", "/revision/1"} {
			got := a.get(path)
			Expect(got.status).To(Equal(http.StatusTooManyRequests), path)
			Expect(got.header.Get("Retry-After")).NotTo(BeEmpty())
			Expect(got.body).To(And(ContainSubstring(`"code":"too_many_requests"`), ContainSubstring("is reading 8 large answers already; read them to their end, then try again")))
		}
		By("small answers are not counted, and a free place can be used again")
		Expect(a.get("/service").status).To(Equal(http.StatusOK))
		Expect(open[0].Close()).To(Succeed())
		Eventually(func() int { return a.get("/config").status }).WithTimeout(30 * time.Second).Should(Equal(http.StatusOK))
	})
})
