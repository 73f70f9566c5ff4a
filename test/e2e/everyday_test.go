package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The commands for one object", func() {
	It("make a gateway from nothing, and change it", func() {
		g, gw := standalone()
		c := cliOf(g)
		blue, green := backend("blue"), backend("green")
		for name, b := range map[string]string{"blue": fmt.Sprint(blue.Port), "green": fmt.Sprint(green.Port)} {
			c.good("create", "upstream", name, "ip=127.0.0.1", "port="+b)
		}
		c.good("create", "service/shop", "fqdn=*")
		c.good("create", "route", "shop/root", "prefix=/", "config.timeouts.request=5s")
		c.good("attach", "upstream/blue", "route/shop/root")
		c.good("attach", "upstream/green", "route/shop/root")
		c.good("create", "proxy", "gw", fmt.Sprintf("http_port=%d", gw.port))
		c.good("attach", "service/shop", "proxy/gw", "--wait")

		By("a weight of 0 takes an upstream out of Envoy's hands")
		c.good("set", "upstream", "green", "weight=0", "--wait")
		Eventually(gw.tally).WithArguments(10).Should(Equal(map[string]int{"blue": 10}))
		c.good("set", "upstream/green", "weight=", "--wait")
		c.good("set", "upstream/blue", "Upstream_Weight=0", "--wait")
		Eventually(gw.tally).WithArguments(10).Should(Equal(map[string]int{"green": 10}))

		By("a key inside a configuration changes, and the others stay")
		c.good("set", "route", "shop/root", "config.match=exact", "--wait")
		Eventually(gw.answers).WithArguments("shop.example", "/other").Should(Equal("404"))
		Expect(c.good("get", "route", "shop/root", "-o", "yaml")).To(ContainSubstring("timeouts:\n    request: 5s\n"))
		c.good("set", "route", "shop/root", "config.match=", "--wait")
		Eventually(gw.answers).WithArguments("shop.example", "/other").Should(Equal("green"))

		By("a wrong value changes nothing")
		code, _, stderr := c.run("set", "upstream/blue", "weight=-1", "prot=1")
		Expect(code).To(Equal(2))
		Expect(stderr).To(Equal("gatehouse: \"prot\" is not a field of an upstream; did you mean port?\n"))
		code, _, stderr = c.run("set", "upstream/blue", "weight=-1", "port=x")
		Expect(code).To(Equal(1))
		Expect(strings.Split(strings.TrimSpace(stderr), "\n")).To(HaveLen(3), stderr)
		Expect(c.good("get", "upstream", "blue", "-o", "yaml")).To(And(ContainSubstring(fmt.Sprintf("upstream_port: %d\n", blue.Port)), ContainSubstring("upstream_weight: 0\n")))

		By("an object that is there is not created again")
		code, _, stderr = c.run("create", "upstream", "blue", "ip=127.0.0.1", "port=1")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring("409"))
	})

	It("edit an object, as far as nobody else changes it", func() {
		c := cliOf(serve())
		c.good("create", "upstream", "web", "ip=10.0.0.1", "port=80", "tags=a,b")
		c.good("create", "service", "shop", "fqdn=shop.example.com")
		c.good("create", "route", "shop/root", "prefix=/", "config.timeouts.request=5s")
		dir := GinkgoT().TempDir()
		with := func(script string) cli {
			GinkgoHelper()
			file := filepath.Join(dir, fmt.Sprint("editor", len(script)))
			Expect(os.WriteFile(file, []byte("#!/bin/sh\nset -e\n"+script+"\n"), 0o700)).To(Succeed())
			edited := c
			edited.env = []string{"EDITOR=" + file, "VISUAL=", "TMPDIR=" + dir}
			return edited
		}
		left := func() []string {
			files, err := filepath.Glob(filepath.Join(dir, "gatehouse-edit-*", "*"))
			Expect(err).NotTo(HaveOccurred())
			return files
		}

		By("the fields that differ are sent")
		Expect(with("sed -i 's/^upstream_weight: .*/upstream_weight: 7/; /^tags/,$d' $1").good("edit", "upstream/web", "-o", "table")).
			To(Equal("upstream web is changed (revision 4)\n"))
		Expect(c.good("history", "4", "-o", "table")).To(HaveSuffix("~ /upstream/web\n    upstream_weight: 100 -> 7\n    tags[0]: \"a\" -> (none)\n    tags[1]: \"b\" -> (none)\n"))
		with("sed -i 's/request: 5s/request: 6s/' $1").good("edit", "route", "shop/root")
		Expect(c.good("get", "route", "shop/root", "-o", "yaml")).To(ContainSubstring("timeouts:\n    request: 6s\n"))
		Expect(left()).To(BeEmpty())

		By("a text that is not changed sends nothing")
		code, stdout, stderr := with("true").run("edit", "upstream/web")
		Expect([]any{code, stdout, stderr}).To(Equal([]any{0, "", "nothing was changed\n"}))
		Expect(left()).To(BeEmpty())

		By("what is refused is opened again, with the reason")
		again := with(`if grep -q 'Upstream_port: 70000 is' $1; then sed -i 's/70000/81/' $1; else sed -i 's/^upstream_port: .*/upstream_port: 70000/' $1; fi`)
		again.good("edit", "upstream/web")
		Expect(c.good("get", "upstream/web")).To(ContainSubstring(`"upstream_port": 81`))
		code, _, stderr = with("sed -i 's/^upstream_port: .*/upstream_prot: 1/' $1").run("edit", "upstream/web")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring(`the text is still refused: "upstream_prot" is not a field of an upstream; did you mean port?`))
		Expect(left()).To(HaveLen(1))
		Expect(os.RemoveAll(filepath.Dir(left()[0]))).To(Succeed())

		By("the change of somebody else is not undone, and the text stays")
		program, err := testkit.Binary("gatehouse")
		Expect(err).NotTo(HaveOccurred())
		code, _, stderr = with("sed -i 's/^upstream_port: .*/upstream_port: 99/' $1; "+program+" set upstream web weight=8 >/dev/null").run("edit", "upstream/web")
		Expect(code).To(Equal(1))
		Expect(left()).To(HaveLen(1))
		Expect(stderr).To(Equal("gatehouse: upstream web was changed by somebody else meanwhile, and your change was not sent: " +
			"see gatehouse history, then edit it again; your text is in " + left()[0] + "\n"))
		Expect(os.ReadFile(left()[0])).To(ContainSubstring("upstream_port: 99\n"))
		Expect(c.good("get", "upstream/web")).To(And(ContainSubstring(`"upstream_port": 81`), ContainSubstring(`"upstream_weight": 8`)))
	})

	It("copy an object with what is attached to it, and with other fields", func() {
		g, gw, _ := shop()
		c, second := cliOf(g), backend("green")
		c.good("copy", "upstream", "blue", "green", fmt.Sprintf("port=%d", second.Port))
		c.good("copy", "route/shop/root", "v2", "prefix=/v2", "--wait")
		gw.expect("shop.example", "/v2/x", "blue")
		c.good("copy", "service", "shop", "till", "fqdn=till.example")
		c.good("detach", "upstream/blue", "route/till/root")
		c.good("attach", "upstream/green", "route/till/root")
		c.good("attach", "service/till", "proxy/gw", "--wait")
		gw.expect("till.example", "/", "green")
		gw.expect("till.example", "/v2", "blue")
		c.good("create", "filter", "limit", "type=route_filter_headers", "config.request.set.x-team=shop")
		Expect(c.good("copy", "filter/limit", "filter/other", "config.request.set.x-team=till", "-o", "table")).To(HavePrefix("filter limit is copied to other (revision "))
		Expect(c.good("get", "filter/other")).To(ContainSubstring(`"x-team": "till"`))
		Expect(c.good("get", "filter/limit")).To(ContainSubstring(`"x-team": "shop"`))
	})
})

var _ = Describe("The commands that say what an object is, and why", func() {
	It("show its fields, what it is attached to, and the revisions that changed it", func() {
		c := cliOf(serve())
		c.good("apply", "-f", document(shopDocument), "-m", "from the file")
		c.good("set", "upstream", "blue", "weight=7", "-m", "less for blue")
		c.good("detach", "service/shop", "proxy/gw", "--message=out of the way")
		described := c.good("describe", "upstream", "blue", "-o", "table")
		for _, line := range []string{
			`upstream blue`, `  ip         10\.0\.0\.1`, `  port       8080`, `  weight     7`, `  \(35 fields with the default: --all\)`,
			`attached to routes  shop/root`, `Accepted +yes +.*`, `2 +\S+ +local +PATCH /upstream/blue +1 +less for blue`,
			`1 +\S+ +local +PUT /config +\d+ +from the file`,
		} {
			Expect(described).To(MatchRegexp("(?m)^" + line + "$"))
		}
		Expect(described).NotTo(ContainSubstring("protocol"))
		Expect(c.good("describe", "upstream/blue", "--all", "-o", "table")).To(MatchRegexp("(?m)^  protocol +http$"))
		Expect(c.good("describe", "route/shop/root")).To(MatchRegexp(`(?s)"attached": {\s+"filters": \[],\s+"upstreams": \[\s+"blue"\s+]`))
		Expect(c.good("describe", "service/shop", "-o", "table")).To(MatchRegexp(`(?m)^routes +root$`))
		Expect(c.good("history", "proxy/gw", "-o", "table")).To(MatchRegexp(`^REVISION.*\n3 .*DELETE /proxy/gw/service/shop +1 +out of the way\n1 .*\n$`))
		Expect(c.good("history", "2", "-o", "table")).To(ContainSubstring("\n  less for blue\n~ /upstream/blue\n"))
		Expect(c.good("get", "all", "-o", "table")).To(MatchRegexp(`(?m)^OBJECT .*\nupstream/blue .*\nupstream/green .*\nservice/shop +fqdn shop\.example\.com .*\nproxy/gw `))
		Expect(c.good("get", "all")).To(ContainSubstring(`"service_name": "shop"`))

		code, _, stderr := c.run("set", "upstream", "blue", "weight=8", "-m", "two\nlines")
		Expect(code).To(Equal(1))
		Expect(stderr).To(HaveSuffix("\n  message: contains a control character, such as a line break; write one line\n"))
	})
})

var _ = Describe("The check of a document without a server", func() {
	It("finds in files what a server would refuse, and leaves nothing", func() {
		dir, temporary := GinkgoT().TempDir(), GinkgoT().TempDir()
		c := cli{server: "http://127.0.0.1:1", home: dir, env: []string{"TMPDIR=" + temporary, "HOME=" + dir, "XDG_DATA_HOME=" + dir}}
		write := func(name, text string) {
			Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
		}
		write("a.yaml", "version: 1\nupstreams:\n- {upstream_name: blue, upstream_ip: 10.0.0.1, upstream_port: 8080}\n")
		write("b.yaml", "version: 1\nservices:\n- service_name: shop\n  fqdn: shop.example.com\n  routes:\n"+
			"  - {route_name: root, route_prefix: /, upstreams: [blue, green]}\n")
		code, stdout, stderr := c.run("validate", "-f", dir, "-o", "table")
		Expect([]any{code, stdout, stderr}).To(Equal([]any{1, dir + `/b.yaml:6:41: services["shop"].routes["root"].upstreams: upstream "green" does not exist` + "\n1 error\n", ""}))

		By("a route that is not there is named with its line in its own file")
		write("b.yaml", "version: 1\nservices:\n- service_name: shop\n  fqdn: shop.example.com\n  routes:\n"+
			"  - {route_name: root, route_prefx: /, upstreams: [blue]}\n")
		code, stdout, _ = c.run("validate", "-f", dir)
		Expect(code).To(Equal(1))
		Expect(stdout).To(MatchJSON(`{"valid":false,"objects":0,"assumed":0,"warnings":[],"errors":[` +
			`{"file":"` + dir + `/b.yaml","line":6,"column":5,"field":"services[\"shop\"].routes[\"root\"].route_prefix","message":"is required"},` +
			`{"file":"` + dir + `/b.yaml","line":6,"column":24,"field":"services[\"shop\"].routes[\"root\"].route_prefx","message":"is unknown; did you mean route_prefix?"}]}`))
		write("b.yaml", "")
		Expect(c.good("validate", "-f", filepath.Join(dir, "a.yaml"), "-o", "table")).To(Equal("1 object: valid\n"))
		Expect(os.ReadDir(temporary)).To(BeEmpty())
	})

	It("accepts what a server dumps, with secrets as references and sealed", func() {
		c := cliOf(serve())
		authority, err := testkit.NewAuthority("test")
		Expect(err).NotTo(HaveOccurred())
		pair, err := authority.Issue(testkit.CertificateOptions{Names: []string{"shop.example.com"}})
		Expect(err).NotTo(HaveOccurred())
		write := func(name, text string) string {
			path := filepath.Join(c.home, name)
			Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
			return path
		}
		c.good("apply", "-f", document(shopDocument))
		c.good("secret", "set", "shop", "--cert", write("shop.crt", pair.Cert), "--key", write("shop.key", pair.Key))
		c.good("attach", "secret/shop", "service/shop")
		c.good("set", "upstream", "blue", "protocol=tls", "client_certificate=shop", "tls_insecure=true")
		c.good("create", "filter", "users", "type=http_filter_basicauth", `config={users: [{name: ann, password: "correct horse battery"}]}`)
		for _, secrets := range []string{"references", "sealed"} {
			path := write(secrets+".yaml", c.good("dump", "--secrets", secrets))
			code, stdout, _ := c.run("validate", "-f", path, "-o", "table")
			Expect(code).To(BeZero(), secrets+": "+stdout)
			Expect(stdout).To(HaveSuffix(": valid\n"))
		}
	})
})

var _ = Describe("The command that follows an object", func() {
	It("prints what others change in it, and nothing else", func() {
		c := cliOf(serve())
		c.good("apply", "-f", document(shopDocument))
		watch := func(args ...string) *testkit.Process {
			GinkgoHelper()
			p, err := testkit.SpawnGatehouse([]string{"GATEHOUSE_SERVER=" + c.server, "XDG_CONFIG_HOME=" + c.home}, append([]string{"watch"}, args...)...)
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func(ctx SpecContext) { Expect(p.Stop(ctx)).To(BeZero()) }, NodeTimeout(time.Minute))
			return p
		}
		service, upstreams := watch("service/shop", "-o", "table"), watch("upstreams")
		By("both are connected once they print a change")
		Eventually(func() string {
			c.good("set", "upstream", "blue", fmt.Sprintf("weight=%d", GinkgoRandomSeed()%7+1), "-m", "ready")
			c.good("set", "upstream", "blue", "weight=100")
			c.good("set", "service", "shop", "hsts_seconds=1")
			c.good("set", "service", "shop", "hsts_seconds=")
			if strings.Contains(service.Stdout.String(), "hsts_seconds") {
				return upstreams.Stdout.String()
			}
			return ""
		}).Should(ContainSubstring(`"message":"ready","changes":[{"action":"update","path":"/upstream/blue",`))
		c.good("attach", "upstream/green", "route/shop/root", "-m", "twice as many")
		c.good("set", "upstream/green", "weight=3", "-m", "the end")
		Eventually(service.Stdout.String).Should(MatchRegexp(`(?m) revision \d+ by local: POST /service/shop/route/root/upstream/green \(twice as many\)\n\+ /service/shop/route/root/upstream/green$`))
		Eventually(upstreams.Stdout.String).Should(ContainSubstring(`"the end"`))
		Expect(service.Stdout.String()).NotTo(ContainSubstring("~ /upstream"))
		Expect(upstreams.Stdout.String()).NotTo(ContainSubstring(`"path":"/service/shop",`))
	})
})

var _ = Describe("A document with values from outside", func() {
	It("is applied with them, and deleted again", func() {
		g, gw := standalone()
		blue := backend("blue")
		c := cliOf(g)
		c.env = []string{"HOST=shop.example", fmt.Sprintf("PORT=%d", blue.Port)}
		c.good("create", "upstream", "other", "ip=10.0.0.9", "port=1")
		before := c.good("dump", "--no-revision")
		Expect(os.WriteFile(filepath.Join(c.home, "name"), []byte("blue\n"), 0o600)).To(Succeed())
		path := filepath.Join(c.home, "gateway.yaml")
		Expect(os.WriteFile(path, []byte(fmt.Sprintf(`version: 1
upstreams:
- {upstream_name: !file name, upstream_ip: !env IP:-127.0.0.1, upstream_port: !env PORT}
services:
- service_name: shop
  fqdn: !expand "www.${HOST}"
  proxies: [gw]
  routes:
  - {route_name: root, route_prefix: /, upstreams: [!file name]}
proxies:
- {name: gw, http_port: %d}
`, gw.port)), 0o600)).To(Succeed())
		Expect(c.good("validate", "-f", path, "-o", "table")).To(Equal("4 objects: valid\n"))
		c.good("apply", "-f", path, "--wait")
		gw.expect("www.shop.example", "/", "blue")

		code, _, stderr := c.run("delete", "-f", path)
		Expect(code).To(Equal(1))
		Expect(stderr).To(And(ContainSubstring(`proxy "gw" is in use: no service is attached and 1 Envoy is connected`), ContainSubstring(path+" line 11")))
		gw.expect("www.shop.example", "/", "blue")
		Expect(c.good("delete", "-f", path, "--force", "--dry-run", "-o", "table")).To(HaveSuffix("0 to create, 0 to update, 6 to delete, 0 unchanged\n"))
		Expect(c.good("delete", "-f", path, "--force", "-m", "not needed", "-o", "table")).To(ContainSubstring("- /service/shop/route/root\n"))
		Expect(c.good("dump", "--no-revision")).To(Equal(before))
		Expect(c.good("history", "--limit", "1", "-o", "table")).To(ContainSubstring("not needed"))

		c.env = nil
		code, _, stderr = c.run("diff", "-f", path)
		Expect(code).To(Equal(1))
		Expect(stderr).To(And(ContainSubstring(path+" line 3: the variable PORT is not set"), ContainSubstring(path+" line 6: the variable HOST is not set")))
	})
})
