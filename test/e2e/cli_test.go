package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// cli runs commands of the program against one server.
type cli struct {
	server string
	home   string
	// env are further variables.
	env []string
}

func cliOf(g *testkit.Gatehouse) cli { return cli{server: g.API.URL, home: GinkgoT().TempDir()} }

// run runs a command and waits for its end.
func (c cli) run(args ...string) (code int, stdout, stderr string) {
	GinkgoHelper()
	p, err := testkit.SpawnGatehouse(append([]string{"GATEHOUSE_SERVER=" + c.server, "XDG_CONFIG_HOME=" + c.home}, c.env...), args...)
	Expect(err).NotTo(HaveOccurred())
	code, err = p.Wait(limit())
	Expect(err).NotTo(HaveOccurred())
	expectNoPanic(p.Stderr.String())
	return code, p.Stdout.String(), p.Stderr.String()
}

// good runs a command that must succeed.
func (c cli) good(args ...string) string {
	GinkgoHelper()
	code, stdout, stderr := c.run(args...)
	Expect(code).To(BeZero(), "%q: %s", args, stderr)
	return stdout
}

// document writes a configuration document to a file.
func document(text string) string {
	GinkgoHelper()
	path := filepath.Join(GinkgoT().TempDir(), "gateway.yaml")
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return path
}

const shopDocument = `version: 1
upstreams:
- upstream_name: blue
  upstream_ip: 10.0.0.1
  upstream_port: 8080
- upstream_name: green
  upstream_ip: 10.0.0.2
  upstream_port: 8080
services:
- service_name: shop
  fqdn: shop.example.com
  routes:
  - route_name: root
    route_prefix: /
    upstreams: [blue]
proxies:
- name: gw
  services: [shop]
`

var _ = Describe("The command line", func() {
	It("attaches a new service to a proxy that others share", func() {
		g, gw, _ := shop()
		second := backend("green")
		c := cliOf(g)
		news := fmt.Sprintf(`version: 1
upstreams:
- {upstream_name: green, upstream_ip: %s, upstream_port: %d}
services:
- service_name: news
  fqdn: news.example
  proxies: [gw]
  routes:
  - {route_name: root, route_prefix: /, upstreams: [green]}
`, second.IP, second.Port)
		Expect(c.good("apply", "-f", document(news), "-o", "table")).To(HaveSuffix("5 created, 0 updated, 0 deleted, 0 unchanged (revision 7)\n"))
		gw.expect("news.example", "/", "green")
		gw.expect("shop.example", "/", "blue")
		Expect(c.good("apply", "-f", document(news), "-o", "table")).To(Equal("0 created, 0 updated, 0 deleted, 5 unchanged (revision 7)\n"))
		c.good("apply", "-f", document(strings.Replace(news, "[gw]", "[]", 1)))
		gw.expect("news.example", "/", "blue")
	})

	It("copies a configuration to an empty store, where it is the same", func() {
		from, to := cliOf(serve()), cliOf(serve())
		path := document(shopDocument)

		code, stdout, stderr := from.run("diff", "-f", path, "--exit-code", "-o", "table")
		Expect(code).To(Equal(1), stderr)
		Expect(stdout).To(ContainSubstring("+ /upstream/blue\n"))

		Expect(from.good("apply", "-f", path, "-o", "table")).To(ContainSubstring(" 0 updated, 0 deleted, 0 unchanged (revision "))
		code, stdout, stderr = from.run("diff", "-f", path, "--exit-code", "-o", "table")
		Expect([]any{code, stdout, stderr}).To(Equal([]any{0, "no changes\n", ""}))

		dump := from.good("dump", "--no-revision")
		Expect(dump).To(ContainSubstring("service_name: shop"))
		to.good("apply", "-f", document(dump))
		Expect(to.good("dump", "--no-revision")).To(Equal(dump))
		Expect(to.good("apply", "-f", document(dump), "-o", "table")).To(HavePrefix("0 created, 0 updated, 0 deleted, "))
	})

	It("reads, attaches, deletes and rolls back", func() {
		c := cliOf(serve())
		c.good("apply", "-f", document(shopDocument))
		before := c.good("dump", "--no-revision")

		Expect(c.good("get", "upstreams", "-o", "table")).To(MatchRegexp(`(?m)^NAME +IP +PORT .*\nblue +10\.0\.0\.1 +8080 .*\ngreen +10\.0\.0\.2 +8080 `))
		Expect(c.good("get", "route", "shop/root", "-o", "yaml")).To(ContainSubstring("route_prefix: /\n"))
		Expect(c.good("attach", "upstream/green", "service/shop/route/root", "-o", "table")).To(HavePrefix("upstream/green is attached to service/shop/route/root (revision "))
		Expect(c.good("attach", "upstream/green", "route/shop/root", "-o", "table")).To(ContainSubstring("already"))

		code, _, stderr := c.run("delete", "upstream", "green")
		Expect(code).To(Equal(1))
		Expect(stderr).To(And(ContainSubstring("in_use"), ContainSubstring("/service/shop/route/root")))

		history := strings.Split(strings.TrimSpace(c.good("history", "-o", "table")), "\n")
		Expect(history).To(HaveLen(3), "a heading and two revisions")
		Expect(history[1]).To(ContainSubstring("POST /service/shop/route/root/upstream/green"))
		newest, oldest := strings.Fields(history[1])[0], strings.Fields(history[2])[0]
		Expect(c.good("history", newest, "-o", "table")).To(ContainSubstring("\n+ /service/shop/route/root/upstream/green\n"))

		Expect(c.good("rollback", oldest, "--dry-run", "-o", "table")).To(ContainSubstring("- /service/shop/route/root/upstream/green\n"))
		Expect(c.good("dump", "--no-revision")).NotTo(Equal(before))
		c.good("rollback", oldest)
		Expect(c.good("dump", "--no-revision")).To(Equal(before))

		Expect(c.good("detach", "service/shop", "proxy/gw", "-o", "table")).To(HavePrefix("service/shop is detached from proxy/gw"))
		Expect(c.good("delete", "service", "shop", "-o", "table")).To(HavePrefix("service shop is deleted"))
		c.good("status")
	})

	It("does not undo what others did since the dump, unless by force", func() {
		c := cliOf(serve())
		c.good("apply", "-f", document(shopDocument))
		first, second := c.good("dump"), c.good("dump")
		c.good("apply", "-f", document(strings.Replace(first, "10.0.0.1", "10.0.0.8", 1)))
		theirs := document(strings.Replace(second, "10.0.0.1", "10.0.0.9", 1))
		for _, command := range []string{"diff", "apply"} {
			code, _, stderr := c.run(command, "-f", theirs)
			Expect(code).To(Equal(1), command)
			Expect(stderr).To(HaveSuffix("gatehouse apply --force (409 conflict)\n  /upstream/blue: changed in revision 2 by local: PUT /config\n"))
		}
		Expect(c.good("apply", "-f", theirs, "--force", "-o", "table")).To(HavePrefix("~ /upstream/blue\n"))
	})

	It("names the invalid object and its line, and changes nothing", func() {
		c := cliOf(serve())
		before := c.good("dump", "--no-revision")
		code, _, stderr := c.run("apply", "-f", document(strings.Replace(shopDocument, "upstream_port: 8080\nservices", "upstream_port: 70000\nservices", 1)))
		Expect(code).To(Equal(1))
		Expect(stderr).To(And(ContainSubstring("line 8"), ContainSubstring("upstream_port")))
		Expect(c.good("dump", "--no-revision")).To(Equal(before))
	})
})
