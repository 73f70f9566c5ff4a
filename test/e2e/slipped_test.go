package e2e_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// slipped is written to the database without the program: to the row, and to the change
// log, as a version of the program would that allows it.
type slipped struct {
	kind, name string
	set        string         // of the row
	fields     map[string]any // of the entry in the change log
	where      string         // of the row
}

// slipIn writes to the database of a running program.
func slipIn(dir string, list ...slipped) {
	GinkgoHelper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "gatehouse.db")+"?_pragma=busy_timeout(10000)&_txlock=immediate&_time_format=sqlite")
	Expect(err).NotTo(HaveOccurred())
	defer db.Close()
	tx, err := db.BeginTx(limit(), nil)
	Expect(err).NotTo(HaveOccurred())
	exec := func(statement string, args ...any) {
		GinkgoHelper()
		done, err := tx.ExecContext(limit(), statement, args...)
		Expect(err).NotTo(HaveOccurred(), statement)
		Expect(done.RowsAffected()).To(BeEquivalentTo(1), statement)
	}
	exec("UPDATE revision SET revision = revision + 1")
	for i, s := range list {
		exec("UPDATE " + s.kind + " SET " + s.set + " WHERE " + s.where)
		var text string
		Expect(tx.QueryRowContext(limit(), "SELECT after FROM change_log WHERE kind = ? AND name = ? ORDER BY revision DESC LIMIT 1", s.kind, s.name).
			Scan(&text)).To(Succeed(), s.name)
		var object map[string]any
		Expect(json.Unmarshal([]byte(text), &object)).To(Succeed())
		for field, value := range s.fields {
			Expect(object).To(HaveKey(field))
			object[field] = value
		}
		after, err := json.Marshal(object)
		Expect(err).NotTo(HaveOccurred())
		exec("INSERT INTO change_log (revision, seq, actor, at, request, kind, name, before, after) "+
			"SELECT revision, ?, 'hand', ?, 'sqlite', ?, ?, ?, ? FROM revision", i+1, time.Now().UTC(), s.kind, s.name, text, string(after))
	}
	Expect(tx.Commit()).To(Succeed())
}

// badObject is one of those objects, with its effects.
type badObject struct {
	slipped
	// path is the object that the status names, text a part of its message.
	path, text string
	// refused says that Envoy refuses it: an Envoy that has an earlier version keeps
	// that, another answers 503. Otherwise Gatehouse has detected it.
	refused bool
	// answer is the answer of its host then.
	answer string
	// mend is the write that repairs it.
	mend []string // method, path, fields
}

func ofRoute(name, set string, fields map[string]any) slipped {
	return slipped{"route", name + "/root", set, fields, "service = '" + name + "' AND name = 'root'"}
}

func ofNamed(kind, name, set string, fields map[string]any) slipped {
	return slipped{kind, name, set, fields, "name = '" + name + "'"}
}

// badObjects returns services and upstreams bad0 to bad9, and the secret junk.
func badObjects() []badObject {
	large := strings.Repeat("[a-z]{1,900}/", 12)
	host := strings.Repeat("x", 1<<20) + "\n"
	patch := func(path string, fields ...string) []string {
		return append([]string{http.MethodPatch, path}, fields...)
	}
	return []badObject{
		{
			ofRoute("bad0", `prefix = '/(', config = '{"match":"regex"}'`, map[string]any{"route_prefix": "/(", "route_config": map[string]any{"match": "regex"}}),
			"/service/bad0", "missing )", true, "503", patch("/service/bad0/route/root", "Route_prefix=/", "Route_config="),
		}, {
			ofNamed("service", "bad1", "fqdn = 'GOOD7.example'", map[string]any{"fqdn": "GOOD7.example"}),
			"/proxy/gw/service/bad1", `service "good7" has the same host`, false, "404", patch("/service/bad1", "fqdn=bad1.example"),
		}, {
			ofNamed("service", "bad2", `fqdn = 'bad2' || char(10) || '.example'`, map[string]any{"fqdn": "bad2\n.example"}),
			"/service/bad2", "Envoy would refuse the service", false, "404", patch("/service/bad2", "fqdn=bad2.example"),
		}, {
			ofNamed("upstream", "bad3", "port = 70000", map[string]any{"upstream_port": 70000}),
			"/service/bad3/route/root", "PortValue", false, "503", nil,
		}, {
			ofNamed("upstream", "bad4", "protocol = 'tls', validation_ca_certificate = 'nowhere'",
				map[string]any{"upstream_protocol": "tls", "upstream_validation_cacertificate": "nowhere"}),
			"/service/bad4/route/root", "certificate authority", false, "503",
			patch("/upstream/bad4", "Upstream_protocol=http", "Upstream_validation_cacertificate="),
		}, {
			ofNamed("secret", "junk", "cert = 'no certificate'", map[string]any{"secret_cert": "no certificate"}),
			"/secret/junk", "", true, "503", nil,
		}, {
			ofRoute("bad6", `config = '{"headers":[{"name":"x","regex":"`+large+`"}]}'`,
				map[string]any{"route_config": map[string]any{"headers": []any{map[string]any{"name": "x", "regex": large}}}}),
			"/service/bad6", "program size", true, "503", patch("/service/bad6/route/root", "Route_config="),
		}, {
			ofRoute("bad7", `config = '{"match":'`, map[string]any{"route_config": map[string]any{"match": 7}}),
			"/service/bad7/route/root", "cannot be read", false, "503", patch("/service/bad7/route/root", "Route_config="),
		}, {
			ofNamed("upstream", "bad8", "hc_path = '/', hc_interval_seconds = 0", map[string]any{"upstream_hc_path": "/", "upstream_hc_intervalseconds": 0}),
			"/service/bad8/route/root", "Interval", false, "503", patch("/upstream/bad8", "Upstream_hc_path=", "Upstream_hc_intervalseconds=5"),
		}, {
			ofRoute("bad9", `config = '{"rewrite":{"host":"`+strings.ReplaceAll(host, "\n", `\n`)+`"}}'`,
				map[string]any{"route_config": map[string]any{"rewrite": map[string]any{"host": host}}}),
			"/service/bad9/route/root", "HostRewriteLiteral", false, "503", patch("/service/bad9/route/root", "Route_config="),
		},
	}
}

// told returns what GET /status reports about objects, by path.
func told(api testkit.API) (conditions, refused map[string]string, state []string) {
	GinkgoHelper()
	var status struct {
		Proxies []struct {
			Envoys []struct {
				State   string
				Refused []struct {
					Objects []string
					Message string
				}
			}
		}
		Conditions []struct{ Path, Message string }
	}
	only(api, "/status", &status)
	conditions, refused = map[string]string{}, map[string]string{}
	for _, c := range status.Conditions {
		conditions[c.Path] = c.Message
	}
	for _, p := range status.Proxies {
		for _, e := range p.Envoys {
			state = append(state, e.State)
			for _, r := range e.Refused {
				for _, path := range r.Objects {
					refused[path] = r.Message
				}
			}
		}
	}
	return conditions, refused, state
}

var _ = Describe("Bad objects that bypassed validation", func() {
	const good = 100

	It("harm nobody else, are named, and are released by the write that fixes them", func() {
		dir, port := GinkgoT().TempDir(), freePort()
		args := []string{
			"serve", "--data-dir", dir, "--access-log", "off",
			"--api-addr", fmt.Sprintf("127.0.0.1:%d", freePort()), "--xds-addr", fmt.Sprintf("127.0.0.1:%d", freePort()),
		}
		g := start(nil, args...)
		gw := gateway{g.API, port}
		blue := backend("blue")
		secure := backendWith("secure", testkit.BackendOptions{Protocol: "tls"})
		post(g.API, "/secret", "Secret_name=junk", "Secret_cert="+secure.Certificate())
		addUpstream(g.API, blue)
		var names []string
		for i := range good {
			names = append(names, fmt.Sprintf("good%d", i))
		}
		putServices(g.API, names, func(string) string { return "blue" })
		bad := badObjects()
		names = nil
		for i := range bad {
			name := fmt.Sprintf("bad%d", i)
			names = append(names, name)
			fields := []string{"Upstream_port=" + fmt.Sprint(blue.Port)}
			if name == "bad5" {
				fields = []string{"Upstream_port=" + fmt.Sprint(secure.Port), "Upstream_protocol=tls", "Upstream_validation_cacertificate=junk"}
			}
			post(g.API, "/upstream", append(fields, "Upstream_name="+name, "Upstream_ip=127.0.0.1")...)
		}
		bad[3].mend = []string{http.MethodPatch, "/upstream/bad3", "Upstream_port=" + fmt.Sprint(blue.Port)}
		bad[5].mend = []string{http.MethodPatch, "/secret/junk", "Secret_cert=" + secure.Certificate()}
		putServices(g.API, names, func(name string) string { return name })
		addProxyOf(g.API, port, good, len(bad))
		envoy := envoyFor("gw", g.XDSAddr)
		own := func(i int) string { return map[bool]string{true: "secure", false: "blue"}[i == 5] }
		for i := range bad {
			gw.expect(names[i]+".example", "/", own(i))
		}

		changed := 0
		expectGood := func() {
			GinkgoHelper()
			for i := range good {
				Expect(gw.answers(fmt.Sprintf("good%d.example", i), "/")).To(Equal("blue"), "good%d", i)
			}
			for range 5 {
				changed++
				host := fmt.Sprintf("good%d", changed*17%good)
				applied(g.API, http.MethodPost, "/service/"+host+"/route", fmt.Sprintf("Route_Name=n%d", changed), fmt.Sprintf("Route_prefix=/n%d", changed))
				Expect(gw.answers(host+".example", fmt.Sprintf("/n%d", changed))).To(Equal("503"), "a route without an upstream")
				applied(g.API, http.MethodPost, fmt.Sprintf("/service/%s/route/n%d/upstream/blue", host, changed))
				Expect(gw.answers(host+".example", fmt.Sprintf("/n%d", changed))).To(Equal("blue"))
			}
		}
		expectNamed := func() {
			GinkgoHelper()
			for _, b := range bad {
				Eventually(func() string {
					conditions, refused, _ := told(g.API)
					if b.refused {
						return refused[b.path]
					}
					return conditions[b.path]
				}).Should(And(Not(BeEmpty()), ContainSubstring(b.text)), b.path)
			}
			conditions, refused, state := told(g.API)
			Expect(len(conditions) + len(refused)).To(Equal(len(bad)))
			Expect(state).To(Equal([]string{"refused"}))
			for path, text := range maps.All(conditions) {
				Expect(len(text)).To(BeNumerically("<", 10_000), path)
			}
			_, _ = fmt.Fprintln(GinkgoWriter, "quarantined:", conditions, "refused:", refused)
		}

		By("while it runs")
		expectGood()
		for _, b := range bad {
			slipIn(dir, b.slipped)
		}
		expectNamed()
		expectGood()
		for i, b := range bad {
			want := b.answer
			if b.refused {
				want = own(i)
			}
			gw.expect(names[i]+".example", "/", want)
		}

		By("after a restart, with a new Envoy")
		Expect(g.Stop(limit())).To(BeZero())
		Expect(envoy.Kill()).To(Succeed())
		g = start(nil, args...)
		envoyFor("gw", g.XDSAddr)
		expectNamed()
		for i, b := range bad {
			gw.expect(names[i]+".example", "/", b.answer)
		}
		expectGood()

		By("fixed one by one")
		for i, b := range bad {
			applied(g.API, b.mend[0], b.mend[1], escaped(b.mend[2:])...)
			Expect(gw.answers(names[i]+".example", "/")).To(Equal(own(i)), names[i])
			conditions, refused, _ := told(g.API)
			Expect(slices.Concat(slices.Collect(maps.Keys(conditions)), slices.Collect(maps.Keys(refused)))).NotTo(ContainElement(b.path))
		}
		_, _, state := told(g.API)
		Expect(state).To(Equal([]string{"current"}))
		expectGood()
	})
})

// escaped encodes fields for applied, which sends them unchanged.
func escaped(list []string) (out []string) {
	for _, f := range list {
		out = append(out, fields(f).Encode())
	}
	return out
}

// putServices makes services, each with one route, in one call.
func putServices(api testkit.API, names []string, upstream func(string) string) {
	GinkgoHelper()
	var services []any
	for _, name := range names {
		services = append(services, map[string]any{
			"service_name": name, "fqdn": name + ".example",
			"routes": []any{map[string]any{"route_name": "root", "route_prefix": "/", "upstreams": []string{upstream(name)}}},
		})
	}
	putConfig(api, map[string]any{"version": 1, "services": services})
}

// addProxyOf makes proxy gw in front of good and bad services.
func addProxyOf(api testkit.API, port, good, bad int) {
	GinkgoHelper()
	var services []string
	for i := range good {
		services = append(services, fmt.Sprintf("good%d", i))
	}
	for i := range bad {
		services = append(services, fmt.Sprintf("bad%d", i))
	}
	putConfig(api, map[string]any{"version": 1, "proxies": []any{
		map[string]any{"name": "gw", "http_port": port, "https_port": freePort(), "listen_ip": "127.0.0.1", "services": services},
	}})
}

func putConfig(api testkit.API, document map[string]any, query ...string) {
	GinkgoHelper()
	text, err := json.Marshal(document)
	Expect(err).NotTo(HaveOccurred())
	a, err := api.Do(limit(), http.MethodPut, "/config"+strings.Join(query, ""), "application/json", string(text))
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
}
