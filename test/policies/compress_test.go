package policies_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func compress() policy {
	// The backend's answer repeats it.
	long := "X-Long: " + strings.Repeat("a", 1100)
	both := []string{"Accept-Encoding: gzip, br", long}
	return policy{
		kind: "route_filter_compress", filter: "envoy.filters.http.compressor",
		config:  `{"algorithms":["gzip"]}`,
		changed: `{}`,
		says: func(a answer) string {
			return fmt.Sprint(a.status, " ", a.header.Get("Content-Encoding"), " ", strings.Join(a.header.Values("Vary"), ","))
		},
		requests: []request{
			{what: "a client that takes both", header: both, off: "200  ", on: "200 gzip Accept-Encoding", changed: "200 br Accept-Encoding", both: "200 br Accept-Encoding"},
			{what: "one that takes gzip", header: []string{"Accept-Encoding: gzip", long}, off: "200  ", on: "200 gzip Accept-Encoding", changed: "200 gzip Accept-Encoding", both: "200 gzip Accept-Encoding"},
			{what: "one that takes zstd", header: []string{"Accept-Encoding: zstd;q=1, gzip;q=0.5", long}, off: "200  ", on: "200 gzip Accept-Encoding", changed: "200 zstd Accept-Encoding", both: "200 zstd Accept-Encoding"},
			{what: "one that takes neither", header: []string{"Accept-Encoding: identity", long}, off: "200  ", on: "200  Accept-Encoding", changed: "200  Accept-Encoding", both: "200  Accept-Encoding"},
			{what: "a short answer", header: []string{"Accept-Encoding: gzip"}, off: "200  ", on: "200  ", changed: "200  ", both: "200  "},
			{what: "a HEAD", method: "HEAD", header: both, off: "200  ", on: "200  Accept-Encoding", changed: "200  Accept-Encoding", both: "200  Accept-Encoding"},
			{what: "a preflight", method: "OPTIONS", header: append(both, "Origin: https://a.test", "Access-Control-Request-Method: PUT"), off: "200  ", on: "200 gzip Accept-Encoding", changed: "200 br Accept-Encoding", both: "200 br Accept-Encoding"},
			{what: "a route without upstreams", path: "/empty", header: both, off: "503  ", on: "503  ", changed: "503  ", both: "503  "},
			{what: "a redirect", host: "moved.test", header: both, off: "301  ", on: "301  Accept-Encoding", changed: "301  Accept-Encoding", both: "301  Accept-Encoding"},
			{what: "a path that no route has", path: "/nowhere", header: both, off: "404  ", on: "404  ", changed: "404  ", both: "404  "},
		},
		refusals: []refusal{
			{`{"algorithms":[]}`, "Filter_config.algorithms", "is empty, so nothing would be compressed; name at least one, or omit algorithms for all"},
			{`{"algorithms":["deflate"]}`, "Filter_config.algorithms", `"deflate" is not one of br, gzip, zstd`},
			{`{"algorithms":["gzip","gzip"]}`, "Filter_config.algorithms", `names "gzip" twice`},
			{`{"level":10}`, "Filter_config.level", "10 is not between 0 and 9"},
			{`{"min_bytes":1}`, "Filter_config", `unknown field "min_bytes"`},
		},
	}
}

// upstreamAnswer is the answer of an upstream, and its coding for a client that accepts gzip.
type upstreamAnswer struct {
	what   string
	status int
	// header has lines of the form "Name: value".
	header []string
	body   string
	coding string
}

func upstreamAnswers() []upstreamAnswer {
	long := strings.Repeat("a", 1024)
	const text, length = "Content-Type: text/plain", "Content-Length: 1024"
	return []upstreamAnswer{
		{"a text", 200, []string{text, length}, long, "gzip"},
		{"a text of an unknown length", 200, []string{text}, long, "gzip"},
		{"an error", 404, []string{text, length}, long, "gzip"},
		{"a small one", 200, []string{text, "Content-Length: 1023"}, long[1:], ""},
		{"events", 200, []string{"Content-Type: text/event-stream", length}, long, ""},
		{"events of an unknown length", 200, []string{"Content-Type: text/event-stream; charset=utf-8"}, long, ""},
		{"gRPC", 200, []string{"Content-Type: application/grpc", length}, long, ""},
		{"gRPC of a kind", 200, []string{"Content-Type: application/grpc+proto"}, long, ""},
		{"a part", 206, []string{text, length, "Content-Range: bytes 0-1023/4096"}, long, ""},
		{"one that must stay as it is", 200, []string{text, length, "Cache-Control: public, no-transform"}, long, ""},
		{"one that says so in capitals", 200, []string{text, length, "Cache-Control: No-Transform"}, long, ""},
		{"one that is packed", 200, []string{text, length, "Content-Encoding: gzip"}, long, "gzip"},
		{"one that is packed otherwise", 200, []string{text, length, "Content-Encoding: br"}, long, "br"},
		{"an image", 200, []string{"Content-Type: image/png", length}, long, ""},
		{"no type", 200, []string{"Content-Type: ", length}, long, ""},
	}
}

// startUpstream runs a server behind an upstream, with a route of that name.
func (w *world) startUpstream(name string, h http.HandlerFunc) {
	GinkgoHelper()
	s := httptest.NewServer(h)
	DeferCleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	w.post("/upstream", "Upstream_name="+name, "Upstream_ip=127.0.0.1", "Upstream_port="+port)
	w.post("/service/shop/route", "Route_Name="+name, "Route_prefix=/"+name)
	w.post("/service/shop/route/" + name + "/upstream/" + name)
}

var _ = Describe("Compression", func() {
	It("does not affect what must not change, or does not shrink", func() {
		w := newWorld(compress())
		answers := upstreamAnswers()
		w.startUpstream("files", func(rw http.ResponseWriter, r *http.Request) {
			var n int
			_, _ = fmt.Sscanf(r.URL.Path, "/files/%d", &n)
			for _, h := range answers[n].header {
				name, value, _ := strings.Cut(h, ": ")
				rw.Header()[name] = []string{value}
			}
			rw.WriteHeader(answers[n].status)
			_ = http.NewResponseController(rw).Flush() // otherwise the length is added
			_, _ = io.WriteString(rw, answers[n].body)
		})
		w.attach(onShop)
		for n, a := range answers {
			got := w.send(request{what: a.what, path: fmt.Sprint("/files/", n), header: []string{"Accept-Encoding: gzip"}})
			Expect([]any{got.status, got.header.Get("Content-Encoding")}).To(Equal([]any{a.status, a.coding}), a.what)
			if a.coding == "" || strings.Contains(strings.Join(a.header, " "), "Content-Encoding") {
				Expect(got.body).To(Equal(a.body), a.what)
			} else {
				Expect(len(got.body)).To(BeNumerically("<", 100), a.what)
			}
		}
	})

	It("is as fast or as small as its level says", func() {
		w := newWorld(compress())
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same text in each run
		var text strings.Builder
		for range 20_000 {
			text.WriteString([]string{"gate", "house", "upstream", "route", "filter", "ready", "-", " "}[random.IntN(8)])
		}
		w.startUpstream("files", func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(rw, text.String())
		})
		w.attach(onShop)
		for _, algorithm := range []string{"br", "gzip", "zstd"} {
			size := map[int]int{}
			for _, level := range []int{1, 9} {
				w.configure(fmt.Sprintf(`{"level":%d}`, level))
				a := w.send(request{path: "/files", header: []string{"Accept-Encoding: " + algorithm}})
				Expect(a.header.Get("Content-Encoding")).To(Equal(algorithm))
				size[level] = len(a.body)
			}
			Expect(size[9]).To(BeNumerically("<", float64(size[1])*0.95), "%s: %v", algorithm, size)
		}
	})

	It("passes on events one by one", func() {
		w := newWorld(compress())
		next := make(chan struct{})
		w.startUpstream("events", func(rw http.ResponseWriter, r *http.Request) {
			rw.Header().Set("Content-Type", "text/event-stream")
			for n := range 3 {
				_, _ = fmt.Fprintf(rw, "data: %d\n", n)
				_ = http.NewResponseController(rw).Flush()
				select {
				case <-next: // the client has it
				case <-r.Context().Done():
					return
				}
			}
		})
		w.attach(onShop)
		ctx, cancel := context.WithCancel(limit())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/events", w.port), http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		req.Host = "shop.test"
		req.Header.Set("Accept-Encoding", "gzip, br, zstd")
		resp, err := (&http.Client{Timeout: testkit.Patience}).Do(req)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = resp.Body.Close() }()
		lines := bufio.NewReader(resp.Body)
		for n := range 3 {
			line, err := lines.ReadString('\n')
			Expect(err).NotTo(HaveOccurred())
			Expect(line).To(Equal(fmt.Sprintf("data: %d\n", n)))
			next <- struct{}{}
		}
	})
})
