package app_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// debug waits for the server and returns the address of its profiles.
func (r *running) debug() string {
	GinkgoHelper()
	r.port() // it is up
	found := regexp.MustCompile(`debug=(http://\S+/debug/pprof/)`).FindStringSubmatch(string(r.log.Contents()))
	Expect(found).To(HaveLen(2), string(r.log.Contents()))
	return found[1]
}

// get returns the body of an answer once it is complete.
func get(at string) (string, error) {
	client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get(at)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return string(body), err
}

var _ = Describe("The debug server", func() {
	DescribeTable("can be called by tools on this machine, and by no web page", func(want int, header ...string) {
		server := serve(settings(GinkgoT().TempDir(), map[string]string{"debug-addr": "[::1]:0"}))
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.debug(), http.NoBody)
		Expect(err).NotTo(HaveOccurred())
		for pair := range slices.Chunk(header, 2) {
			if pair[0] == "Host" {
				req.Host = pair[1]
			}
			req.Header.Set(pair[0], pair[1])
		}
		client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Do(req)
		Expect(err).NotTo(HaveOccurred())
		Expect(res.Body.Close()).To(Succeed())
		Expect(res.StatusCode).To(Equal(want))
	},
		Entry("its own address", 200),
		Entry("another loopback address", 200, "Host", "127.0.0.1"),
		Entry("a tunnel", 200, "Host", "localhost:6060"),
		Entry("typed into a browser", 200, "Sec-Fetch-Site", "none"),
		Entry("a link of its own index", 200, "Sec-Fetch-Site", "same-origin"),
		Entry("a page whose name leads here", 403, "Host", "evil.example", "Sec-Fetch-Site", "same-origin"),
		Entry("a name that begins like an address", 403, "Host", "127.0.0.1.evil.example:6060"),
		Entry("an address that others can have too", 403, "Host", "192.0.2.1:6060"),
		Entry("a page of another site", 403, "Sec-Fetch-Site", "cross-site"),
		Entry("a page of another port", 403, "Sec-Fetch-Site", "same-site"),
	)

	It("stops with the program, and ends a profile that is being taken", func() {
		server, stop := serveUntil(settings(GinkgoT().TempDir(), map[string]string{"debug-addr": "127.0.0.1:0"}))
		at := server.debug()
		ended := make(chan error, 1)
		go func() {
			_, err := get(at + "profile?seconds=3600")
			ended <- err
		}()
		Eventually(func() (string, error) { return get(at + "goroutine?debug=1") }).Should(ContainSubstring("net/http/pprof.Profile"))
		stop()
		Eventually(server.done).Should(Receive(BeNil()))
		Eventually(ended).Should(Receive(HaveOccurred()))
	})

	It("does not show the command line, which may hold a password", func() {
		server := serve(settings(GinkgoT().TempDir(), map[string]string{"debug-addr": "127.0.0.1:0"}))
		Expect(status(server.debug()+"cmdline", "")).To(Equal(http.StatusNotFound))
		Expect(get(server.debug())).To(ContainSubstring("heap?debug=1"))
	})

	It("cannot be an upstream while the API requires no token", func() {
		server := serve(settings(GinkgoT().TempDir(), map[string]string{"debug-addr": "127.0.0.1:0"}))
		at, err := url.Parse(server.debug())
		Expect(err).NotTo(HaveOccurred())
		client := &http.Client{Timeout: testkit.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.PostForm("http://127.0.0.1:"+server.port()+"/upstream",
			url.Values{"Upstream_name": {"self"}, "Upstream_ip": {"localhost"}, "Upstream_port": {at.Port()}})
		Expect(err).NotTo(HaveOccurred())
		defer res.Body.Close()
		Expect(res.StatusCode).To(Equal(http.StatusUnprocessableEntity))
		Expect(io.ReadAll(res.Body)).To(ContainSubstring("leads to Gatehouse's own debug server"))
	})
})
