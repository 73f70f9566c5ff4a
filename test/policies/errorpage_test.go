package policies_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func errorPage() policy {
	const closed, nowhere = "503 text/plain this service is not available\n", "404 text/plain nothing is served for this host and path\n"
	const html, json, text = "503 text/html; charset=utf-8 <p>503", `502 application/json {"s":502}`, "502 text/plain; charset=utf-8 502!"
	return policy{
		kind: "route_filter_errorpage", filter: "envoy.filters.http.lua/errorpage",
		config:  `{"pages":[{"statuses":["404","500-599"],"html":"<p>{status}"}]}`,
		changed: `{"pages":[{"statuses":["503","404"],"json":"{\"s\":{status}}","text":"{status}!","status":502}]}`,
		// says adds more of an answer that no backend gave.
		says: func(a answer) string {
			if a.seen != nil {
				return fmt.Sprint(a.status)
			}
			body, _, _ := strings.Cut(a.body, "request_id")
			if strings.Contains(body, "<!DOCTYPE") {
				body = "the gateway's page"
			}
			return fmt.Sprint(a.status, " ", a.header.Get("Content-Type"), " ", body)
		},
		requests: []request{
			{what: "a plain one", off: "200", on: "200", changed: "200", both: "200"},
			{what: "an error of the upstream", path: "/shop?status=404", asked: true, off: "404", on: "404 text/html; charset=utf-8 <p>404", changed: text, both: text},
			{what: "a route without upstreams", path: "/empty", off: closed, on: html, changed: text, both: html},
			// explain predicts the text of what the gateway refuses, and these get it in another form without a page.
			{what: "the same for JSON", path: "/empty", asked: true, header: []string{"Accept: application/json"}, off: `503 application/problem+json {"`, on: html, changed: json, both: html},
			{what: "the same for a browser", path: "/empty", asked: true, header: []string{"Accept: text/html,*/*"}, off: "503 text/html; charset=utf-8 the gateway's page", on: html, changed: text, both: html},
			{what: "a HEAD", method: "HEAD", path: "/empty", off: "503 text/plain ", on: "503 text/html; charset=utf-8 ", changed: "502 text/plain; charset=utf-8 ", both: "503 text/html; charset=utf-8 "},
			{what: "a redirect", host: "moved.test", off: "301  ", on: "301  ", changed: "301  ", both: "301  "},
			{what: "a path that no route has", path: "/nowhere", off: nowhere, on: nowhere, changed: nowhere, both: nowhere},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.pages", `has 0 pages; give 1 to 8, such as [{"statuses":["500-599"],"html":"<h1>Sorry</h1>"}]`},
			{`{"pages":[{"statuses":["500"]}]}`, "Filter_config.pages[0]", "has no page; give html, json or text"},
			{`{"pages":[{"text":"a"}]}`, "Filter_config.pages[0].statuses", `has 0 entries; give 1 to 200, such as ["404","500-599"]`},
			{`{"pages":[{"statuses":["302"],"text":"a"}]}`, "Filter_config.pages[0].statuses", `"302" is not a status from 400 to 599 or a range such as 500-599`},
			{`{"pages":[{"statuses":["599-500"],"text":"a"}]}`, "Filter_config.pages[0].statuses", `"599-500" is not a status from 400 to 599 or a range such as 500-599`},
			{`{"pages":[{"statuses":["+44"],"text":"a"}]}`, "Filter_config.pages[0].statuses", `"+44" is not a status from 400 to 599 or a range such as 500-599`},
			{`{"pages":[{"statuses":["404"],"text":"a","status":200}]}`, "Filter_config.pages[0].status", "200 is not between 400 and 599"},
			{`{"pages":[{"statuses":["404"],"json":"{"}]}`, "Filter_config.pages[0].json", "is not JSON with a number in place of {status}"},
			{`{"pages":[{"statuses":["404"],"text":"` + strings.Repeat("a", 65537) + `"}]}`, "Filter_config.pages[0].text", "has 65537 bytes; at most 65536 are allowed"},
			{`{"pages":[{"statuses":["404"],"text":"a","body":"b"}]}`, "Filter_config", `unknown field "body"`},
		},
	}
}

var _ = Describe("Pages in place of errors", func() {
	It("hide what the upstream sent, whatever it is, and keep what clients need", func() {
		w := newWorld(errorPage())
		w.startUpstream("broken", func(rw http.ResponseWriter, r *http.Request) {
			h := rw.Header()
			h["Set-Cookie"] = []string{"a=1", "b=2"}
			h["Www-Authenticate"] = []string{"Bearer", `Basic realm="x"`}
			h.Set("Retry-After", "7")
			h.Set("X-Frame-Options", "DENY")
			h.Set("Etag", `"secret"`)
			h.Set("Content-Encoding", "gzip")
			h.Set("Content-Disposition", "attachment")
			body := "secret"
			switch r.URL.Path {
			case "/broken/empty":
				body = ""
			case "/broken/large":
				body = strings.Repeat(body, 1_000_000)
			case "/broken/stream":
				rw.WriteHeader(http.StatusInternalServerError)
				for range 20 {
					_, _ = io.WriteString(rw, body)
					_ = http.NewResponseController(rw).Flush()
				}
				return
			case "/broken/flushed":
				rw.WriteHeader(http.StatusInternalServerError)
				_ = http.NewResponseController(rw).Flush()
				return
			case "/broken/trailer":
				h.Set("Trailer", "X-Secret")
				defer h.Set("X-Secret", "secret")
			}
			rw.WriteHeader(http.StatusInternalServerError)
			_, _ = io.WriteString(rw, body)
		})
		w.attach(onShop)
		for _, path := range []string{"", "/empty", "/large", "/stream", "/flushed", "/trailer"} {
			for _, header := range [][]string{nil, {"Accept: application/json"}, {"Content-Type: application/grpc"}, {"Accept-Encoding: gzip"}} {
				a := w.send(request{path: "/broken" + path, header: header})
				Expect([]any{a.status, a.body}).To(Equal([]any{500, "<p>500"}), path)
				Expect(fmt.Sprint(a.header)).NotTo(ContainSubstring("secret"), path)
				Expect(a.header).NotTo(Or(HaveKey("Content-Encoding"), HaveKey("Content-Disposition")), path)
				Expect(a.header["Set-Cookie"]).To(Equal([]string{"a=1", "b=2"}))
				Expect(a.header["Www-Authenticate"]).To(Equal([]string{"Bearer", `Basic realm="x"`}))
				Expect([]string{a.header.Get("Retry-After"), a.header.Get("X-Frame-Options")}).To(Equal([]string{"7", "DENY"}))
			}
		}
		a := w.send(request{method: "HEAD", path: "/broken"})
		Expect([]any{a.status, a.body, a.header.Get("Content-Length")}).To(Equal([]any{500, "", ""}))
	})

	It("take the place of refusals, whose headers stay", func() {
		w := newWorld(errorPage())
		givenKeys(w)
		w.configure(`{"pages":[{"statuses":["400-599"],"text":"page {status}"}]}`)
		closed, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		w.post("/upstream", "Upstream_name=closed", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(closed))
		for name, filter := range map[string]string{"keys": "http_filter_apikey", "once": "route_filter_ratelimit", "closed": "", "shared": "vh_filter_cors"} {
			w.post("/service/shop/route", "Route_Name="+name, "Route_prefix=/"+name)
			w.post("/service/shop/route/" + name + "/upstream/" + map[bool]string{true: "closed", false: "blue"}[name == "closed"])
			if filter != "" {
				w.post("/filter", "Filter_name="+name, "Filter_type="+filter, "Filter_config="+map[string]string{
					"keys": `{"keys":"partners"}`, "once": `{"per":"client","limit":"1/day"}`, "shared": `{"origins":["https://a.test"]}`,
				}[name])
				w.attach("/service/shop/route/" + name + "/filter/" + name)
			}
		}
		w.attach(onShop)
		for _, try := range []struct {
			r               request
			body, has, says string
		}{
			{request{path: "/keys"}, "page 401", "Www-Authenticate", "ApiKey"},
			{request{path: "/keys", header: []string{"Accept: text/html"}}, "page 401", "Cache-Control", "no-store"},
			{request{path: "/closed"}, "page 503", "Content-Type", "text/plain; charset=utf-8"},
			{request{path: "/shared?status=500", header: []string{"Origin: https://a.test"}}, "page 500", "Access-Control-Allow-Origin", "https://a.test"},
			{request{path: "/shop?status=429&header=retry-after:7"}, "page 429", "Retry-After", "7"},
		} {
			a := w.send(try.r)
			Expect([]string{a.body, a.header.Get(try.has)}).To(Equal([]string{try.body, try.says}), try.r.path)
		}
		var limited answer
		Eventually(func() string { limited = w.send(request{path: "/once"}); return limited.body }).Should(Equal("page 429"))
		Expect(strconv.Atoi(limited.header.Get("Retry-After"))).To(BeNumerically(">", 0))
	})

	It("have no place in an answer that ends with trailers only, and what it says is hidden", func() {
		w := newWorld(errorPage())
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Trailer", "X-Secret")
			rw.WriteHeader(http.StatusInternalServerError)
			_ = http.NewResponseController(rw).Flush()
			rw.Header().Set("X-Secret", "secret")
		}))
		s.Config.Protocols = protocols
		s.Start()
		DeferCleanup(s.Close)
		w.post("/upstream", "Upstream_name=two", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c",
			fmt.Sprint("Upstream_port=", s.Listener.Addr().(*net.TCPAddr).Port)) //nolint:errcheck,forcetypeassert // it is one
		w.post("/service/shop/route", "Route_Name=two", "Route_prefix=/two")
		w.post("/service/shop/route/two/upstream/two")
		w.attach(onShop)
		// A client of HTTP/2 gets trailers.
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{Protocols: protocols}}
		DeferCleanup(client.CloseIdleConnections)
		req, err := http.NewRequestWithContext(limit(), http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/two", w.port), http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		req.Host = "shop.test"
		resp, err := client.Do(req)
		Expect(err).NotTo(HaveOccurred())
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{resp.StatusCode, resp.ProtoMajor, string(body), len(resp.Trailer)}).To(Equal([]any{500, 2, "", 0}))
	})
})
