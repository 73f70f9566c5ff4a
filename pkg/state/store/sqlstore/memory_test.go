package sqlstore_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/storetest"
)

// liveHeap returns the bytes in use.
func liveHeap() int {
	runtime.GC()
	runtime.GC() // objects with a finalizer are freed by the second run
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc) //nolint:gosec // no heap is so large
}

var _ = DescribeTable("A rollback keeps only part of its changes in memory, whatever it changes",
	func(ctx SpecContext, newURL func(context.Context) string) {
		const routes, size = 2000, 4000
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: newURL(ctx)})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(s.Close)
		sqlstore.SetMemory(s, 100, size)
		write := func(fn func(w store.Writer) error) {
			GinkgoHelper()
			_, err := s.Write(ctx, store.Origin{Actor: "tester"}, fn)
			Expect(err).NotTo(HaveOccurred())
		}
		route := func(i int, letter string) *model.Route {
			text := strings.Repeat(letter, size)
			return &model.Route{
				Service: "shop", Name: fmt.Sprint("r", i), Prefix: "/",
				Config: model.RouteConfig{Headers: []model.ValueMatch{{Name: "x", Exact: &text}}},
			}
		}
		write(func(w store.Writer) error {
			Expect(w.Insert(&model.Service{Name: "shop", FQDN: "shop.example.com", HTTPS: model.HTTPSBoth})).To(Succeed())
			for i := range routes {
				Expect(w.Insert(route(i, "a"))).To(Succeed())
			}
			return nil
		})
		write(func(w store.Writer) error {
			for i := range routes {
				Expect(w.Replace(route(i, "b"))).To(Succeed())
			}
			return nil
		})
		before, most, pages := liveHeap(), 0, 0
		look := func() { most = max(most, liveHeap()-before) }
		write(func(w store.Writer) error {
			Expect(store.Rollback(&storetest.Interrupted{Writer: w, Before: func(int) { look(); pages++ }}, 1)).To(Succeed())
			look()
			seen := 0
			for _, err := range w.Written()() {
				Expect(err).NotTo(HaveOccurred())
				if seen++; seen%500 == 0 {
					look()
				}
			}
			Expect(seen).To(Equal(routes))
			return nil
		})
		Expect(pages).To(Equal(routes / 500))
		AddReportEntry("heap", fmt.Sprintf("%d bytes more, for %d bytes of text before and as much after", most, routes*size))
		Expect(most).To(BeNumerically("<", routes*size))
	},
	Entry("SQLite", newSQLite),
	Entry("Postgres", newPostgres),
)

var _ = DescribeTable("A transaction finds what it has written, whether its list of changes is in memory or not",
	func(ctx SpecContext, newURL func(context.Context) string, kept int) {
		const many = 600 // more than one batch
		s, err := sqlstore.Open(ctx, sqlstore.Options{URL: newURL(ctx)})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(s.Close)
		sqlstore.SetMemory(s, 10, kept)
		upstream := func(i, port int) *model.Upstream {
			u := model.NewUpstream()
			u.Name, u.IP, u.Port = fmt.Sprint("u", i), "192.0.2.1", port
			return u
		}
		_, err = s.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
			for i := range many {
				Expect(w.Insert(upstream(i, 8000))).To(Succeed())
			}
			for i := 0; i < many; i += 2 {
				Expect(w.Replace(upstream(i, 9000))).To(Succeed())
			}
			Expect(w.RemoveAll([]model.Key{model.UpstreamKey("u3"), model.UpstreamKey("u4")})).To(Succeed())
			for i := range many {
				obj, err := w.Get(model.UpstreamKey(fmt.Sprint("u", i)))
				if i == 3 || i == 4 {
					Expect(model.IsKind(err, model.NotFound)).To(BeTrue())
					continue
				}
				Expect(err).NotTo(HaveOccurred())
				Expect(obj).To(And(HaveField("ID", int64(i+1)), HaveField("Port", 8000+1000*((i+1)%2))))
			}
			return nil
		})
		Expect(err).NotTo(HaveOccurred())
	},
	Entry("SQLite, in memory", newSQLite, 16<<20),
	Entry("SQLite, read back", newSQLite, 1),
	Entry("Postgres, in memory", newPostgres, 16<<20),
	Entry("Postgres, read back", newPostgres, 1),
)
