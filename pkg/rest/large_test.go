package rest_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// liveHeap is what is in use, in bytes.
func liveHeap() int64 {
	runtime.GC()
	runtime.GC() // what has a finalizer goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // no heap is so large
}

var _ = Describe("A large list of changes", func() {
	const many = 10_000

	var a *api
	BeforeEach(func() {
		a = startAPI()
		a.given("/upstream", "Upstream_name=first&Upstream_ip=192.0.2.1&Upstream_port=80") // revision 1
		var doc strings.Builder
		doc.WriteString(`{"version":1,"upstreams":[`)
		for i := range many {
			fmt.Fprintf(&doc, `{"upstream_name":"u%05d","upstream_ip":"192.0.2.1","upstream_port":%d},`, i, 1000+i)
		}
		got := a.do(http.MethodPut, "/config", "application/json", strings.NewReader(strings.TrimSuffix(doc.String(), ",")+"]}")) // 2
		Expect(got.status).To(Equal(200), "%.500s", got.body)
		got = a.do(http.MethodPut, "/config?prune=true", "application/json", strings.NewReader(`{"version":1}`)) // 3
		Expect(got.status).To(Equal(200), "%.500s", got.body)
	})

	DescribeTable("is whole, in order and right", func(revision int, action, side string) {
		got := a.post(fmt.Sprintf("/revision/%d/rollback?dry_run=true", revision), "")
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
		for i, c := range answer.Data.Changes[1:] {
			Expect([]string{c.Action, c.Path, c.Kind}).To(Equal([]string{action, fmt.Sprintf("/upstream/u%05d", i), "upstream"}))
			Expect(c.Fields).To(ContainElements(
				map[string]any{"field": "upstream_name", side: fmt.Sprintf("u%05d", i)}, map[string]any{"field": "upstream_port", side: float64(1000 + i)}))
		}
	},
		Entry("of a rollback that restores", 2, "create", "after"),
	)

	DescribeTable("is not in memory while a client reads it", func(method, path string) {
		before := liveHeap()
		conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
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
