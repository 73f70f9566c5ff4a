package pipeline_test

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// writer changes a configuration at random, as users would and also as they
// could not: references to missing objects, two services with one host.
type writer struct {
	rng     *rand.Rand
	id      int64
	objects map[model.Key]model.Object
	// pairs are certificates for each secret that is a pair.
	pairs map[string][]string
	// learned is what identity providers have published.
	learned map[model.Key]model.Providers
}

func newWriter(seed uint64) *writer {
	return &writer{rng: rand.New(rand.NewPCG(seed, 7)), objects: map[model.Key]model.Object{}, learned: map[model.Key]model.Providers{}} //nolint:gosec // a seeded test
}

func (w *writer) name(prefix string, n int) string { return fmt.Sprintf("%s%d", prefix, w.rng.IntN(n)) }

func (w *writer) pick(texts ...string) string { return texts[w.rng.IntN(len(texts))] }

// certificatesOf returns certificates for the keys of secrets (see keyOf).
func certificatesOf(secrets ...string) map[string][]string {
	GinkgoHelper()
	all := map[string][]string{}
	for _, name := range secrets {
		text, err := keyOf("", "secret/"+name+"/key")
		Expect(err).NotTo(HaveOccurred())
		block, _ := pem.Decode([]byte(text))
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		for i, names := range [][]string{{"host0.test"}, {"*.test", "host1.test"}, {"*.host1.test", "b.host1.test"}} {
			template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), DNSNames: names, NotAfter: time.Unix(int64(2_000_000_000+i), 0)}
			der, err := x509.CreateCertificate(nil, template, template, key.(*ecdsa.PrivateKey).Public(), key)
			Expect(err).NotTo(HaveOccurred())
			all[name] = append(all[name], string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		}
	}
	return all
}

// entry writes or deletes one object.
func (w *writer) entry() model.Entry {
	if w.pairs == nil {
		w.pairs = certificatesOf("p0", "p1", "p2")
	}
	var obj model.Object
	switch w.rng.IntN(19) {
	case 0, 1:
		u := model.NewUpstream()
		u.Name, u.IP, u.Port, u.Weight = w.name("u", 6), "192.0.2.1", 1+w.rng.IntN(3), w.rng.IntN(3)
		u.Protocol = []string{"http", "h2c", "tls"}[w.rng.IntN(3)]
		u.ValidationCACertificate = []string{"", "c0", "c1"}[w.rng.IntN(3)]
		obj = u
	case 2:
		obj = &model.Service{
			Name: w.name("s", 5), FQDN: w.pick("host0.test", "host1.test", "host2.test", "*.test", "*.host1.test", "a.host1.test", "*"),
			HTTPS: w.pick(model.HTTPSBoth, model.HTTPSBoth, model.HTTPSRedirect, model.HTTPSOnly), HSTSSeconds: w.rng.IntN(2),
			ClientCACertificate: w.pick("", "", "", "c0", "c1"), Public: w.rng.IntN(4) == 0,
		}
	case 3, 4:
		obj = &model.Route{Service: w.name("s", 5), Name: w.name("r", 4), Prefix: "/" + w.name("p", 3), Config: model.RouteConfig{Public: w.rng.IntN(4) == 0}}
	case 5:
		p := model.NewProxy()
		p.Name, p.HTTPPort, p.HTTPSPort = w.name("gw", 2), 8080+w.rng.IntN(2), 8443+w.rng.IntN(2)
		p.HTTP3 = p.HTTPPort == 8081
		obj = p
	case 6:
		obj = &model.RouteUpstream{Service: w.name("s", 5), Route: w.name("r", 4), Upstream: w.name("u", 6)}
	case 7:
		obj = &model.ProxyService{Proxy: w.name("gw", 2), Service: w.name("s", 5)}
	case 8:
		obj = &model.Secret{Name: w.name("c", 2), Cert: []string{"", "one", "two"}[w.rng.IntN(3)]}
	case 14:
		name := w.name("p", 3)
		obj = &model.Secret{Name: name, Cert: w.pairs[name][w.rng.IntN(3)], PrivateKey: w.pick("", "sealed:v1:", "sealed:v1:", "sealed:v1:")}
	case 15:
		obj = &model.ServiceSecret{Service: w.name("s", 5), Secret: w.name("p", 3)}
	case 9:
		f := &model.Filter{Type: model.FilterRateLimit, Config: w.config(`"descriptors":[{"`+w.pick("path", "method")+`":"x"}]`, true)}
		if w.rng.IntN(3) == 0 {
			f = w.oidc()
		}
		f.Name = w.name("f", 3)
		obj = f
	case 10:
		obj = &model.ServiceFilter{Service: w.name("s", 5), Filter: w.name("f", 3)}
	case 11:
		obj = &model.RouteFilter{Service: w.name("s", 5), Route: w.name("r", 4), Filter: w.name("f", 3)}
	case 12:
		g := &model.GlobalConfig{Type: model.GlobalConfigRateLimit, Config: w.config(`"descriptors":[{"key":"path","rate_limit":{"unit":"day","requests_per_unit":1}}]`, false)}
		if w.rng.IntN(3) == 0 {
			g = w.oauth()
		}
		g.Name = w.name("g", 3)
		obj = g
	case 16, 17:
		obj = &model.Secret{Name: w.name("v", 3), Value: w.pick("", "sealed:v1:lost", "sealed:v1:one", "sealed:v1:one", "sealed:v1:two", "sealed:v1:two", "sealed:v1:three")}
	case 18:
		obj = &model.ProxyFilter{Proxy: w.name("gw", 2), Filter: w.name("f", 3)}
	case 13:
		obj = &model.ProxyGlobalConfig{Proxy: w.name("gw", 2), GlobalConfig: w.name("g", 3)}
	}
	key := obj.Key()
	old := w.objects[key]
	if old != nil && w.rng.IntN(3) == 0 {
		delete(w.objects, key)
		return model.Entry{Key: key}
	}
	w.id++
	*obj.Meta().ID = w.id
	if old != nil {
		*obj.Meta().ID = *old.Meta().ID // a write keeps the ID
	}
	w.objects[key] = obj
	return model.Entry{Key: key, Object: obj}
}

// config is the JSON of a rate-limit object of some domain, or none at random.
func (w *writer) config(rest string, none bool) model.JSON {
	domain := w.name("d", 3)
	if none && domain == "d0" {
		return model.JSON("{" + rest + "}")
	}
	return model.JSON(`{"domain":"` + domain + `",` + rest + "}")
}

// everything returns the configuration as one full change, in random order.
func (w *writer) everything(revision int64) model.Change {
	c := model.Change{Revision: revision, Full: true, Learned: maps.Clone(w.learned)}
	for key, obj := range w.objects {
		c.Entries = append(c.Entries, model.Entry{Key: key, Object: obj})
	}
	w.rng.Shuffle(len(c.Entries), func(i, j int) { c.Entries[i], c.Entries[j] = c.Entries[j], c.Entries[i] })
	return c
}

// versions returns the names and versions of everything in a snapshot.
func versions(s *snapshot.Snapshot) map[string]string {
	if s == nil {
		return nil
	}
	all := map[string]string{"routes": s.Routes(s.Hosts).Version}
	for _, r := range s.Clusters {
		all["cluster "+r.Name] = r.Version
	}
	for _, r := range s.Listeners {
		all["listener "+r.Name] = r.Version
	}
	for _, h := range s.Hosts {
		all["host "+h.Name] = h.Version
	}
	for _, r := range s.Secrets {
		all["secret "+r.Name] = r.Version
	}
	for _, r := range slices.Concat(s.Extensions, s.Providers) {
		all["part "+r.Name] = r.Version
	}
	for _, c := range s.Certificates {
		r, _ := s.Certificate(c.Name)
		all["certificate "+c.Name] = r.Version
	}
	return all
}

func newBuild() *pipeline.Build {
	b, err := pipeline.NewBuild(compile.Settings{RateLimitSocket: "/run/engine.sock", Open: opened, Authorities: systemAuthorities})
	Expect(err).NotTo(HaveOccurred())
	return b
}

var _ = Describe("the result of many changes", func() {
	It("equals the result from scratch, in any order of input", func() {
		codes, logins := map[string]bool{}, map[string]int{}
		for seed := range seeds(25) {
			w, build := newWriter(seed), newBuild()
			live := map[string]*snapshot.Snapshot{}
			conditions := map[string][]model.Condition{}
			var rates []*limits.Domain
			for revision := range int64(80) {
				change := model.Change{Revision: revision + 1}
				for range 1 + w.rng.IntN(4) {
					change.Entries = append(change.Entries, w.entry())
				}
				change.Learned = w.learn()
				if w.rng.IntN(20) == 0 {
					change = w.everything(revision + 1)
				}
				result := build.Apply(change)
				maps.Copy(live, result.Snapshots)
				maps.Copy(conditions, result.Conditions)
				if result.RateLimits != nil {
					rates = result.RateLimits
				}

				scratch := newBuild().Apply(w.everything(revision + 1))
				for name, want := range scratch.Snapshots {
					Expect(versions(live[name])).To(Equal(versions(want)), "seed %d revision %d proxy %s", seed, revision+1, name)
					if want != nil {
						g := build.Gateway(name)
						expectSent(want, *g)
						loginsOf(g, logins)
					}
				}
				Expect(rates).To(Equal(scratch.RateLimits), "seed %d revision %d", seed, revision+1)
				for name, s := range live {
					if s != nil {
						Expect(scratch.Snapshots).To(HaveKey(name), "seed %d revision %d", seed, revision+1)
					} else {
						Expect(build.Gateway(name)).To(BeNil(), "seed %d revision %d", seed, revision+1)
					}
				}
				for source, told := range conditions {
					if _, holds := scratch.Conditions[source]; !holds {
						Expect(told).To(BeEmpty(), "seed %d revision %d %s", seed, revision+1, source)
					}
				}
				for source, want := range scratch.Conditions {
					Expect(sorted(conditions[source])).To(Equal(sorted(want)), "seed %d revision %d %s", seed, revision+1, source)
					for _, c := range want {
						codes[c.Code] = true
					}
				}
			}
		}
		Expect(slices.Sorted(maps.Keys(codes))).To(Equal([]string{
			model.HostConflict, model.NoMatchingRate, model.NoRates, model.NoUpstream, model.NotForwarded, model.Quarantined, model.UnknownDomain,
		}), "what the changes brought about")
		for _, kind := range []string{"filter", "filter verified", "globalconfig", "globalconfig verified"} {
			Expect(logins[kind]).To(BeNumerically(">", 5), "%s: %v", kind, logins)
		}
	})

	It("has the same bytes on one CPU and on many", func() {
		change := manyServices(200)
		for i := range 200 { // all services share its cluster
			service := fmt.Sprintf("s%d", i)
			for _, o := range []model.Object{
				&model.Route{ID: int64(1000 + i), Service: service, Name: "shared", Prefix: "/shared"},
				&model.RouteUpstream{ID: int64(1000 + i), Service: service, Route: "shared", Upstream: "extra"},
			} {
				change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
			}
		}
		sent := func(cpus int) (all []*snapshot.Resource) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cpus))
			s := newBuild().Apply(change).Snapshots["gw"]
			return slices.Concat(s.Clusters, s.Listeners, []*snapshot.Resource{s.Routes(s.Hosts)})
		}
		one := sent(1)
		Expect(one).To(HaveLen(201+3), "clusters; that of the rate-limit engine, the listener, the routes")
		for range 10 {
			Expect(sent(8)).To(Equal(one))
		}
	})

	It("keeps the pointers of everything that did not change", func() {
		w, build := newWriter(19), newBuild()
		for range 1000 {
			w.entry()
		}
		before := build.Apply(w.everything(1)).Snapshots["gw0"]
		after := build.Apply(w.everything(2)).Snapshots["gw0"]
		Expect(len(after.Hosts)).To(BeNumerically(">", 1))
		Expect(after.Hosts).To(HaveLen(len(before.Hosts)))
		Expect(after.Clusters).To(And(Not(BeEmpty()), HaveLen(len(before.Clusters))))
		Expect(after.Listeners).To(HaveLen(len(before.Listeners)))
		Expect(after.Listeners[0].Version).To(Equal(before.Listeners[0].Version))
		for i := range after.Hosts {
			Expect(after.Hosts[i]).To(BeIdenticalTo(before.Hosts[i]))
		}
		for i := range after.Clusters {
			Expect(after.Clusters[i]).To(BeIdenticalTo(before.Clusters[i]))
		}
	})

	It("changes only what an edit affects", func() {
		build := newBuild()
		build.Apply(readInput("testdata/cases/service-hosts/in.yaml").Change)
		change := model.Change{Revision: 2, Entries: []model.Entry{{
			Key:    model.RouteKey("exact", "root"),
			Object: &model.Route{ID: 3, Service: "exact", Name: "root", Prefix: "/moved"},
		}}}
		before := versions(build.Apply(model.Change{Revision: 2, Entries: []model.Entry{{
			Key: model.ProxyKey("gw"), Object: proxyNamed("gw"),
		}}}).Snapshots["gw"])
		result := build.Apply(change)
		Expect(result.Snapshots).To(HaveLen(1), "another proxy is not touched")
		after := versions(result.Snapshots["gw"])
		var different []string
		for name := range after {
			if after[name] != before[name] {
				different = append(different, name)
			}
			delete(before, name)
		}
		different = append(different, slices.Collect(maps.Keys(before))...)
		slices.Sort(different)
		Expect(different).To(Equal([]string{"host exact", "routes"}))
	})
})

func proxyNamed(name string) *model.Proxy {
	p := model.NewProxy()
	p.ID, p.Name = 1, name
	return p
}

func sorted(list []model.Condition) []string {
	var out []string
	for _, c := range list {
		out = append(out, fmt.Sprint(c))
	}
	slices.Sort(out)
	return out
}

// seeds returns GATEHOUSE_TEST_SEEDS if it is set, and n otherwise.
func seeds(n uint64) uint64 {
	if v, err := strconv.ParseUint(os.Getenv("GATEHOUSE_TEST_SEEDS"), 10, 64); err == nil {
		return v
	}
	return n
}
