package main

import (
	"crypto/tls"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("pki", func() {
	var dir string
	BeforeEach(func() { dir = filepath.Join(GinkgoT().TempDir(), "pki") })
	ends := func(days int) string {
		return time.Now().Add(time.Duration(days) * 24 * time.Hour).UTC().Format(time.DateOnly)
	}
	// without replaces what differs from run to run.
	without := func(out string) string {
		out = strings.ReplaceAll(out, dir, "DIR")
		return regexp.MustCompile(`[0-9a-f]{32}`).ReplaceAllString(out, "SERIAL")
	}
	ok := func(args ...string) string {
		GinkgoHelper()
		return without(good(append([]string{"pki"}, args...)...))
	}
	list := func() (list []map[string]any) {
		GinkgoHelper()
		Expect(json.Unmarshal([]byte(good("pki", "list", dir)), &list)).To(Succeed())
		return list
	}

	It("creates an authority and certificates, renews and revokes them", func() {
		Expect(ok("init", dir)).To(Equal("DIR/ca.crt: authority, ends " + ends(3650) + "\n" +
			"DIR/ca.key: its key; whoever has it can act as any proxy\nDIR/ca.crl: the certificates that it has revoked\nnext: gatehouse pki issue DIR server --host HOST\n"))
		Expect(ok("issue", dir, "server", "--host", "a.example,10.0.0.1", "--host", "localhost")).To(Equal(
			"DIR/server.crt, DIR/server.key: server, ends " + ends(90) + ", serial SERIAL\n"))
		Expect(ok("issue", dir, "proxy", "edge", "--days", "20")).To(Equal("DIR/edge.crt, DIR/edge.key: proxy edge, ends " + ends(20) + ", serial SERIAL\n"))
		Expect(ok("issue", dir, "ratelimit")).To(Equal("DIR/ratelimit.crt, DIR/ratelimit.key: ratelimit, ends " + ends(90) + ", serial SERIAL\n"))
		for _, name := range []string{"server", "edge", "ratelimit"} {
			_, err := tls.LoadX509KeyPair(filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key"))
			Expect(err).NotTo(HaveOccurred())
		}

		Expect(ok("renew", dir, "--within", "10")).To(Equal("nothing expires within 10 days; the first to expire is DIR/edge.crt, on " + ends(20) + "\n"))
		Expect(ok("renew", dir)).To(Equal("DIR/edge.crt: proxy edge, ends " + ends(20) + ", serial SERIAL\n"))
		Expect(ok("renew", dir, "edge.crt", filepath.Join(dir, "server.crt"), "--days", "100")).To(Equal(
			"DIR/edge.crt: proxy edge, ends " + ends(100) + ", serial SERIAL\nDIR/server.crt: server, ends " + ends(100) + ", serial SERIAL\n"))
		Expect(ok("revoke", dir, "edge.crt")).To(Equal(strings.Repeat("revoked: proxy edge, serial SERIAL\n", 3) + "DIR/ca.crl has the list, for --xds-tls-client-crl\n"))
		Expect(ok("revoke", dir, "edge.crt")).To(Equal("nothing changed: it is already revoked, or has expired\n"))
		Expect(ok("issue", dir, "proxy", "edge", "--force")).To(HavePrefix("DIR/edge.crt, DIR/edge.key: proxy edge"))

		certs := list()
		Expect(certs).To(HaveLen(8))
		Expect(certs[0]).To(And(HaveKeyWithValue("what", "authority"), HaveKeyWithValue("file", "ca.crt"), HaveKeyWithValue("sans", []any{})))
		var valid []any
		for _, c := range certs {
			if c["what"] == "proxy edge" && c["revoked_at"] == nil {
				valid = append(valid, c["file"], c["sans"])
			}
		}
		Expect(valid).To(Equal([]any{"edge.crt", []any{"spiffe://gatehouse/proxy/edge"}}))
		table := regexp.MustCompile(` +`).ReplaceAllString(ok("list", dir, "-o", "table"), " ")
		Expect(table).To(HavePrefix("WHAT FILE SERIAL NAMES ENDS REVOKED\nauthority ca.crt SERIAL in 3649 days (" + ends(3650) + ")\n"))
		Expect(table).To(ContainSubstring("\nserver server.crt SERIAL a.example, localhost, 10.0.0.1 in 99 days (" + ends(100) + ")\n"))
		Expect(table).To(ContainSubstring("\nproxy edge SERIAL spiffe://gatehouse/proxy/edge in 19 days (" + ends(20) + ") " + ends(0) + "\n"))
	})

	It("reports what is wrong, and what to do", func() {
		Expect(ok("init", dir)).NotTo(BeEmpty())
		Expect(ok("issue", dir, "proxy", "edge")).NotTo(BeEmpty())
		for _, c := range []struct {
			args string
			code int
			want string
		}{
			{"init DIR", 1, "DIR/ca.crt exists, and an authority is not replaced"},
			{"init DIR/a/b", 1, "mkdir -p DIR/a"},
			{"issue DIR/none proxy x", 1, "DIR/none has no authority (name the directory of one, or make it: gatehouse pki init DIR/none)"},
			{"issue DIR proxy edge", 1, "DIR/edge.crt exists and ends on " + ends(90)},
			{"issue DIR proxy late --days 4000", 1, "its authority ends on"},
			{"issue DIR proxy late --days 0", 2, "--days: 0 is not between 1 and 36500"},
			{"issue DIR proxy", 2, "the proxy needs a name"},
			{"issue DIR proxy ca", 2, "choose another name for the files with --file NAME"},
			{"issue DIR proxy edge --file=", 2, "--file needs a name"},
			{"issue DIR proxy edge --host x", 2, "--host is for a server"},
			{"issue DIR server", 2, "a server needs --host"},
			{"issue DIR server --force", 1, "a server needs --host"},
			{"issue DIR sever --host x", 2, `"sever" is not one of server, proxy, ratelimit`},
			{"issue DIR", 2, "wrong number of arguments, 1; usage: gatehouse pki issue"},
			{"renew DIR none.crt", 1, "DIR/none.crt does not exist (see gatehouse pki list DIR)"},
			{"renew DIR edge.crt --within 3", 2, "leave out the names"},
			{"revoke DIR xyz", 1, `"xyz" is neither NAME.crt nor a serial`},
			{"list DIR -o xml", 2, `--output: "xml" is not one of table, json, yaml`},
		} {
			r := run1("", append([]string{"pki"}, strings.Fields(strings.ReplaceAll(c.args, "DIR", dir))...)...)
			Expect(r.code).To(Equal(c.code), c.args)
			Expect(r.stdout).To(BeEmpty(), c.args)
			Expect(without(r.stderr)).To(And(HavePrefix("gatehouse: "), ContainSubstring(c.want), HaveSuffix("\n")), c.args)
			Expect(strings.Count(r.stderr, "\n")).To(Equal(1), c.args)
		}
		Expect(list()).To(HaveLen(2))
	})

	It("renews the others when one cannot be", func() {
		ok("init", dir)
		ok("issue", dir, "proxy", "a", "--days", "5")
		ok("issue", dir, "proxy", "b", "--days", "5")
		Expect(os.Remove(filepath.Join(dir, "a.key"))).To(Succeed())
		r := run1("", "pki", "renew", dir)
		Expect(r.code).To(Equal(1))
		Expect(without(r.stdout)).To(HavePrefix("DIR/b.crt: proxy b"))
		Expect(without(r.stderr)).To(And(ContainSubstring("DIR/a.key: no such file"), ContainSubstring("gatehouse pki issue DIR proxy a --force")))
	})

	It("completes purposes, proxies and files", func() {
		ok("init", dir)
		ok("issue", dir, "proxy", "edge")
		serving("GET /proxy?limit=100&name=e", reply{status: 200, body: `{"data":{"core_db_proxy":[{"name":"east"}]}}`})
		complete := func(args ...string) string {
			GinkgoHelper()
			return run1("", append([]string{"__complete", "pki"}, args...)...).stdout
		}
		Expect(complete("issue", dir, "")).To(HavePrefix("server\nproxy\nratelimit\n"))
		Expect(complete("issue", dir, "proxy", "e")).To(Equal("east\n:4\n"))
		Expect(complete("issue", dir, "server", "")).To(HavePrefix(":4"))
		Expect(complete("revoke", dir, "")).To(HavePrefix("edge.crt\n:4"))
		Expect(complete("renew", dir, "edge.crt", "")).To(HavePrefix("edge.crt\n:4"))
		Expect(complete("revoke", dir, "edge.crt", "")).To(HavePrefix(":4"))
		Expect(complete("init", "")).To(HavePrefix(":16"), "directories")
	})
})
