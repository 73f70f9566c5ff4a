package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// writer creates one service after the other until it gets no answer.
type writer struct {
	api testkit.API

	mu    sync.Mutex
	next  int
	known []string // paths that were acknowledged
	hosts []string // hosts all of whose calls were acknowledged
}

// run writes until the program is gone. Any status except 201 is an error.
func (w *writer) run(ctx context.Context) error {
	for {
		w.mu.Lock()
		w.next++
		name := fmt.Sprintf("s%d", w.next)
		w.mu.Unlock()
		for _, c := range []struct {
			call   string
			fields []string
			path   string
		}{
			{"/service", []string{"Service_Name=" + name, "fqdn=" + name + ".example"}, "/service/" + name},
			{"/service/" + name + "/route", []string{"Route_Name=root", "Route_prefix=/"}, "/service/" + name + "/route/root"},
			{"/service/" + name + "/route/root/upstream/blue", nil, "/service/" + name + "/route/root/upstream"},
			{"/proxy/gw/service/" + name, nil, ""},
		} {
			a, err := w.api.Post(ctx, c.call, c.fields...)
			if err != nil {
				return nil // killed: the result of this call is not known
			}
			if a.Status != http.StatusCreated {
				return fmt.Errorf("POST %s: status %d: %s", c.call, a.Status, a.Body)
			}
			if c.path != "" {
				w.note(&w.known, c.path)
			}
		}
		w.note(&w.hosts, name+".example")
	}
}

func (w *writer) note(list *[]string, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, text)
}

func (w *writer) acknowledged() (paths, hosts []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.known...), append([]string(nil), w.hosts...)
}

var _ = Describe("A control plane that is killed", func() {
	const kills = 4

	DescribeTable("keeps every acknowledged write, and traffic continues",
		func(databaseURL func() string) {
			args := []string{
				"serve", "--data-dir", GinkgoT().TempDir(), "--database-url", databaseURL(), "--access-log", "off",
				"--api-addr", fmt.Sprintf("127.0.0.1:%d", freePort()), "--xds-addr", fmt.Sprintf("127.0.0.1:%d", freePort()),
			}
			g := start(nil, args...)
			gw := gateway{g.API, freePort()}
			addUpstream(g.API, backend("blue"))
			addService(g.API, "shop", "shop.example", "blue")
			addProxy(g.API, "gw", gw.port, "shop")
			envoyFor("gw", g.XDSAddr)
			gw.expect("shop.example", "/", "blue")

			traffic, stop := gw.traffic("shop.example", 250)
			w := &writer{api: g.API}
			for life := range kills {
				ended := make(chan error, 1)
				go func() { ended <- w.run(context.Background()) }()
				Eventually(func() int { _, hosts := w.acknowledged(); return len(hosts) }).Should(BeNumerically(">=", 8*(life+1)))
				Expect(g.Kill()).To(Succeed())
				Expect(<-ended).To(Succeed())
				// Only Envoy is running.
				down := traffic.Report().Requests
				Eventually(func() int { return traffic.Report().Requests }).Should(BeNumerically(">", down+100))

				g = start(nil, args...)
				paths, hosts := w.acknowledged()
				for _, path := range paths {
					Expect(read(g.API, path)).To(ContainSubstring(`"data"`))
				}
				for _, host := range hosts {
					gw.expect(host, "/", "blue")
				}
				_, _ = fmt.Fprintf(GinkgoWriter, "kill %d: %d objects and %d hosts are there\n", life+1, len(paths), len(hosts))
			}
			stop()
		},
		Entry("with SQLite", func() string { return "sqlite://" + GinkgoT().TempDir() + "/gatehouse.db" }),
		Entry("with Postgres", func() string { return startPostgres().URL("gatehouse") }),
	)

	It("comes back immediately as a standalone gateway, on the same ports", func() {
		dir, port := GinkgoT().TempDir(), freePort()
		args := append(standaloneArgs(dir, port), "--admin-addr", fmt.Sprintf("127.0.0.1:%d", freePort()))
		g := start(nil, args...)
		gw := gateway{g.API, port}
		addUpstream(g.API, backend("blue"))
		addService(g.API, "shop", "shop.example", "blue")
		post(g.API, "/proxy", "Name=gw")
		post(g.API, "/proxy/gw/service/shop")
		for range kills {
			gw.expect("shop.example", "/", "blue")
			Expect(g.Kill()).To(Succeed())
			g = start(nil, args...)
		}
		gw.expect("shop.example", "/", "blue")
	})
})
