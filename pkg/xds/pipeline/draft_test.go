package pipeline_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("a draft", func() {
	// formsOf is what Envoys of a proxy see.
	formsOf := func(s *snapshot.Snapshot) map[string]string {
		forms := hostForms(s)
		if s != nil {
			for _, l := range s.Listeners {
				forms["listener "+l.Name] = l.Version
			}
		}
		return forms
	}

	It("is for each proxy what is published after the change, and leaves what is published", func() {
		different := 0
		for seed := range uint64(30) {
			w, build := newWriter(seed), newBuild()
			live := map[string]*snapshot.Snapshot{}
			for revision := range int64(60) {
				change := model.Change{Revision: revision + 1, Learned: w.learn()}
				for range 1 + w.rng.IntN(3) {
					change.Entries = append(change.Entries, w.entry())
				}
				var draft *pipeline.Draft
				tried := map[string]map[string]string{}
				if revision%10 == 9 {
					change.Learned = nil // a draft has learned nothing new
					draft = build.Draft()
					for proxy := range live {
						s, _, err := draft.Snapshot(proxy, change.Entries)
						Expect(err).NotTo(HaveOccurred())
						tried[proxy] = formsOf(s)
					}
				}
				for proxy, s := range build.Apply(change).Snapshots {
					live[proxy] = s
					different++
				}
				for proxy, forms := range tried {
					Expect(forms).To(Equal(formsOf(live[proxy])), "seed %d, revision %d, proxy %s", seed, revision, proxy)
				}
			}
		}
		Expect(different).To(BeNumerically(">", 100))
	})
})
