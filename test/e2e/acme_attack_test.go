package e2e_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// hold makes the authority wait before it answers a request for paths that begin so. asked receives when one comes; a value
// in answer, or its close, lets it go.
func (s ordering) hold(path string) (asked <-chan string, answer chan<- struct{}) {
	came, goes := make(chan string, 1), make(chan struct{})
	DeferCleanup(func() { close(goes) })
	s.pebble.Answer(once(path, func(_ http.ResponseWriter, r *http.Request) bool {
		came <- r.URL.Path
		<-goes
		return false
	}))
	return came, goes
}

// line sends a request line as it is, and returns the status, who answered, and the body.
func (g gateway) line(line, host string) string {
	GinkgoHelper()
	conn, err := testkit.Bounded(net.Dial("tcp", net127(g.port)))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", line, host)
	Expect(err).NotTo(HaveOccurred())
	method, _, _ := strings.Cut(line, " ")
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = res.Body.Close() }()
	return strings.TrimSpace(fmt.Sprint(res.StatusCode, " ", res.Header.Get(testkit.BackendHeader)))
}

var _ = Describe("An order, attacked", func() {
	It("answers one path of one host, reaches no backend with it and takes no other path", func() {
		s := order(testkit.PebbleOptions{}, "")
		asked, answer := s.hold(testkit.PebbleChallenge)
		s.serve("other", "other.test")
		post(s.api, "/filter", "filter_name=users", "filter_type=http_filter_basicauth", `filter_config={"users":[{"name":"ann","password":"correct-horse-battery"}]}`)
		automatic(s.api, "shop", "shop.test")
		applied(s.api, http.MethodPost, "/service/shop/filter/users")
		Eventually(asked, orderTime).Should(Receive())
		token := challengesOf(adminOf(s.Gatehouse))[0]
		name := strings.TrimPrefix(token, "/.well-known/acme-challenge/")
		Expect(s.get("shop.test", token).Body).To(HavePrefix(name + "."))
		for _, try := range [][3]string{
			{"GET " + token, "shop.test", "200"},
			{"HEAD " + token, "SHOP.test:80", "200"},
			{"GET " + token + "?x=/../../", "shop.test", "200"},
			{"GET /x/.." + token, "shop.test", "200"},
			{"GET /" + token, "shop.test", "200"},
			// The user's, who has a filter that wants a password.
			{"GET /", "shop.test", "401"},
			{"POST " + token, "shop.test", "401"},
			{"PUT " + token, "shop.test", "401"},
			{"OPTIONS " + token, "shop.test", "401"},
			{"GET " + token + "/", "shop.test", "401"},
			{"GET " + token + "/../x", "shop.test", "401"},
			{"GET " + token + "/../../../admin", "shop.test", "401"},
			{"GET " + token + ";x", "shop.test", "401"},
			{"GET " + token + "%20", "shop.test", "401"},
			{"GET " + strings.ToUpper(token), "shop.test", "401"},
			{"GET /.well-known/acme-challenge/", "shop.test", "401"},
			{"GET /.well-known/acme-challenge", "shop.test", "401"},
			// It is no path of another host.
			{"GET " + token, "other.test", "200 blue"},
			{"GET http://other.test" + token, "shop.test", "200 blue"},
			{"GET " + token, "x.shop.test", "404"},
			{"GET " + token, "127.0.0.1", "404"},
		} {
			Expect(s.line(try[0], try[1])).To(Equal(try[2]), "%s of %s", try[0], try[1])
		}
		answer <- struct{}{}
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
	})

	It("gives nobody the certificate of a host that the service does not have any more", func() {
		s := order(testkit.PebbleOptions{}, "")
		asked, answer := s.hold(testkit.PebbleFinalize)
		automatic(s.api, "shop", "shop.test")
		Eventually(asked, orderTime).Should(Receive())
		applied(s.api, http.MethodPatch, "/service/shop", "fqdn=new.test")
		answer <- struct{}{}
		Eventually(stateOf(s.api, "new.test"), orderTime).Should(Equal("issued"))
		Eventually(func() string { return s.serialOf("new.test") }).Should(Equal(certificatesOf(s.api)["new.test"].Serial))
		Eventually(func() int { return s.pebble.Count(testkit.PebbleCertificate) }, orderTime).Should(BeNumerically(">=", 2), "the old one came too")
		_, err := s.handshake("shop.test")
		Expect(err).To(MatchError(ContainSubstring("handshake failure")))
		Expect(certificatesOf(s.api)).To(HaveLen(1))
		By("and orders nothing for names that clients ask for")
		for _, name := range []string{"x.new.test", "other.test", "localhost"} {
			_, err := s.handshake(name, without)
			Expect(err).To(HaveOccurred(), name)
			s.line("GET /.well-known/acme-challenge/aaaaaaaaaaaaaaaaaaaa", name)
		}
		Expect(s.pebble.Count(testkit.PebbleNewOrder)).To(Equal(2))
	})

	It("has its keys sealed at each step, also in a backup", func() {
		dir := GinkgoT().TempDir()
		s := order(testkit.PebbleOptions{}, `,"placeholder":true`, "--data-dir", dir)
		asked, answer := s.hold(testkit.PebbleFinalize)
		automatic(s.api, "shop", "shop.test")
		sealed := func(when string, keys int) {
			GinkgoHelper()
			file := filepath.Join(GinkgoT().TempDir(), "backup.db")
			code, _, stderr := run(nil, "backup", "--data-dir", dir, file)
			Expect(code).To(BeZero(), stderr)
			content, err := os.ReadFile(file) //nolint:gosec // a file of this test
			Expect(err).NotTo(HaveOccurred())
			Expect(string(content)).NotTo(ContainSubstring("PRIVATE KEY"), when)
			Expect(strings.Count(string(content), "sealed:v1:")).To(BeNumerically(">=", keys), when)
		}
		Eventually(asked, orderTime).Should(Receive())
		sealed("while it is ordered", 3) // of the account, the order and the placeholder
		answer <- struct{}{}
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		sealed("when it is issued", 2)
		for _, text := range []string{s.Stderr.String(), s.Stdout.String(), read(s.api, "/status"), read(s.api, "/metrics"), read(s.api, "/revision")} {
			Expect(text).NotTo(ContainSubstring("PRIVATE KEY"))
		}
	})
})
