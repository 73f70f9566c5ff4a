package main

import (
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("secret set", func() {
	const missing = `{"title":"Not found","status":404,"detail":"secret \"shop\" does not exist","code":"not_found"}`
	const stored = `{"secret_name":"shop","secret_type":"tls","secret_sni":"","fingerprint":"sha256:0f","subject":"CN=shop","issuer":"CN=Test Authority","host_names":["shop.test","*.shop.test"],"not_after":"2099-01-02T03:04:05.000000+00:00","tags":[]}`
	const readBack, users = "GET /secret/shop", "GET /secret/shop/service?limit=1000"
	var pair testkit.Pair
	var dir string
	file := func(name, content string) string {
		GinkgoHelper()
		path := filepath.Join(dir, name)
		Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
		return path
	}
	var cert, key string
	var f *fake
	sent := func(i int) map[string]any {
		GinkgoHelper()
		var fields map[string]any
		Expect(json.Unmarshal([]byte(f.bodies[i]), &fields)).To(Succeed())
		return fields
	}

	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		authority, err := testkit.NewAuthority("Test Authority")
		Expect(err).NotTo(HaveOccurred())
		pair, err = authority.Issue(testkit.CertificateOptions{Names: []string{"shop.test", "*.shop.test"}})
		Expect(err).NotTo(HaveOccurred())
		cert, key = file("fullchain.pem", pair.Cert), file("privkey.pem", pair.Key)
		f = &fake{answers: map[string]reply{
			"PATCH /secret/shop": {200, `{"data":{"update_core_db_secret":{"affected_rows":1}}}`, map[string]string{"Gatehouse-Revision": "7"}},
			readBack:             {200, `{"data":{"core_db_secret":[` + stored + `]}}`, nil},
			users:                {200, `{"data":{"core_db_service":[{"service_name":"shop"},{"service_name":"api"}]}}`, nil},
		}}
		f.serve()
	})

	It("replaces the pair in one call, and reports what is stored", func() {
		out := good("secret", "set", "shop", "--cert", cert, "--key", key, "-o", "table")
		lines := strings.Split(out, "\n")
		Expect(lines[0]).To(Equal("secret shop is replaced (revision 7)"))
		Expect(lines[1]).To(Equal("  for      shop.test, *.shop.test"))
		Expect(lines[2]).To(Equal("  issuer   CN=Test Authority"))
		Expect(lines[3]).To(MatchRegexp(`^  ends     in \d+ days \(2099-01-02\)$`))
		Expect(lines[4:]).To(Equal([]string{"  used by  shop, api", ""}))
		Expect(f.calls).To(Equal([]string{"PATCH /secret/shop", readBack, users}))
		Expect(sent(0)).To(Equal(map[string]any{"secret_cert": pair.Cert, "secret_key": pair.Key}))
		Expect(out).NotTo(ContainSubstring("PRIVATE"))
	})

	It("creates the secret if it does not exist, unless somebody else just did", func() {
		f.answers["PATCH /secret/shop"] = reply{404, missing, nil}
		f.answers["PUT /secret/shop"] = reply{201, `{"data":{"insert_core_db_secret":{"affected_rows":1}}}`, map[string]string{"Gatehouse-Revision": "8"}}
		f.answers[users] = reply{200, `{"data":{"core_db_service":[]}}`, nil}
		out := good("secret", "set", "shop", "--cert", cert, "--key", key, "--sni", "shop.test", "--tag", "a,b", "-o", "table")
		Expect(out).To(HavePrefix("secret shop is created (revision 8)\n"))
		Expect(out).To(HaveSuffix("  used by  no service yet: gatehouse attach secret/shop service/SERVICE\n"))
		Expect(f.calls).To(Equal([]string{"PATCH /secret/shop", "PUT /secret/shop", readBack, users}))
		Expect(f.bodies[1]).To(Equal(f.bodies[0]))
		Expect(sent(1)).To(Equal(map[string]any{"secret_cert": pair.Cert, "secret_key": pair.Key, "secret_sni": "shop.test", "tags": []any{"a", "b"}}))

		f.answers["PUT /secret/shop"] = reply{412, `{"detail":"it was created meanwhile","code":"precondition_failed"}`, nil}
		Expect(run1("", "secret", "set", "shop", "--cert", cert).code).To(Equal(1))
	})

	It("reads one of them from standard input, and a text without its line end", func() {
		Expect(run1(pair.Key, "secret", "set", "shop", "--cert", cert, "--key", "-").code).To(BeZero())
		Expect(sent(0)).To(Equal(map[string]any{"secret_cert": pair.Cert, "secret_key": pair.Key}))
		f.calls, f.bodies = nil, nil
		Expect(run1("s3cret \n\n", "secret", "set", "shop", "--value", "-").code).To(BeZero())
		Expect(sent(0)).To(Equal(map[string]any{"secret_value": "s3cret \n"}))
	})

	It("prints data in a pipe", func() {
		Expect(good("secret", "set", "shop", "--cert", cert, "--key", key)).To(MatchJSON(
			`{"update_core_db_secret":{"affected_rows":1},"revision":7,"services":["shop","api"],"secret":` + stored + `}`))
	})

	It("shows warnings, and waits like the other writes", func() {
		f.answers["PATCH /secret/shop?timeout=5s&wait=applied"] = reply{202,
			`{"data":{"update_core_db_secret":{"affected_rows":1},"lagging":[{"proxy":"gw","reason":"not_connected","message":"no Envoy"}]}}`,
			map[string]string{"Gatehouse-Revision": "7", "Gatehouse-Warning": "service api loses its host"}}
		r := run1("", "secret", "set", "shop", "--cert", cert, "--key", key, "--wait", "--wait-timeout", "5s", "-o", "table")
		Expect(r.code).To(Equal(3))
		Expect(r.stdout).To(HavePrefix("secret shop is replaced (revision 7)\n  for "))
		Expect(r.stderr).To(HavePrefix("warning: service api loses its host\ngatehouse: the change is stored, but was not live everywhere"))
	})

	It("passes on the server's refusal, field by field", func() {
		f.answers["PATCH /secret/shop"] = reply{422, `{"detail":"some fields are wrong","code":"invalid","errors":[{"field":"Secret_key","message":"does not belong to the certificate"}]}`, nil}
		r := run1("", "secret", "set", "shop", "--key", key)
		Expect(r.code).To(Equal(1))
		Expect(r.stderr).To(ContainSubstring("Secret_key: does not belong to the certificate"))
		Expect(r.stderr).NotTo(ContainSubstring("PRIVATE"))
		Expect(f.calls).To(Equal([]string{"PATCH /secret/shop"}))
	})

	It("refuses a wrong command line with exit code 2, and calls no server", func() {
		huge := file("huge", strings.Repeat("x", 1<<20+1))
		for want, args := range map[string][]string{
			"--cert: open /nonexistent: no such file or directory":                                                {"shop", "--cert", "/nonexistent"},
			"--cert: " + huge + " has more than 1 MiB; is it the right file?":                                     {"shop", "--cert", huge},
			"--key: standard input is empty":                                                                      {"shop", "--cert", cert, "--key", "-"},
			"--cert - and --key - cannot both read standard input":                                                {"shop", "--cert", "-", "--key", "-"},
			`"a/b" is not the name of one secret: a name has no slash`:                                            {"a/b", "--cert", cert},
			"at least one of the flags in the group [cert key value sni] is required":                             {"shop"},
			"if any flags in the group [value cert] are set none of the others can be; [cert value] were all set": {"shop", "--cert", cert, "--value", key},
		} {
			stdin := ""
			if strings.HasPrefix(want, "--cert -") {
				stdin = pair.Cert
			}
			Expect(run1(stdin, append([]string{"secret", "set"}, args...)...)).To(Equal(result{2, "", "gatehouse: " + want + "\n"}))
		}
		Expect(f.calls).To(BeEmpty())
	})

	It("completes names, and certificates by file name suffix", func() {
		f.answers["GET /secret?limit=100&name=s"] = reply{200, `{"data":{"core_db_secret":[` + stored + `]}}`, nil}
		Expect(run1("", "__complete", "secret", "set", "s").stdout).To(Equal("shop\n:4\n"))
		Expect(run1("", "__complete", "secret", "set", "shop", "--cert", "").stdout).To(Equal("pem\ncrt\nkey\n:8\n"))
	})
})

var _ = Describe("get secrets", func() {
	It("prints a table of each secret's purpose, expiry and users", func() {
		f := serving("GET /secret?limit=1000", reply{200, `{"data":{"core_db_secret":[` +
			`{"secret_name":"shop","secret_type":"tls","secret_sni":"","host_names":["a.test","*.a.test"],"subject":"","not_after":"2099-01-02T03:04:05.000000+00:00","tags":["x"]},` +
			`{"secret_name":"old","secret_type":"tls","secret_sni":"old.test","subject":"CN=old","not_after":"2001-01-02T03:04:05.000000+00:00","tags":[]},` +
			`{"secret_name":"text","secret_type":"generic","secret_sni":"","subject":"","not_after":null,"tags":[]}]}}`, nil})
		f.answers["GET /secret/shop/service?limit=1000"] = reply{200, `{"data":{"core_db_service":[{"service_name":"shop"},{"service_name":"api"}]}}`, nil}
		f.answers["GET /secret/old/service?limit=1000"] = reply{200, `{"data":{"core_db_service":[]}}`, nil}
		f.answers["GET /secret/text/service?limit=1000"] = f.answers["GET /secret/old/service?limit=1000"]
		out := regexp.MustCompile(`\d+ days`).ReplaceAllString(good("get", "secrets", "-o", "table"), "N days")
		Expect(regexp.MustCompile(` {2,}`).ReplaceAllString(out, "|")).To(Equal("NAME|TYPE|FOR|ENDS|USED BY|TAGS\n" +
			"shop|tls|a.test, *.a.test|in N days (2099-01-02)|shop, api|x\n" +
			"old|tls|old.test|ended N days ago (2001-01-02)\n" +
			"text|generic\n"))
	})

	It("requests the certificates that expire soon", func() {
		f := serving("GET /secret?limit=1000", reply{200, `{"data":{"core_db_secret":[]}}`, nil})
		f.answers["GET /secret?expires_before=2026-12-24T00%3A00%3A00Z&limit=1000"] = f.answers["GET /secret?limit=1000"]
		Expect(good("get", "secrets", "--expires-before", "2026-12-24")).To(Equal("[]\n"))
		for _, wrong := range []string{"soon", "-3d", "3 d", "30dd"} {
			Expect(run1("", "get", "secrets", "--expires-before="+wrong).stderr).To(ContainSubstring("is neither a time from now such as 30d or 12h nor a date such as 2026-12-24"))
		}
		Expect(run1("", "get", "services", "--expires-before=30d")).To(Equal(result{2, "", "gatehouse: --expires-before is for secrets: services do not expire\n"}))
	})

	DescribeTable("shows the time left", func(left time.Duration, want string) { Expect(remaining(left)).To(Equal(want)) },
		Entry(nil, 61*24*time.Hour, "in 61 days"),
		Entry(nil, 47*time.Hour, "in 1 day"),
		Entry(nil, 23*time.Hour, "in 23 hours"),
		Entry(nil, time.Minute, "in 1 minute"),
		Entry(nil, time.Duration(0), "in 0 minutes"),
		Entry(nil, -time.Second, "ended 0 minutes ago"),
		Entry(nil, -49*time.Hour, "ended 2 days ago"),
	)

	DescribeTable("parses a time", func(given, want string) {
		now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		kind, err := client.FindKind("secrets")
		Expect(err).NotTo(HaveOccurred())
		cmd, query := newGet(), url.Values{}
		Expect(cmd.Flags().Set("expires-before", given)).To(Succeed())
		Expect(expiresBefore(cmd, kind, query, now)).To(Succeed())
		Expect(query.Get("expires_before")).To(Equal(want))
	},
		Entry(nil, "30d", "2026-12-22T12:00:00Z"),
		Entry(nil, "36h", "2026-11-24T00:00:00Z"),
		Entry(nil, "2026-12-24T01:00:00+01:00", "2026-12-24T00:00:00Z"),
	)
})
