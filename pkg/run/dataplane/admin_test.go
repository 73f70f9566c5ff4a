package dataplane_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/dataplane"
)

var _ = Describe("The admin port of an Envoy that drains", func() {
	It("passes on what everybody may see, and nothing else", func() {
		socket := filepath.Join(GinkgoT().TempDir(), "s")
		l, err := net.Listen("unix", socket)
		Expect(err).NotTo(HaveOccurred())
		var asked []string
		own := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			asked = append(asked, r.Method+" "+r.Host+" "+r.RequestURI)
		})}
		ended := make(chan error, 1)
		go func() { ended <- own.Serve(l) }()
		DeferCleanup(func() {
			Expect(own.Close()).To(Succeed())
			Expect(<-ended).To(MatchError(http.ErrServerClosed))
		})
		handler := dataplane.AdminHandler(socket)
		ask := func(method, target string) int {
			w := httptest.NewRecorder()
			handler.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), method, target, http.NoBody))
			return w.Code
		}
		Expect(ask("GET", "/stats/prometheus?usedonly&filter=a%2Fb")).To(Equal(200))
		Expect(ask("POST", "/logging?level=debug")).To(Equal(200))
		Expect(asked).To(Equal([]string{"GET envoy /stats/prometheus?usedonly&filter=a%2Fb", "POST envoy /logging?level=debug"}))
		for _, target := range []string{"/", "/quitquitquit", "/config_dump", "/drain_listeners", "/stats/", "/stats/../config_dump", "/stats%00", "//stats"} {
			Expect(ask("POST", target)).To(Equal(403), target)
		}
		Expect(asked).To(HaveLen(2))
		Expect(own.Close()).To(Succeed())
	})

	It("reports that an Envoy does not answer, and that an address is taken", func() {
		w := httptest.NewRecorder()
		dataplane.AdminHandler("/not/there").ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), "GET", "/ready", http.NoBody))
		Expect(w.Code).To(Equal(503))

		l, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(l.Close)
		_, err = dataplane.OpenAdmin(context.Background(), l.Addr().String(), "/not/there", slog.New(slog.DiscardHandler))
		Expect(err).To(MatchError("--admin-addr: listening on " + l.Addr().String() + ": address already in use: choose another address, or none with --admin-addr \"\""))
	})
})
