package e2e_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// siteDocument returns a configuration without the listener.
func siteDocument(b *testkit.Backend) string {
	return fmt.Sprintf(`version: 1
upstreams:
- {upstream_name: blue, upstream_ip: %s, upstream_port: %d}
services:
- service_name: site
  fqdn: "*"
  routes:
  - {route_name: root, route_prefix: /, upstreams: [blue]}
proxies:
- {name: gw, services: [site]}
`, b.IP, b.Port)
}

var _ = Describe("The listener of a standalone gateway", func() {
	// listener returns the listener's address according to the API.
	listener := func(g *testkit.Gatehouse) string {
		GinkgoHelper()
		proxy := read(g.API, "/proxy/gw")
		i, j := strings.Index(proxy, `"http_port"`), strings.Index(proxy, `,"tags"`)
		Expect([]int{i, j}).NotTo(ContainElement(-1), proxy)
		return proxy[i:j]
	}
	revision := func(g *testkit.Gatehouse) string {
		GinkgoHelper()
		a, err := g.API.Get(limit(), "/revision?limit=1")
		Expect(err).NotTo(HaveOccurred())
		_, rest, _ := strings.Cut(a.Body, `"revision":`)
		n, _, _ := strings.Cut(rest, ",")
		return n
	}

	It("remains where the flags put it, through dump, apply, restart and apply, without a revision", func() {
		dir, port, https := GinkgoT().TempDir(), freePort(), freePort()
		args := append(standaloneArgs(dir, port), "--https-port", strconv.Itoa(https), "--trusted-hops", "1")
		g := start(nil, args...)
		c, site := cliOf(g), document(siteDocument(backend("blue")))
		want := fmt.Sprintf(`"http_port":%d,"https_port":%d,"listen_ip":"127.0.0.1","trusted_hops":1`, port, https)
		const unchanged = "0 created, 0 updated, 0 deleted, 6 unchanged (revision 1)\n"

		Expect(c.good("apply", "-f", site, "-o", "table")).To(HaveSuffix("6 created, 0 updated, 0 deleted, 0 unchanged (revision 1)\n"))
		gateway{g.API, port}.expect("site.example", "/", "blue")
		Expect(listener(g)).To(ContainSubstring(want))
		dump := document(c.good("dump", "--no-revision"))
		Expect(c.good("apply", "-f", dump, "-o", "table")).To(Equal(unchanged))
		Expect(c.good("apply", "-f", site, "-o", "table")).To(Equal(unchanged))

		for range 2 {
			Expect(g.Stop(limit())).To(BeZero())
			g = start(nil, args...)
			Expect(revision(g)).To(Equal("1"))
			c = cliOf(g)
			for _, path := range []string{site, dump} {
				Expect(c.good("apply", "-f", path, "-o", "table")).To(Equal(unchanged))
			}
			Expect(c.good("dump", "--no-revision")).To(Equal(must(os.ReadFile(dump))))
			Expect(listener(g)).To(ContainSubstring(want))
			gateway{g.API, port}.expect("site.example", "/", "blue")
			Expect(g.Records("the listener is not where the flags say, but where the configuration says")).To(BeEmpty())
		}
	})

	It("follows a flag when that changes, and the API or a document until then", func() {
		dir, first, second, third := GinkgoT().TempDir(), freePort(), freePort(), freePort()
		https := strconv.Itoa(freePort())
		startAt := func(port int) *testkit.Gatehouse {
			GinkgoHelper()
			return start(nil, append(standaloneArgs(dir, port), "--https-port", https)...)
		}
		g := startAt(first)
		site := siteDocument(backend("blue"))
		cliOf(g).good("apply", "-f", document(site))
		gateway{g.API, first}.expect("site.example", "/", "blue")
		cliOf(g).good("apply", "-f", document(strings.Replace(site, "name: gw,", fmt.Sprintf("name: gw, http_port: %d,", second), 1)))
		gateway{g.API, second}.expect("site.example", "/", "blue")
		Expect(g.Stop(limit())).To(BeZero())

		By("a start with the same flags leaves it alone, and says so")
		g = startAt(first)
		gateway{g.API, second}.expect("site.example", "/", "blue")
		Expect(revision(g)).To(Equal("2"))
		records := g.Records("the listener is not where the flags say, but where the configuration says")
		Expect(records).To(HaveLen(1))
		Expect(records[0]).To(And(HaveKeyWithValue("http_port", BeNumerically("==", second)), HaveKeyWithValue("http_port_flag", BeNumerically("==", first)),
			HaveKeyWithValue("proxy", "gw")))
		Expect(g.Stop(limit())).To(BeZero())

		By("until another flag is given, or the object is put without it")
		g = startAt(third)
		gateway{g.API, third}.expect("site.example", "/", "blue")
		Expect(g.Records("the listener is not where the flags say, but where the configuration says")).To(BeEmpty())
		for _, body := range []string{fmt.Sprint("Http_port=", second), ""} {
			a, err := g.API.Do(limit(), "PUT", "/proxy/gw", formType, body)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(200), a.Body)
		}
		gateway{g.API, third}.expect("site.example", "/", "blue")
	})
})

func must(text []byte, err error) string {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}
