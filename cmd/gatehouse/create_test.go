package main

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const written = `{"data":{"update_core_db_x":{"affected_rows":1}}}`

var _ = Describe("create and set", func() {
	DescribeTable("send one call with the fields", func(call, body string, args ...string) {
		f := serving(call, reply{200, written, map[string]string{"Gatehouse-Revision": "7"}})
		good(args...)
		Expect(f.calls).To(Equal([]string{call}))
		Expect(f.bodies[0]).To(MatchJSON(body))
	},
		Entry(nil, "POST /upstream", `{"upstream_name":"web","Upstream_ip":"10.0.0.1"}`, "create", "upstream", "web", "ip=10.0.0.1"),
		Entry(nil, "POST /upstream", `{"upstream_name":"web","Upstream_ip":"10.0.0.1"}`, "create", "upstream/web", "UPSTREAM_IP=10.0.0.1"),
		Entry(nil, "POST /service/shop/route", `{"route_name":"root","Route_prefix":"/","Route_config":{"match":"exact"}}`,
			"create", "route", "shop/root", "prefix=/", "config.match=exact"),
		Entry(nil, "POST /service/shop/route", `{"route_name":"root"}`, "create", "service/shop/route/root"),
		Entry(nil, "POST /keyset/partners/key", `{"key_name":"mobile","Key_description":"a=b"}`, "create", "key/partners/mobile", "description=a=b"),
		Entry(nil, "PATCH /upstream/web", `{"Upstream_weight":"20"}`, "set", "upstream", "web", "weight=20"),
		Entry(nil, "PATCH /service/shop/route/root", `{"Route_prefix":"/a"}`, "set", "routes/shop/root", "prefix=/a"),
		Entry(nil, "PATCH /upstream/web?message=why&timeout=30s&wait=applied", `{"Upstream_weight":"20"}`, "set", "upstream", "web", "weight=20", "-m", "why", "--wait"),
		Entry(nil, "POST /upstream/copy/web/web2?message=why", `{"Upstream_port":"81"}`, "copy", "upstream", "web", "web2", "port=81", "-m", "why"),
		Entry(nil, "POST /service/deepcopy/shop/till", `{}`, "copy", "service/shop", "service/till"),
		Entry(nil, "POST /service/copyroute/shop/shop/route/root", `{"route_name":"v2"}`, "copy", "route", "shop/root", "v2"),
		Entry(nil, "POST /service/copyroute/shop/till/route/root", `{"route_name":"root"}`, "copy", "route/shop/root", "till/root"),
	)

	It("reads fields from files and standard input", func() {
		f := serving("PATCH /filter/f", reply{200, written, nil})
		path := filepath.Join(GinkgoT().TempDir(), "config.yaml")
		Expect(os.WriteFile(path, []byte("request:\n  set: {x-a: '1'}\n"), 0o600)).To(Succeed())
		good("set", "filter/f", "config=@"+path)
		Expect(f.bodies[0]).To(MatchJSON(`{"Filter_config":"{\"request\":{\"set\":{\"x-a\":\"1\"}}}"}`))
		Expect(run1("10.0.0.9\n", "set", "filter/f", "tags=-").code).To(BeZero())
		Expect(f.bodies[1]).To(MatchJSON(`{"tags":"10.0.0.9"}`))
	})

	It("changes a part of what others change too, and gives up after five times", func() {
		f := serving("GET /service/shop/route/root", reply{200, `{"data":{"core_db_route":[{"route_config":{"match":"exact"}}]}}`, map[string]string{"ETag": `"a"`}})
		f.answers["PATCH /service/shop/route/root"] = reply{412, `{"detail":"it does not match","code":"precondition_failed"}`, nil}
		r := run1("", "set", "route/shop/root", "config.timeouts.request=5s")
		Expect(r.code).To(Equal(1))
		Expect(f.headers.Get("If-Match")).To(Equal(`"a"`))
		Expect(f.calls).To(HaveLen(10))
		Expect(f.bodies[9]).To(MatchJSON(`{"Route_config":{"match":"exact","timeouts":{"request":"5s"}}}`))
	})

	It("prints a key that was created", func() {
		serving("POST /keyset/partners/key", reply{201, `{"data":{"insert_core_db_key":{"affected_rows":1},"key":"ghk_1"}}`, map[string]string{"Gatehouse-Revision": "7"}})
		Expect(good("create", "key", "partners/mobile", "-o", "table")).To(Equal("key partners/mobile is created (revision 7)\nghk_1\n"))
	})

	DescribeTable("refuse a wrong command line with exit code 2", func(want string, args ...string) {
		Expect(run1("", args...)).To(Equal(result{2, "", "gatehouse: " + want + "\n"}))
	},
		Entry(nil, "an argument is missing; usage: gatehouse create KIND/NAME FIELD=VALUE... [flags]", "create"),
		Entry(nil, `"upstrem" is not a kind of object; did you mean upstream?`, "create", "upstrem/x", "ip=1"),
		Entry(nil, `"upstream" does not name an object; write KIND/NAME such as upstream/blue or service/shop/route/root`, "set", "upstream", "ip=1"),
		Entry(nil, "name what to change: gatehouse set keyset/a FIELD=VALUE; the fields of a keyset are tags", "set", "keyset/a"),
		Entry(nil, `"wieght" is not a field of an upstream; did you mean weight?`, "set", "upstream/a", "wieght=1"),
		Entry(nil, "tags: open /does/not/exist: no such file or directory", "set", "upstream/a", "tags=@/does/not/exist"),
		Entry(nil, "ip=- and tags=- cannot both read standard input", "set", "upstream/a", "ip=-", "tags=-"),
		Entry(nil, `"a" does not name a route; write SERVICE/ROUTE`, "create", "route", "a", "prefix=/"),
		Entry(nil, "a key cannot be copied, because only hashes of keys are stored; gatehouse create key makes another one", "copy", "key/a/b", "c"),
		Entry(nil, "name the object and its copy; usage: gatehouse copy KIND/NAME NEW [FIELD=VALUE...] [flags]", "copy", "upstream/a", "ip=1"),
		Entry(nil, "name objects or a document (-f), not both", "delete", "upstream/a", "-f", "x.yaml"),
		Entry(nil, `"cretae" is not a command; did you mean gatehouse create?`, "cretae", "upstream/a"),
		Entry(nil, "name the document: gatehouse validate -f FILE, -f DIRECTORY, or -f - for standard input", "validate"),
	)

	It("complete names and fields", func() {
		f := serving("GET /upstream?limit=100", reply{200, `{"data":{"core_db_upstream":[{"upstream_name":"blue"}]}}`, nil})
		complete := func(args ...string) string {
			GinkgoHelper()
			r := run1("", append([]string{"__complete"}, args...)...)
			Expect(r.code).To(BeZero())
			return r.stdout
		}
		Expect(complete("set", "upstream/")).To(Equal("upstream/blue\n:4\n"))
		Expect(complete("edit", "upstream", "")).To(Equal("blue\n:4\n"))
		for _, args := range [][]string{{"set", "upstream/blue", ""}, {"set", "upstream", "blue", ""}, {"create", "upstream", "new", "ip=1", ""}, {"create", "upstream/new", ""}} {
			Expect(complete(args...)).To(And(HavePrefix("ip=\nport=\nweight=\n"), HaveSuffix("\n:6\n")), strings.Join(args, " "))
		}
		Expect(complete("set", "service/shop/route/root", "")).To(Equal("prefix=\nconfig=\ntags=\n:6\n"))
		Expect(complete("create", "upstream", "")).To(Equal(":4\n"), "a new name is not known")
		Expect(f.calls).To(HaveLen(2))
	})
})
