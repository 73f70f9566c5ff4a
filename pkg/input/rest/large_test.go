package rest_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// liveHeap returns the size of the heap in use, in bytes.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // the second run frees objects with finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap is so large
}

var _ = Describe("A large list of changes", Ordered, func() {
	// many changes with texts of this size do not fit into the buffers of a connection.
	const many, size = 1200, 5000

	name := func(i int) string { return fmt.Sprintf("r%05d", i) }
	var a *api
	BeforeAll(func(ctx SpecContext) {
		a = startAPI()
		a.given("/upstream", "Upstream_name=first&Upstream_ip=192.0.2.1&Upstream_port=80") // revision 1
		text := strings.Repeat("v", size)
		for _, change := range []func(store.Writer) error{
			func(w store.Writer) error { // 2
				err := w.Insert(&model.Service{Name: "large", FQDN: "large.example.com", HTTPS: model.HTTPSBoth, Mode: model.ModeHTTP})
				for i := range many {
					route := &model.Route{Service: "large", Name: name(i), Prefix: "/", Config: model.RouteConfig{Headers: []model.ValueMatch{{Name: "x", Exact: &text}}}}
					err = errors.Join(err, w.Insert(route))
				}
				return err
			},
			func(w store.Writer) error { return store.Delete(w, model.ServiceKey("large")) }, // 3
		} {
			_, err := a.store.Write(ctx, store.Origin{Actor: "tester"}, change)
			Expect(err).NotTo(HaveOccurred())
		}
	})

	It("of a dry run is whole, in order and right, and nothing is stored", func() {
		got := a.post("/revision/2/rollback?dry_run=true", "")
		Expect(got.status).To(Equal(200), "%.500s", got.body)
		Expect(a.revision()).To(Equal(int64(3)))
		var answer struct {
			Data struct {
				DryRun  bool `json:"dry_run"`
				Changes []struct {
					Action, Path, Kind string
					Fields             []map[string]any
				}
			}
		}
		Expect(json.Unmarshal([]byte(got.body), &answer)).To(Succeed())
		Expect(answer.Data.DryRun).To(BeTrue())
		Expect(answer.Data.Changes).To(HaveLen(many + 1))
		Expect(answer.Data.Changes[0].Path).To(Equal("/service/large"))
		for i, c := range answer.Data.Changes[1:] {
			Expect([]string{c.Action, c.Path, c.Kind}).To(Equal([]string{"create", "/service/large/route/" + name(i), "route"}))
			Expect(c.Fields).To(HaveLen(5))
			Expect(c.Fields[1]).To(Equal(map[string]any{"field": "route_name", "after": name(i)}))
		}
	})

	DescribeTable("is not in memory while a client reads it", func(method, path string) {
		before := liveHeap()
		conn, err := testkit.Bounded(net.Dial("tcp", strings.TrimPrefix(a.url, "http://")))
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close()
		Expect(conn.(*net.TCPConn).SetReadBuffer(4096)).To(Succeed())
		_, err = fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", method, path)
		Expect(err).NotTo(HaveOccurred())
		res, err := http.ReadResponse(bufio.NewReaderSize(conn, 4096), nil)
		Expect(err).NotTo(HaveOccurred())
		defer res.Body.Close()
		Expect(res.StatusCode).To(Equal(200))
		Expect(res.ContentLength).To(BeNumerically(">", 5<<20))
		grown := liveHeap() - before
		AddReportEntry("heap", fmt.Sprintf("%d bytes more, of an answer of %d", grown, res.ContentLength))
		Expect(grown).To(BeNumerically("<", res.ContentLength/4))
	},
		Entry("dry run of a rollback", http.MethodPost, "/revision/2/rollback?dry_run=true"),
		Entry("revision", http.MethodGet, "/revision/3"),
	)
})
