package e2e_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

const (
	stormWriters   = 5
	hostsPerWriter = 4
	// stormPause is the mean time between two changes of one writer.
	stormPause = time.Second * stormWriters / 10
)

// stormTime is how long a storm lasts: GATEHOUSE_TEST_STORM, or a time that suits a run
// with the other tests.
func stormTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("GATEHOUSE_TEST_STORM")); err == nil {
		return d
	}
	return 30 * time.Second
}

// kills is how often the control plane is killed: GATEHOUSE_TEST_KILLS, or a number
// that suits a run with the other tests.
func kills() int {
	if n, err := strconv.Atoi(os.Getenv("GATEHOUSE_TEST_KILLS")); err == nil {
		return n
	}
	return 3
}

// newStorm creates the objects of all writers. All random values use the seed of the
// specs.
func newStorm(api testkit.API, port int) (*storm, []*stormWriter) {
	GinkgoHelper()
	seed := uint64(GinkgoRandomSeed())                                                                          //nolint:gosec // any number is a seed
	s := &storm{api: api, began: time.Now(), names: map[string]*history{}, rng: rand.New(rand.NewPCG(seed, 0))} //nolint:gosec // no secret
	var pool []stormBackend
	for _, protocol := range []string{"http", "http", "http", "http", "http", "h2c", "h2c", "tls", "h2"} {
		name := fmt.Sprintf("b%d-%s", len(pool), protocol)
		pool = append(pool, stormBackend{backendWith(name, testkit.BackendOptions{Protocol: protocol}), protocol})
	}
	post(api, "/secret", "Secret_name=ca", "Secret_cert="+pool[len(pool)-1].Certificate())
	post(api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit", `Filter_config={"descriptors":[{"remote_address":"x"}]}`)
	post(api, "/proxy", "Name=gw", "Http_port="+strconv.Itoa(port), "Listen_ip=127.0.0.1")
	var writers []*stormWriter
	for id := range stormWriters {
		w := &stormWriter{
			storm: s, id: id, rng: rand.New(rand.NewPCG(seed, uint64(id+1))), pool: pool, //nolint:gosec // no secret
			ups: map[string]*stormUpstream{}, own: map[*testkit.Backend]bool{}, kinds: map[string]int{},
		}
		for range 5 {
			u := &stormUpstream{name: w.name("u"), strategy: "round_robin", protocol: "http", backend: pool[w.rng.IntN(5)].Backend, weight: 100}
			w.ups[u.name] = u
		}
		for i := range hostsPerWriter {
			name := fmt.Sprintf("w%d-h%d", id, i)
			_, u := anyOf(w.rng, w.ups)
			h := &stormHost{service: name, fqdn: name + ".example", old: name + "-none.example", attached: true}
			h.routes = map[string]*stormRoute{
				"root":  {path: "/", match: "prefix", upstreams: map[string]*stormUpstream{u.name: u}},
				"extra": {path: w.newPath(), match: "prefix", upstreams: map[string]*stormUpstream{u.name: u}},
			}
			w.mine = append(w.mine, h)
			s.expect(h.fqdn, h.answers(), time.Now())
			s.expect(h.old, nil, time.Now())
		}
		a, err := api.Do(limit(), http.MethodPut, "/config", "application/json", w.document(w.mine))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		for _, h := range w.mine {
			post(api, h.proxied())
		}
		s.hosts = append(s.hosts, w.mine...)
		writers = append(writers, w)
		DeferCleanup(func() {
			for b := range w.own {
				b.Close()
			}
		})
	}
	return s, writers
}

// rage lets the writers change things under traffic until end returns, and reports the
// result.
func (s *storm) rage(gw gateway, writers []*stormWriter, end func()) {
	GinkgoHelper()
	for _, h := range s.hosts {
		gw.expectOneOf(h.fqdn, "/", h.answers()["/"])
		s.settle(h.fqdn, time.Now())
	}
	traffic := testkit.StartTraffic(testkit.TrafficOptions{
		Addr: fmt.Sprintf("127.0.0.1:%d", gw.port), Connections: 100, Next: s.next, Judge: s.judge,
	})
	DeferCleanup(traffic.Stop)
	s.oldest = traffic.Oldest
	stop, ended := make(chan struct{}), make(chan error, len(writers))
	for _, w := range writers {
		go func() { ended <- w.run(stop, stormPause) }()
	}
	func() {
		defer close(stop)
		end()
	}()
	var errs []error
	for range writers {
		if err := <-ended; err != nil {
			errs = append(errs, err)
		}
	}
	report := traffic.Stop()
	report.Backends = nil
	kinds := map[string]int{}
	for _, w := range writers {
		for k, n := range w.kinds {
			kinds[k] += n
		}
	}
	text := fmt.Sprintf("%s\n%d requests had to be answered by a backend, %d met a host or name on its way in or out\n%s, in %d calls",
		report, s.sure, s.open, counted(kinds), len(s.changes))
	AddReportEntry("storm", text)
	_, _ = fmt.Fprintln(GinkgoWriter, text)
	Expect(errs).To(BeEmpty(), "of a writer")
	Expect(report.Failures).To(BeEmpty(), text)
	Expect(s.sure).To(BeNumerically(">", report.Requests/2), text)
	if !s.kills {
		Expect(kinds).To(HaveLen(len(writers[0].all())), "every kind of change: "+text)
	}
}

// expectOneOf waits until one of some backends answers a GET request, or until the
// answer is 404 if there are none.
func (g gateway) expectOneOf(host, path string, backends []string) {
	GinkgoHelper()
	if len(backends) == 0 {
		backends = []string{"404"}
	}
	Eventually(g.answers).WithArguments(host, path).Should(BeElementOf(backends), host+path)
}

// expectEnd checks that the API has what was written, and that Envoy has what the API
// has.
func (s *storm) expectEnd(gw gateway, envoy *testkit.Envoy, writers []*stormWriter) {
	GinkgoHelper()
	Expect(storedLines(s.api)).To(Equal(writtenLines(writers)))
	Eventually(func() map[string]string { return envoyVersions(envoy) }).Should(Equal(wantedVersions(s.api)))
	for _, h := range s.hosts {
		answers := expectation{answers: h.answers()}
		for _, r := range h.routes {
			gw.expectOneOf(h.fqdn, r.path, answers.of(r.path))
		}
		gw.expectOneOf(h.old, "/", nil)
	}
}

// writtenLines returns what the writers wrote, as text.
func writtenLines(writers []*stormWriter) (lines []string) {
	for _, w := range writers {
		for _, u := range w.ups {
			form := u.form()
			lines = append(lines, fmt.Sprintln("upstream", u.name, form.Get("Upstream_ip"), u.backend.Port, u.weight,
				form.Get("Upstream_hc_path"), u.strategy, u.protocol))
		}
		for _, h := range w.mine {
			lines = append(lines, fmt.Sprintln("service", h.service, h.fqdn, h.attached))
			for name, r := range h.routes {
				var ups []string
				for u := range r.upstreams {
					ups = append(ups, u)
				}
				slices.Sort(ups)
				lines = append(lines, fmt.Sprintln("route", h.service, name, r.path, ups))
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// storedLines returns the same from the API.
func storedLines(api testkit.API) (lines []string) {
	GinkgoHelper()
	list := func(path string, into any) {
		text := read(api, path)
		var body struct{ Data map[string]json.RawMessage }
		Expect(json.Unmarshal([]byte(text), &body)).To(Succeed())
		for _, l := range body.Data {
			Expect(json.Unmarshal(l, into)).To(Succeed(), text)
		}
	}
	var upstreams []struct {
		Name     string `json:"upstream_name"`
		IP       string `json:"upstream_ip"`
		Port     int    `json:"upstream_port"`
		Weight   int    `json:"upstream_weight"`
		Check    string `json:"upstream_hc_path"`
		Strategy string `json:"upstream_strategy"`
		Protocol string `json:"upstream_protocol"`
	}
	list("/upstream?limit=1000", &upstreams)
	for _, u := range upstreams {
		lines = append(lines, fmt.Sprintln("upstream", u.Name, u.IP, u.Port, u.Weight, u.Check, u.Strategy, u.Protocol))
	}
	type service struct {
		Name string `json:"service_name"`
		FQDN string
	}
	attached := map[string]bool{}
	var services, of []service
	list("/proxy/gw/service?limit=1000", &of)
	for _, s := range of {
		attached[s.Name] = true
	}
	list("/service?limit=1000", &services)
	for _, s := range services {
		lines = append(lines, fmt.Sprintln("service", s.Name, s.FQDN, attached[s.Name]))
		var routes []struct {
			Name   string `json:"route_name"`
			Prefix string `json:"route_prefix"`
		}
		list("/service/"+s.Name+"/route", &routes)
		for _, r := range routes {
			var ups []struct {
				Name string `json:"upstream_name"`
			}
			list("/service/"+s.Name+"/route/"+r.Name+"/upstream", &ups)
			var names []string
			for _, u := range ups {
				names = append(names, u.Name)
			}
			slices.Sort(names)
			lines = append(lines, fmt.Sprintln("route", s.Name, r.Name, r.Prefix, names))
		}
	}
	slices.Sort(lines)
	return lines
}

// wantedVersions returns the versions that Envoys should have according to the API, by
// type and name.
func wantedVersions(api testkit.API) map[string]string {
	GinkgoHelper()
	var body struct {
		Data map[string][]struct{ Type, Name, Version string }
	}
	Expect(json.Unmarshal([]byte(read(api, "/proxy/gw/xds")), &body)).To(Succeed())
	versions := map[string]string{}
	for _, list := range body.Data {
		for _, r := range list {
			versions[r.Type+" "+r.Name] = r.Version
		}
	}
	return versions
}

// envoyVersions returns the versions that an Envoy uses.
func envoyVersions(envoy *testkit.Envoy) map[string]string {
	GinkgoHelper()
	type resource struct {
		Version     string `json:"version_info"`
		Name        string
		Cluster     struct{ Name string }
		RouteConfig struct{ Name string } `json:"route_config"`
		Filter      struct{ Name string } `json:"ecds_filter"`
		Active      *struct {
			Version string `json:"version_info"`
		} `json:"active_state"`
	}
	var dump struct {
		Configs []struct {
			Clusters  []resource `json:"dynamic_active_clusters"`
			Warming   []resource `json:"dynamic_warming_clusters"`
			Listeners []resource `json:"dynamic_listeners"`
			Routes    []resource `json:"dynamic_route_configs"`
			Secrets   []resource `json:"dynamic_active_secrets"`
			// Extensions are listed once for each listener that uses them.
			Extensions []resource `json:"ecds_filters"`
		}
	}
	Expect(json.Unmarshal([]byte(read(envoy.Admin, "/config_dump")), &dump)).To(Succeed())
	versions := map[string]string{}
	for _, c := range dump.Configs {
		for _, r := range c.Clusters {
			versions["cluster "+r.Cluster.Name] = r.Version
		}
		for _, r := range c.Warming {
			versions["warming "+r.Cluster.Name] = r.Version
		}
		for _, r := range c.Listeners {
			versions["listener "+r.Name] = r.Active.Version
		}
		for _, r := range c.Routes {
			versions["route "+r.RouteConfig.Name] = r.Version
		}
		for _, r := range c.Secrets {
			versions["secret "+r.Name] = r.Version
		}
		for _, r := range c.Extensions {
			versions["extension "+r.Filter.Name] = r.Version
		}
	}
	return versions
}

var _ = Describe("A storm of changes", func() {
	It("loses no request, and each answer is right for its moment", func() {
		g := serve("--access-log", "off")
		gw := gateway{g.API, freePort()}
		s, writers := newStorm(g.API, gw.port)
		envoy := envoyFor("gw", g.XDSAddr)
		s.rage(gw, writers, func() { <-time.After(stormTime()) })
		s.expectEnd(gw, envoy, writers)
	})

	It("loses no request when the control plane is killed in the middle, again and again", func() {
		args := []string{
			"serve", "--data-dir", GinkgoT().TempDir(), "--access-log", "off",
			"--api-addr", fmt.Sprintf("127.0.0.1:%d", freePort()), "--xds-addr", fmt.Sprintf("127.0.0.1:%d", freePort()),
		}
		g := start(nil, args...)
		gw := gateway{g.API, freePort()}
		s, writers := newStorm(g.API, gw.port)
		s.kills = true
		envoy := envoyFor("gw", g.XDSAddr)
		moments := rand.New(rand.NewPCG(uint64(GinkgoRandomSeed()), 99)) //nolint:gosec // no secret
		s.rage(gw, writers, func() {
			for range kills() {
				<-time.After(time.Duration(moments.IntN(int(3 * time.Second))))
				Expect(g.Kill()).To(Succeed())
				<-time.After(time.Duration(moments.IntN(int(time.Second))))
				g = start(nil, args...)
			}
			<-time.After(time.Second)
		})
		s.expectEnd(gw, envoy, writers)
	})
})
