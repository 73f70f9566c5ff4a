package e2e_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	_ "modernc.org/sqlite"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// only returns the only element of a read.
func only(api testkit.API, path string, into any) {
	GinkgoHelper()
	var body struct{ Data map[string][]json.RawMessage }
	text := read(api, path)
	Expect(json.Unmarshal([]byte(text), &body)).To(Succeed())
	for _, list := range body.Data {
		Expect(list).To(HaveLen(1), text)
		Expect(json.Unmarshal(list[0], into)).To(Succeed())
	}
}

// holding lists the conditions of an object that are true.
func holding(api testkit.API, path string) (codes []string) {
	GinkgoHelper()
	var object struct {
		Status struct {
			Conditions []struct {
				Code   string
				Status bool
			}
		}
	}
	only(api, path, &object)
	for _, c := range object.Status.Conditions {
		if c.Status {
			codes = append(codes, c.Code)
		}
	}
	return codes
}

type seen struct {
	Proxies []struct {
		Proxy  string
		Envoys []struct {
			State   string
			Refused []struct {
				Objects       []string
				Type, Message string
			}
		}
	}
	WaitingNodes []struct{ Node, Create string } `json:"waiting_nodes"`
	Conditions   []struct{ Path, Code string }
}

// slip writes to the database of a stopped control plane.
func slip(dir, statement string) {
	GinkgoHelper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "gatehouse.db"))
	Expect(err).NotTo(HaveOccurred())
	defer db.Close()
	done, err := db.ExecContext(limit(), statement)
	Expect(err).NotTo(HaveOccurred())
	Expect(done.RowsAffected()).To(Equal(int64(1)))
}

var _ = Describe("The status", func() {
	It("names what Envoy refuses and what is quarantined, and shows its release", func() {
		dir, port := GinkgoT().TempDir(), freePort()
		on := func() *testkit.Gatehouse {
			GinkgoHelper()
			return start(nil, "serve", "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
		}
		g := on()
		addUpstream(g.API, backend("blue"))
		for _, name := range []string{"good", "bad", "worse"} {
			addService(g.API, name, name+".example", "blue")
		}
		addRoute(g.API, "bad", "expr", "/a+", `{"match":"regex"}`, "blue")
		addRoute(g.API, "worse", "long", "/long", "", "blue")
		addProxy(g.API, "gw", port, "good", "bad", "worse")
		Expect(g.Stop(limit())).To(BeZero())
		// What Envoy's own constraints do not detect, and what they do.
		slip(dir, `UPDATE route SET prefix = '/(' WHERE name = 'expr'`)
		slip(dir, `UPDATE route SET config = '{"rewrite":{"host":"a\nb"}}' WHERE name = 'long'`)

		g = on()
		gw := gateway{g.API, port}
		envoyFor("gw", g.XDSAddr)
		gw.expect("good.example", "/", "blue")

		By("the bad object is named, with Envoy's words")
		status := func() (s seen) {
			only(g.API, "/status", &s)
			return s
		}
		Eventually(func() string {
			s := status()
			if len(s.Proxies[0].Envoys) == 0 || len(s.Proxies[0].Envoys[0].Refused) == 0 {
				return ""
			}
			e := s.Proxies[0].Envoys[0]
			return fmt.Sprint(e.State, e.Refused[0].Objects, e.Refused[0].Type, e.Refused[0].Message)
		}).Should(And(HavePrefix("refused[/service/bad]route"), ContainSubstring("missing )")))
		Eventually(holding).WithArguments(g.API, "/service/bad").Should(Equal([]string{"Accepted", "Rejected"}))
		Expect(status().Conditions).To(ConsistOf(struct{ Path, Code string }{"/service/worse/route/long", "Quarantined"}))
		Expect(holding(g.API, "/service/worse/route/long")).To(Equal([]string{"Programmed", "Quarantined"}))
		for _, path := range []string{"/service/good", "/service/good/route/root", "/proxy/gw"} {
			Eventually(holding).WithArguments(g.API, path).Should(Equal([]string{"Accepted", "Programmed"}), path)
		}
		Eventually(holding).WithArguments(g.API, "/upstream/blue").Should(HaveExactElements("Accepted", "Programmed", BeElementOf("Answering", "NotChecked")))
		code, table, _ := cliOf(g).run("status", "gw", "-o", "table")
		Expect(code).To(BeZero())
		Expect(table).To(And(MatchRegexp(`(?m)^/service/bad +127\.0\.0\.1:\d+ +.*missing \)`), MatchRegexp(`(?m)^/service/worse/route/long +Quarantined`)))

		By("a good object is still updated")
		addRoute(g.API, "good", "new", "/new", "", "blue")
		Eventually(holding).WithArguments(g.API, "/service/good/route/new").Should(Equal([]string{"Accepted", "Programmed"}))
		Expect(gw.answers("good.example", "/new")).To(Equal("blue"))

		By("the write that fixes it releases it")
		for path, field := range map[string]string{"/service/bad/route/expr": "Route_prefix=/b%2B", "/service/worse/route/long": "Route_config="} {
			a, err := g.API.Do(limit(), "PATCH", path, "application/x-www-form-urlencoded", field)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(200), a.Body)
			Eventually(holding).WithArguments(g.API, path).Should(Equal([]string{"Accepted", "Programmed"}), path)
		}
		Expect(gw.answers("bad.example", "/bbb")).To(Equal("blue"))
		Expect(status().Proxies[0].Envoys[0].State).To(Equal("current"))
		Expect(status().Conditions).To(BeEmpty())

		By("the resources are those that it has")
		for kind, part := range map[string]string{"clusters": `"name":"blue"`, "listeners": "HttpConnectionManager", "routes": `"domains":["good.example"]`} {
			Expect(read(g.API, "/proxy/gw/xds?type="+kind)).To(ContainSubstring(part))
		}
	})

	It("shows an Envoy that no proxy is for, and the call that creates one", func() {
		g := serve()
		envoyFor("edge", g.XDSAddr)
		var s seen
		Eventually(func() string {
			only(g.API, "/status", &s)
			return fmt.Sprint(s.WaitingNodes)
		}).Should(Equal("[{edge POST /proxy with Name=edge}]"))

		method, call, _ := strings.Cut(s.WaitingNodes[0].Create, " ")
		path, field, _ := strings.Cut(call, " with ")
		Expect(method).To(Equal("POST"))
		post(g.API, path, field, fmt.Sprintf("Http_port=%d", freePort()), "Listen_ip=127.0.0.1")
		Eventually(holding).WithArguments(g.API, "/proxy/edge").Should(Equal([]string{"Accepted", "Programmed"}))
		s = seen{}
		only(g.API, "/status", &s)
		Expect(s.WaitingNodes).To(BeEmpty())
	})
})
