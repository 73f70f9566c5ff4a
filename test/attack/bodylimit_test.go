package attack_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
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
)

// limitBytes is the limit of the services that are attacked.
const limitBytes = 20_000

// gzipped compresses texts, each into its own member.
func gzipped(texts ...string) string {
	var b bytes.Buffer
	for _, text := range texts {
		w := gzip.NewWriter(&b)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
	}
	return b.String()
}

// deflated compresses a text as zlib does (RFC 9110 section 8.4.1.2).
func deflated(text string) string {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return b.String()
}

// upload is a body that tries to get past a limit.
type upload struct {
	what, body string
	// header has lines of the form "Name: value". Without a Content-Length, the body is sent in chunks.
	header []string
	// limited and unpacked say what the backend receives if bodies are limited, and if they are also unpacked: the
	// number of bytes, or the status of a refusal.
	limited, unpacked string
}

func uploads() []upload {
	bomb := gzipped(strings.Repeat("\x00", 50_000_000))
	nested := gzipped(bomb)
	large := strings.Repeat("a", limitBytes+1)
	length := func(n int) string { return "Content-Length: " + strconv.Itoa(n) }
	const gz = "Content-Encoding: gzip"
	return []upload{
		{"a body with its length", large, []string{length(len(large))}, "413", "413"},
		{"a body in chunks", large, nil, "413", "413"},
		{"a body in chunks that just fits", large[1:], nil, "20000", "20000"},
		{"one that waits to be asked", large, []string{length(len(large)), "Expect: 100-continue"}, "413", "413"},
		{"50 MB in 49 KB", bomb, []string{length(len(bomb)), gz}, "413", "413"},
		{"20 KB in a few bytes", gzipped(large), []string{length(len(gzipped(large))), gz}, strconv.Itoa(len(gzipped(large))), "413"},
		{"packed so well that Envoy would cut it", gzipped(large[2:]), []string{gz}, strconv.Itoa(len(gzipped(large[2:]))), "19999"},
		{"a bomb in a bomb", nested, []string{gz}, strconv.Itoa(len(nested)), "413"},
		{"a bomb in a bomb that says so", nested, []string{"Content-Encoding: gzip, gzip"}, strconv.Itoa(len(nested)), "413"},
		{"a bomb in chunks", bomb, []string{gz}, "413", "413"},
		{"one that must not be changed", gzipped(large), []string{gz, "Cache-Control: no-transform"}, strconv.Itoa(len(gzipped(large))), "413"},
		{"a coding in capitals", gzipped(large), []string{"Content-Encoding: GZIP"}, strconv.Itoa(len(gzipped(large))), "413"},
		{"2000 small members", gzipped(strings.Split(strings.Repeat("a ", 2000), " ")...), []string{gz}, "413", "1"},
		{"a coding that nobody unpacks", large, []string{"Content-Encoding: x-gzip"}, "413", "413"},
		{"a bomb that nobody unpacks (deflate)", deflated(strings.Repeat("\x00", 10_000_000)), []string{"Content-Encoding: deflate"}, "9741", "9741"},
		{"a bomb in another coding, of more than the limit", large, []string{"Content-Encoding: br"}, "413", "413"},
		{"two codings", gzipped(deflated(large)), []string{"Content-Encoding: deflate, gzip"}, strconv.Itoa(len(gzipped(deflated(large)))), strconv.Itoa(len(gzipped(deflated(large))))},
		{"what is not packed", large[2:], []string{gz}, "19999", "0"},
	}
}

// startCounter runs a backend that answers with the number of bytes that it received.
func startCounter() *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_, _ = fmt.Fprint(w, n)
	}))
	DeferCleanup(s.Close)
	return s
}

// addLimited creates a service with limited bodies, until the end of the spec.
func addLimited(ctx context.Context, name, config string) {
	GinkgoHelper()
	gw.add(ctx, "/service", "Service_Name="+name, "fqdn="+name+".test")
	gw.add(ctx, "/service/"+name+"/route", "Route_Name=root", "Route_prefix=/")
	gw.link(ctx, "/service/"+name+"/route/root/upstream/counter")
	gw.link(ctx, "/proxy/gw/service/"+name)
	gw.add(ctx, "/filter", "Filter_name="+name, "Filter_type=route_filter_bodylimit", "Filter_config="+config)
	gw.link(ctx, "/service/"+name+"/filter/"+name+"?wait=applied")
}

// sendUpload sends a body with a client, and returns what the backend received, or the status.
func sendUpload(ctx context.Context, client *http.Client, method, host string, u upload) string {
	GinkgoHelper()
	body := io.MultiReader(strings.NewReader(u.body)) // of unknown length
	for _, h := range u.header {
		if strings.HasPrefix(h, "Content-Length") {
			body = strings.NewReader(u.body)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://127.0.0.1:"+strconv.Itoa(gw.port)+"/", body)
	Expect(err).NotTo(HaveOccurred())
	req.Host = host
	for _, h := range u.header {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	Expect(err).NotTo(HaveOccurred())
	if resp.StatusCode != http.StatusOK {
		Expect(string(text)).To(Equal("the body of the request is larger than is allowed here\n"))
		return strconv.Itoa(resp.StatusCode)
	}
	return string(text)
}

// clients returns clients that send bodies, by their protocol.
func clients() map[string]*http.Client {
	h2 := &http.Protocols{}
	h2.SetUnencryptedHTTP2(true)
	return map[string]*http.Client{
		"HTTP/1.1": {Transport: &http.Transport{DisableKeepAlives: true, ExpectContinueTimeout: time.Minute}},
		"HTTP/2":   {Transport: &http.Transport{Protocols: h2}},
	}
}

var _ = Describe("A limit of bodies", func() {
	BeforeEach(func(ctx SpecContext) {
		_, port, err := net.SplitHostPort(startCounter().Listener.Addr().String())
		Expect(err).NotTo(HaveOccurred())
		gw.add(ctx, "/upstream", "Upstream_name=counter", "Upstream_ip=127.0.0.1", "Upstream_port="+port)
		addLimited(ctx, "limited", fmt.Sprintf(`{"bytes":%d}`, limitBytes))
		addLimited(ctx, "unpacked", fmt.Sprintf(`{"bytes":%d,"decompress":true}`, limitBytes))
	}, NodeTimeout(time.Minute))

	It("applies whatever a body declares about itself, in HTTP/1.1 and in HTTP/2", func(ctx SpecContext) {
		for protocol, client := range clients() {
			for _, u := range uploads() {
				for _, method := range []string{http.MethodPost, http.MethodGet} {
					Expect(sendUpload(ctx, client, method, "limited.test", u)).To(Equal(u.limited), "%s %s, limited: %s", protocol, method, u.what)
					Expect(sendUpload(ctx, client, method, "unpacked.test", u)).To(Equal(u.unpacked), "%s %s, unpacked: %s", protocol, method, u.what)
				}
			}
		}
	}, SpecTimeout(2*time.Minute))

	DescribeTable("applies if the lengths of a body differ", func(ctx SpecContext, status int, lines ...string) {
		Expect(gw.raw(ctx, append([]string{"POST / HTTP/1.1", "Host: limited.test", "Connection: close"}, lines...)...).Status).To(Equal(status))
	},
		Entry("two of them", 400, "Content-Length: 5", "Content-Length: 30000", "", "aaaaa"),
		Entry("a length and chunks", 400, "Content-Length: 5", "Transfer-Encoding: chunked", "", "7530", strings.Repeat("a", 30_000), "0", ""),
		Entry("an oversized chunk", 413, "Transfer-Encoding: chunked", "", "7530", strings.Repeat("a", 30_000), "0", ""),
		Entry("a negative length", 400, "Content-Length: -1", "", "aaaaa"),
		Entry("a length that overflows", 400, "Content-Length: 99999999999999999999", "", "aaaaa"),
		Entry("a length over the limit, with a body that is not sent to its end", 413, "Content-Length: 30000", "", strings.Repeat("a", 25_000)),
		Entry("a small length, and more after it", 200, "Content-Length: 5", "", "aaaaa"+strings.Repeat("a", 20_000)),
	)

	It("refuses a body of one HTTP/2 frame by its Content-Length, and counts its decompressed size", func(ctx SpecContext) {
		addLimited(ctx, "small", `{"bytes":100,"decompress":true}`)
		h2 := clients()["HTTP/2"]
		frame := strings.Repeat("a", 16_384)
		for _, try := range []struct {
			what, body, header, got string
		}{
			{"a frame", frame, "Content-Length: 16384", "413"},
			{"more than a frame", frame + "a", "Content-Length: 16385", "413"},
			{"a frame that is packed", gzipped(frame), "Content-Encoding: gzip", "413"},
		} {
			Expect(sendUpload(ctx, h2, http.MethodPost, "small.test", upload{body: try.body, header: []string{try.header, fmt.Sprint("Content-Length: ", len(try.body))}})).To(Equal(try.got), try.what)
		}
		Expect(sendUpload(ctx, clients()["HTTP/1.1"], http.MethodPost, "small.test", upload{body: frame})).To(Equal("413"))
	}, SpecTimeout(time.Minute))

	It("is as hard to smuggle past as any other route", func(ctx SpecContext) {
		for _, s := range some(8, smuggled()) {
			answers := everything(ctx, strings.ReplaceAll(s.request, "shop.example", "limited.test"))
			Expect(answers).To(HavePrefix("HTTP/1.1 "+s.status+" "), s.what)
			Expect(strings.Count(answers, "HTTP/1.1 ")).To(Equal(1), s.what+": "+answers)
		}
	}, SpecTimeout(2*time.Minute))

	It("refuses websockets, which would wait forever", func(ctx SpecContext) {
		a := gw.raw(ctx, "GET / HTTP/1.1", "Host: limited.test", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==")
		Expect(a.Status).To(Equal(http.StatusForbidden))
	}, SpecTimeout(time.Minute))
})

var _ = Describe("A small limit for bodies", func() {
	It("holds over HTTP/2 for a body that arrives in one piece", func(ctx SpecContext) {
		gw.add(ctx, "/filter", "Filter_name=tiny", "Filter_type=route_filter_bodylimit", `Filter_config={"bytes":10}`)
		gw.addService(ctx, "tiny", "tiny.test")
		gw.link(ctx, "/service/tiny/filter/tiny")
		gw.link(ctx, "/proxy/gw/service/tiny?wait=applied")
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		client := &http.Client{Transport: &http.Transport{Protocols: protocols}, Timeout: time.Minute}
		defer client.CloseIdleConnections()
		before := gw.blue.Requests()
		for n, want := range map[int]int{10: http.StatusOK, 11: http.StatusRequestEntityTooLarge, 5000: http.StatusRequestEntityTooLarge, 16000: http.StatusRequestEntityTooLarge} {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/", gw.port), strings.NewReader(strings.Repeat("a", n)))
			Expect(err).NotTo(HaveOccurred())
			req.Host = "tiny.test"
			resp, err := client.Do(req)
			Expect(err).NotTo(HaveOccurred())
			body, err := io.ReadAll(resp.Body)
			Expect(err).NotTo(HaveOccurred())
			Expect(resp.Body.Close()).To(Succeed())
			Expect([]any{resp.ProtoMajor, resp.StatusCode}).To(Equal([]any{2, want}), "%d: %s", n, body)
			if want != http.StatusOK {
				Expect(string(body)).To(Equal("the body of the request is larger than is allowed here\n"))
			}
		}
		Expect(gw.blue.Requests()).To(Equal(before + 1))
	}, SpecTimeout(time.Minute))
})
