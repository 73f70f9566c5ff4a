package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

const blue = `{"upstream_id":1,"upstream_name":"blue","upstream_ip":"10.0.0.1","upstream_port":80,"upstream_weight":100,"upstream_protocol":"http","tags":["a","shop"],"create_ts":"2026-11-21T08:07:39.123456+00:00","update_ts":"2026-11-21T08:07:40.123456+00:00"}`

var _ = Describe("get", func() {
	It("shows a table over all pages", func() {
		f := &fake{answers: map[string]reply{
			"GET /upstream?limit=1000&tag=shop": {200, `{"data":{"core_db_upstream":[` + blue + `]}}`,
				map[string]string{"Link": `</upstream?after=p2&limit=1000&tag=shop>; rel="next"`}},
			"GET /upstream?after=p2&limit=1000&tag=shop": {200, `{"data":{"core_db_upstream":[{"upstream_name":"green","upstream_ip":"x\u001b[31m"}]}}`, nil},
		}}
		f.serve()
		Expect(good("get", "upstreams", "--tag", "shop", "-o", "table")).To(Equal(
			"NAME   IP           PORT  WEIGHT  PROTOCOL  TAGS    UPDATE_TS\n" +
				"blue   10.0.0.1     80    100     http      a,shop  2026-11-21T08:07:40.123456+00:00\n" +
				"green  x\\u001b[31m\n"))
		Expect(f.calls).To(HaveLen(2))
	})

	It("prints JSON in a pipe, and YAML on request", func() {
		serving("GET /upstream?limit=1000", reply{200, `{"data":{"core_db_upstream":[{"upstream_name":"a<b","upstream_port":80}]}}`, nil})
		Expect(good("get", "upstream")).To(Equal("[\n  {\n    \"upstream_name\": \"a<b\",\n    \"upstream_port\": 80\n  }\n]\n"))
		Expect(good("get", "upstream", "-o", "yaml")).To(Equal("- upstream_name: a<b\n  upstream_port: 80\n"))
	})

	It("shows all fields of one object, in the server's order", func() {
		f := serving("GET /service/shop/route/root", reply{200, `{"data":{"core_db_route":[{"route_name":"root","route_prefix":"/","route_config":{"match":"segment"},"tags":[]}]}}`, nil})
		f.answers["GET /service/shop/route/root/upstream?limit=21"] = reply{200, `{"data":{"core_db_upstream":[{"upstream_name":"blue"},{"upstream_name":"green"}]}}`, nil}
		f.answers["GET /service/shop/route/root/filter?limit=21"] = reply{200, `{"data":{"core_db_filter":[` + strings.Repeat(`{"filter_name":"f"},`, 20) + `{"filter_name":"g"}]}}`, nil}
		Expect(good("get", "route", "shop/root", "-o", "table")).To(Equal(
			"route_name    root\nroute_prefix  /\nroute_config  {\"match\":\"segment\"}\ntags\n" +
				"upstreams     blue, green\nfilters       " + strings.Repeat("f, ", 20) + "and more\n"))
		By("the object alone in a pipe")
		Expect(good("get", "route", "shop/root")).NotTo(ContainSubstring("blue"))
	})

	DescribeTable("reads both forms of a name", func(call string, args ...string) {
		f := serving(call, reply{200, `{"data":{"core_db_x":[{"name":"x"}]}}`, nil})
		good(append([]string{"get"}, args...)...)
		Expect(f.calls).To(Equal([]string{call}))
	},
		Entry(nil, "GET /upstream/blue", "upstream", "blue"),
		Entry(nil, "GET /upstream/blue", "upstreams/blue"),
		Entry(nil, "GET /service/shop/route/root", "route/shop/root"),
		Entry(nil, "GET /service/shop/route/root", "service/shop/route/root"),
		Entry(nil, "GET /service/shop/route?limit=1000", "routes/shop"),
		Entry(nil, "GET /keyset/partners/key?limit=1000", "keys", "partners"),
		Entry(nil, "GET /keyset/partners/key/mobile", "key/partners/mobile"),
	)

	It("shows the routes of a service", func() {
		serving("GET /service/shop/route?limit=1000", reply{200, `{"data":{"core_db_route":[]}}`, nil})
		Expect(good("get", "routes", "shop")).To(Equal("[]\n"))
		r := run1("", "get", "routes", "shop", "-o", "table")
		Expect(r).To(Equal(result{0, "", "there are no routes\n"}))
	})

	DescribeTable("refuses a wrong command line with exit code 2",
		func(want string, args ...string) {
			Expect(run1("", args...)).To(Equal(result{2, "", "gatehouse: " + want + "\n"}))
		},
		Entry(nil, `"upstrems" is not a kind of object; did you mean upstream?`, "get", "upstrems"),
		Entry(nil, "name the service: gatehouse get route SERVICE", "get", "routes"),
		Entry(nil, `"a/b/c" does not name a route; write SERVICE/ROUTE`, "get", "route", "a/b/c"),
		Entry(nil, `--output: "xml" is not one of table, json, yaml`, "get", "upstream", "-o", "xml"),
		Entry(nil, `--tag chooses from all upstreams; leave out the name "x"`, "get", "upstream", "x", "--tag", "y"),
		Entry(nil, `context "x" does not exist, nor does any other; create it with gatehouse context set x --server URL`, "get", "upstream", "--context", "x"),
		Entry(nil, `the server "x" is not an address such as http://127.0.0.1:1323`, "get", "upstream", "--server", "x"),
		Entry(nil, `"x" is not a revision: a whole number, see gatehouse history`, "rollback", "x"),
		Entry(nil, `this names 2 objects, not 1; usage: gatehouse delete KIND/NAME [flags]`, "delete", "upstream/blue", "upstream/red"),
		Entry(nil, `"blue/" is not the name of one key`, "delete", "key/blue/"),
		Entry(nil, `this names 1 object, not 2; usage: gatehouse attach KIND/NAME KIND/NAME [flags]`, "attach", "upstream", "blue"),
		Entry(nil, `"rout" is not a kind of object; did you mean route?`, "delete", "service/shop/rout/root"),
		Entry(nil, `"gett" is not a command; did you mean gatehouse get?`, "gett", "upstreams"),
		Entry(nil, `"zzzzzz" is not a command; gatehouse --help lists the commands`, "zzzzzz"),
		Entry(nil, `"creat" is not a command; did you mean gatehouse key create?`, "key", "creat", "a/b"),
		Entry(nil, `--outptu is not a flag of gatehouse get; did you mean --output?`, "get", "upstreams", "--outptu", "json"),
		Entry(nil, `--zzzzzzzz is not a flag of gatehouse get; its --help lists the flags`, "get", "upstreams", "--zzzzzzzz"),
		Entry(nil, `-z is not a flag of gatehouse get; its --help lists the flags`, "get", "upstreams", "-z"),
		Entry(nil, `--api-adr is not a flag of gatehouse serve; did you mean --api-addr?`, "serve", "--api-adr", "x"),
		Entry(nil, "name files with -f: gatehouse apply -f gateway.yaml", "apply", "gateway.yaml"),
		Entry(nil, "name files with -f: gatehouse diff -f a.yaml -f b.yaml", "diff", "a.yaml", "b.yaml"),
		Entry(nil, "an argument is missing; usage: gatehouse delete KIND/NAME [flags]", "delete"),
		Entry(nil, "wrong number of arguments, 1; usage: gatehouse attach KIND/NAME KIND/NAME [flags]", "attach", "upstream/blue"),
		Entry(nil, "wrong number of arguments, 1; usage: gatehouse dump [flags]", "dump", "x"),
		Entry(nil, "wrong number of arguments, 3; usage: gatehouse get KIND [NAME] [flags]", "get", "a", "b", "c"),
		Entry(nil, "--force is for proxies; detach the upstream from the objects that use it", "delete", "upstream", "blue", "--force"),
		Entry(nil, "name the document: gatehouse apply -f FILE, -f DIRECTORY, or -f - for standard input", "apply"),
	)
})

var _ = Describe("A failure", func() {
	It("has exit code 1 and a line for every bad field", func() {
		serving("DELETE /upstream/blue", reply{409, `{"detail":"upstream \"blue\" is in use; detach it first","code":"in_use","referenced_by":["/service/shop/route/root/upstream/blue"]}`, nil})
		Expect(run1("", "delete", "upstream", "blue")).To(Equal(result{1, "",
			"gatehouse: DELETE /upstream/blue: upstream \"blue\" is in use; detach it first (409 in_use)\n  referenced by /service/shop/route/root/upstream/blue\n"}))
	})

	It("reports that no server answers", func() {
		r := run1("", "get", "upstream", "--server", "http://127.0.0.1:1")
		Expect(r.code).To(Equal(1))
		Expect(r.stderr).To(ContainSubstring("is gatehouse serve running there?"))
	})

	It("reports an interrupt", func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		r := runIn(ctx, "", "get", "upstream")
		Expect(r.code).To(Equal(1))
		Expect(r.stderr).To(HavePrefix("gatehouse: interrupted before the answer came"))
		r = runIn(ctx, "version: 1\n", "validate", "-f", "-")
		Expect(r).To(Equal(result{1, "", "gatehouse: interrupted before the document was checked; run it again\n"}))
	})
})

var _ = Describe("Small writes", func() {
	DescribeTable("report what was done", func(call string, status int, want string, args ...string) {
		serving(call, reply{status, `{"data":{"x_core_db_y":{"affected_rows":1}}}`, map[string]string{"Gatehouse-Revision": "7"}})
		Expect(good(append(args, "-o", "table")...)).To(Equal(want + " (revision 7)\n"))
		Expect(good(args...)).To(MatchJSON(`{"x_core_db_y":{"affected_rows":1},"revision":7}`))
	},
		Entry(nil, "DELETE /upstream/blue", 200, "upstream blue is deleted", "delete", "upstream", "blue"),
		Entry(nil, "DELETE /proxy/gw?force=true", 200, "proxy gw is deleted", "delete", "proxy", "gw", "--force"),
		Entry(nil, "DELETE /service/shop/route/root", 200, "route shop/root is deleted", "delete", "routes", "shop/root"),
		Entry(nil, "POST /service/shop/route/root/upstream/blue", 201, "upstream/blue is attached to service/shop/route/root", "attach", "upstream/blue", "service/shop/route/root"),
		Entry(nil, "DELETE /upstream/blue", 200, "upstream blue is deleted", "delete", "upstreams/blue"),
		Entry(nil, "DELETE /service/shop/route/root", 200, "route shop/root is deleted", "delete", "service/shop/route/root"),
		Entry(nil, "DELETE /service/shop/route/root", 200, "route shop/root is deleted", "delete", "service", "shop/route/root"),
		Entry(nil, "DELETE /keyset/partners/key/mobile", 200, "key partners/mobile is deleted", "delete", "key/partners/mobile"),
		Entry(nil, "DELETE /keyset/partners/key/mobile", 200, "key partners/mobile is deleted", "delete", "key", "partners/mobile"),
		Entry(nil, "POST /service/shop/route/root/upstream/blue", 201, "upstream/blue is attached to route/shop/root", "attach", "upstream", "blue", "route", "shop/root"),
		Entry(nil, "POST /service/shop/route/root/upstream/blue", 201, "upstream/blue is attached to route/shop/root", "attach", "upstream/blue", "route", "shop/root"),
		Entry(nil, "DELETE /service/shop/secret/tls", 200, "secret/tls is detached from service/shop", "detach", "secret", "tls", "service/shop"),
		Entry(nil, "POST /proxy/gw/service/shop", 200, "service/shop was attached to proxy/gw already", "attach", "service/shop", "proxy/gw"),
		Entry(nil, "DELETE /service/shop/secret/tls", 200, "secret/tls is detached from service/shop", "detach", "secret/tls", "service/shop"),
		Entry(nil, "POST /revision/7/rollback", 200, "the configuration is back at revision 7", "rollback", "7"),
	)

	It("show the server's warnings, and succeed", func() {
		serving("POST /service/shop/filter/limit", reply{201, `{"data":{"x_core_db_y":{"affected_rows":1}}}`,
			map[string]string{"Gatehouse-Revision": "7", "Gatehouse-Warning": "/filter/limit limits \"nothing\""}})
		r := run1("", "attach", "filter/limit", "service/shop", "-o", "table")
		Expect(r.code).To(BeZero())
		Expect(r.stdout).To(Equal("filter/limit is attached to service/shop (revision 7)\n"))
		Expect(r.stderr).To(Equal("warning: /filter/limit limits \"nothing\"\n"))
	})

	It("have a dry run", func() {
		serving("POST /revision/7/rollback?dry_run=true", reply{200, `{"data":{"dry_run":true,"changes":[{"action":"delete","path":"/proxy/gw","kind":"proxy","fields":[{"field":"name","before":"gw"}]}]}}`, nil})
		Expect(good("rollback", "7", "--dry-run", "-o", "table")).To(Equal("- /proxy/gw\n    name: \"gw\"\n1 object would change, nothing was changed\n"))
		serving("DELETE /proxy/gw?dry_run=true&force=true", reply{200, `{"data":{"dry_run":true,"changes":[{"action":"delete","path":"/proxy/gw/service/shop","kind":"proxy_service","fields":[]},{"action":"delete","path":"/proxy/gw","kind":"proxy","fields":[]}]}}`, nil})
		Expect(good("delete", "proxy", "gw", "--dry-run", "--force", "-o", "table")).To(Equal("- /proxy/gw/service/shop\n- /proxy/gw\n2 objects would change, nothing was changed\n"))
	})
})

var _ = Describe("history", func() {
	It("lists the newest", func() {
		serving("GET /revision?limit=2", reply{200, `{"data":{"core_db_revision":[{"revision":7,"at":"T7","actor":"local","request":"POST /upstream","changes":1},{"revision":6,"at":"T6","actor":"ann","request":"PUT /config","message":"for the sale","changes":12}]}}`, nil})
		Expect(good("history", "--limit", "2", "-o", "table")).To(Equal(
			"REVISION  AT  ACTOR  REQUEST         CHANGES  MESSAGE\n7         T7  local  POST /upstream  1\n6         T6  ann    PUT /config     12       for the sale\n"))
	})

	It("lists those of an actor, a kind and a time", func() {
		serving("GET /revision?by=ann&kind=upstream&limit=20&since=24h", reply{200, `{"data":{"core_db_revision":[]}}`, nil})
		Expect(run1("", "history", "--by", "ann", "--kind", "upstream", "--since", "24h", "-o", "table")).To(Equal(
			result{0, "", "no revision that is kept has changed such an object\n"}))
	})

	It("shows what one revision changed", func() {
		serving("GET /revision/7", reply{200, `{"data":{"core_db_revision":[{"revision":7,"at":"T7","actor":"local","request":"PATCH /upstream/blue","changes":[{"action":"update","path":"/upstream/blue","kind":"upstream","fields":[{"field":"upstream_port","before":80,"after":81},{"field":"tags","before":null,"after":["a"]}]}]}]}}`, nil})
		Expect(good("history", "7", "-o", "table")).To(Equal(
			"revision 7 at T7 by local: PATCH /upstream/blue\n~ /upstream/blue\n    upstream_port: 80 -> 81\n    tags: (none) -> [\"a\"]\n"))
	})
})

var _ = Describe("context", func() {
	It("keeps servers and their tokens", func() {
		token := filepath.Join(GinkgoT().TempDir(), "token")
		Expect(os.WriteFile(token, []byte("s3cret\n"), 0o600)).To(Succeed())
		f := serving("GET /upstream/blue", reply{200, `{"data":{"core_db_upstream":[` + blue + `]}}`, nil})
		url := os.Getenv("GATEHOUSE_SERVER")
		GinkgoT().Setenv("GATEHOUSE_SERVER", "")

		Expect(good("context", "set", "test", "--server", url, "--token-file", token)).To(Equal("context test is set\n"))
		Expect(good("context", "set", "prod", "--server", "https://prod.example", "--ca-file", "/ca.pem")).To(Equal("context prod is set\n"))
		Expect(strings.Fields(good("context", "list", "-o", "table"))).To(Equal([]string{
			"CURRENT", "NAME", "SERVER", "TOKEN_FILE", "CA_FILE", "prod", "https://prod.example", "/ca.pem", "*", "test", url, token,
		}))
		Expect(good("get", "upstream", "blue")).To(MatchJSON(blue))
		Expect(f.headers.Get("Authorization")).To(Equal("Bearer s3cret"))
		Expect(f.headers.Get("User-Agent")).To(HavePrefix("gatehouse/"))

		Expect(good("context", "use", "prod")).To(Equal("context prod is the current one\n"))
		Expect(good("get", "upstream", "blue", "--context", "test")).To(MatchJSON(blue))
		Expect(good("context", "delete", "prod")).To(Equal("context prod is deleted\n"))
		Expect(good("context", "list")).To(MatchJSON(`[{"name":"test","server":"` + url + `","token_file":"` + token + `","ca_file":"","current":false}]`))
		Expect(run1("", "context", "use", "prod")).To(Equal(result{2, "", "gatehouse: context \"prod\" does not exist; the contexts are test\n"}))
		Expect(run1("", "context", "set", "new")).To(Equal(result{2, "", "gatehouse: context \"new\" is new and needs --server URL\n"}))
	})
})

var _ = Describe("Shell completion", func() {
	complete := func(args ...string) string {
		GinkgoHelper()
		r := run1("", append([]string{"__complete"}, args...)...)
		Expect(r.code).To(BeZero())
		return r.stdout
	}

	It("knows the kinds and asks the server for names", func() {
		f := serving("GET /upstream?limit=100&name=b", reply{200, `{"data":{"core_db_upstream":[` + blue + `]}}`, nil})
		f.answers["GET /service?limit=100"] = reply{200, `{"data":{"core_db_service":[{"service_name":"shop"}]}}`, nil}
		f.answers["GET /service/shop/route?limit=100"] = reply{200, `{"data":{"core_db_route":[{"route_name":"root"}]}}`, nil}
		Expect(complete("get", "")).To(Equal("upstream\nservice\nroute\nproxy\nfilter\nglobalconfig\nsecret\nkeyset\nkey\nconsumer\nlist\n:4\n"))
		Expect(complete("delete", "upstreams", "b")).To(Equal("blue\n:4\n"))
		Expect(complete("delete", "upstreams/b")).To(Equal("upstreams/blue\n:4\n"))
		Expect(complete("delete", "routes/shop/")).To(Equal("routes/shop/root\n:4\n"))
		Expect(complete("delete", "x/")).To(Equal(":4\n"))
		Expect(complete("get", "route", "")).To(Equal("shop/\n:6\n"))
		Expect(complete("get", "route", "shop/")).To(Equal("shop/root\n:4\n"))
		Expect(complete("attach", "")).To(Equal("upstream/\nservice/\nfilter/\nglobalconfig/\nsecret/\n:6\n"))
		Expect(complete("attach", "upstream/b")).To(Equal("upstream/blue\n:4\n"))
		Expect(complete("attach", "filter/limit", "")).To(Equal("route/\nservice/\nproxy/\n:6\n"))
		Expect(complete("attach", "filter/limit", "route/shop/")).To(Equal("route/shop/root\n:4\n"))
		Expect(complete("get", "-o", "")).To(Equal("table\njson\nyaml\n:4\n"))
		Expect(complete("serve", "--debug")).To(HavePrefix("--debug-addr\t"))
	})

	It("offers nothing when no server answers", func() {
		GinkgoT().Setenv("GATEHOUSE_SERVER", "http://127.0.0.1:1")
		Expect(complete("get", "upstream", "")).To(Equal(":4\n"))
	})
})

var _ = Describe("The progress line", func() {
	It("appears after a while and disappears", func() {
		out := &testkit.Output{}
		stop := progress(out, "waiting for x", time.Millisecond)
		const line = `\r\x1b\[Kwaiting for x \(\d+ s\)` // 0 on a machine that is not too busy
		Eventually(out.String).Should(MatchRegexp("^" + line))
		stop()
		Expect(out.String()).To(MatchRegexp("^(" + line + `)+\r\x1b\[K$`))
	})

	It("does not appear earlier", func() {
		out := &testkit.Output{}
		progress(out, "waiting for x", time.Hour)()
		Expect(out.String()).To(BeEmpty())
	})
})

var _ = Describe("Help", func() {
	It("has examples for every command that calls a server or works on documents", func() {
		for _, cmd := range newRoot().Commands() {
			if cmd.GroupID == "client" || slices.Contains([]string{"validate", "schema"}, cmd.Name()) {
				Expect(cmd.Example).NotTo(BeEmpty(), cmd.Name())
				Expect(good(cmd.Name(), "--help")).To(ContainSubstring("gatehouse "+cmd.Name()), cmd.Name())
			}
		}
	})

	It("describes how to take a profile", func() {
		Expect(good("serve", "--help")).To(And(ContainSubstring("\n  gatehouse serve --debug-addr 127.0.0.1:6060 "), ContainSubstring("--debug-addr ip:port")))
	})
})
