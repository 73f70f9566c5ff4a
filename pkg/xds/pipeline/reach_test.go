package pipeline_test

import (
	"context"
	"errors"
	"maps"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// hostForms returns for each host what an Envoy would see of it: its routes and
// the clusters that they name.
func hostForms(s *snapshot.Snapshot) map[string]string {
	forms := map[string]string{}
	if s == nil {
		return forms
	}
	clusters := map[string]string{}
	for _, c := range s.Clusters {
		clusters[c.Name] = c.Version
	}
	for _, h := range s.Hosts {
		forms[h.Name] = h.Version
		for _, c := range h.Clusters {
			forms[h.Name] += " " + clusters[c]
		}
	}
	return forms
}

var _ = Describe("the reach of a change", func() {
	It("covers every host and listener that differs afterwards", func() {
		different, relistened := 0, 0
		for seed := range uint64(40) {
			w, build := newWriter(seed), newBuild()
			live := map[string]*snapshot.Snapshot{}
			for revision := range int64(100) {
				change := model.Change{Revision: revision + 1}
				var keys []model.Key
				for range 1 + w.rng.IntN(2) {
					e := w.entry()
					if s, ok := e.Object.(*model.Service); ok {
						s.FQDN = s.Name + ".test" // no host has two services
					}
					change.Entries = append(change.Entries, e)
					keys = append(keys, e.Key)
				}
				change.Learned = w.learn()
				keys = slices.AppendSeq(keys, maps.Keys(change.Learned))
				result := build.Apply(change)
				reach := build.Reach(keys)
				for proxy, after := range result.Snapshots {
					before := live[proxy]
					was, is := hostForms(before), hostForms(after)
					names := slices.Collect(maps.Keys(was))
					for name := range is {
						names = append(names, name)
					}
					for _, name := range names {
						if name == credential.KeeperName {
							continue // it is not a service
						}
						if r := reach[proxy]; was[name] != is[name] && !r.All {
							different++
							whole := r.Listeners && (before == nil || after == nil)
							Expect(whole || slices.Contains(r.Services, name)).To(BeTrue(),
								"seed %d revision %d: %v changes host %s of %s", seed, revision+1, keys, name, proxy)
						}
					}
					if before != nil && after != nil && !slices.EqualFunc(before.Listeners, after.Listeners,
						func(a, b *snapshot.Resource) bool { return a.Version == b.Version }) {
						relistened++
						Expect(reach[proxy].Listeners || reach[proxy].All).To(BeTrue(), "seed %d revision %d", seed, revision+1)
					}
				}
				maps.Copy(live, result.Snapshots)
			}
		}
		Expect(different).To(BeNumerically(">", 100))
		Expect(relistened).To(BeNumerically(">", 100))
	})

	It("covers what is read after the call, not only what was signaled before", func() {
		src := &source{changed: make(chan struct{}, 1)}
		pub := make(publisher, 10)
		loop := startLoop(src, pub)
		Eventually(pub).Should(Receive())
		By("a revision without a signal yet")
		src.mu.Lock()
		src.changes = []model.Change{{Revision: 1, Entries: []model.Entry{{Key: model.ProxyKey("gw"), Object: proxyNamed("gw")}}}}
		src.mu.Unlock()
		reach, err := loop.Reach(context.Background(), []model.Key{model.ProxyKey("gw")})
		Expect(err).NotTo(HaveOccurred())
		Expect(reach).To(Equal(map[string]pipeline.Reach{"gw": {Listeners: true}}))
		Expect(pub).To(Receive(HaveKey("gw")))
		By("a source that fails")
		src.mu.Lock()
		src.err = errors.New("the database is away")
		src.mu.Unlock()
		reach, err = loop.Reach(context.Background(), []model.Key{model.ProxyKey("other")})
		Expect(err).NotTo(HaveOccurred())
		Expect(reach).To(HaveKey("other"))
	})

	It("is awaited no longer than the caller's context lasts", func() {
		src := &source{changed: make(chan struct{}, 1)}
		pub := make(publisher, 10)
		loop := startLoop(src, pub)
		Expect(pub.next()).To(BeEmpty())
		src.mu.Lock() // the source does not answer
		defer src.mu.Unlock()
		ctx, cancel := context.WithCancel(context.Background())
		gone := make(chan error, 1)
		go func() {
			_, err := loop.Reach(ctx, nil)
			gone <- err
		}()
		Consistently(gone).ShouldNot(Receive())
		cancel()
		Eventually(gone).Should(Receive(MatchError(context.Canceled)))
	})
})
