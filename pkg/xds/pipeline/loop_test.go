package pipeline_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// source answers from a list of changes. It returns an error before it.
type source struct {
	mu      sync.Mutex
	err     error
	changes []model.Change
	asked   []model.Mark
	changed chan struct{}
}

func (s *source) Changed() <-chan struct{} { return s.changed }

func (s *source) Since(_ context.Context, at model.Mark) (model.Change, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, at)
	if err := s.err; err != nil {
		s.err = nil
		return model.Change{}, err
	}
	for _, c := range s.changes {
		if c.Revision > at.Revision || c.Restored && c.ID != at.ID {
			return c, nil
		}
	}
	return model.Change{Revision: at.Revision, ID: at.ID}, nil
}

// reads returns how often it was read.
func (s *source) reads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func (s *source) add(c model.Change) {
	s.mu.Lock()
	s.changes = append(s.changes, c)
	s.mu.Unlock()
	s.changed <- struct{}{}
}

// publisher passes on what was published.
type publisher chan map[string]*snapshot.Snapshot

func (p publisher) Publish(_ int64, changed map[string]*snapshot.Snapshot) { p <- changed }

// Replace publishes a proxy with this name.
func (p publisher) Replace(_ int64, changed map[string]*snapshot.Snapshot) {
	changed["(replaced)"] = nil
	p <- changed
}

// next returns what is published next. Receive with a matcher would skip what
// does not match.
func (p publisher) next() map[string]*snapshot.Snapshot {
	GinkgoHelper()
	var changed map[string]*snapshot.Snapshot
	Eventually(p).Should(Receive(&changed))
	return changed
}

// startLoop runs a loop until the end of the spec.
func startLoop(src *source, pub publisher) *pipeline.Loop {
	loop := pipeline.NewLoop(pipeline.Options{
		Source: src, Publisher: pub, Status: status.NewRegistry(), Log: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- loop.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Expect(<-done).To(Succeed())
	})
	return loop
}

var _ = Describe("the loop", func() {
	var (
		src  *source
		pub  publisher
		loop *pipeline.Loop
	)
	start := func() { loop = startLoop(src, pub) }
	proxy := model.Entry{Key: model.ProxyKey("gw"), Object: proxyNamed("gw")}

	BeforeEach(func() {
		src = &source{changed: make(chan struct{}, 1)}
		pub = make(publisher, 10)
	})

	It("publishes even an empty configuration, and is then ready", func() {
		pub = make(publisher) // Publish returns when it is received
		start()
		Eventually(src.reads).Should(Equal(1))
		early := false
		select {
		case <-loop.Ready():
			early = true
		default:
		}
		Expect(pub.next()).To(BeEmpty())
		Expect(early).To(BeFalse(), "ready before anything is published")
		Eventually(loop.Ready()).Should(BeClosed())
	})

	It("reads on from its position after each signal", func() {
		src.changes = []model.Change{{Revision: 5, ID: "five", Full: true, Entries: []model.Entry{proxy}}}
		start()
		Expect(pub.next()).To(HaveKey("gw"))
		src.add(model.Change{Revision: 6, Entries: []model.Entry{{Key: proxy.Key}}})
		Expect(pub.next()).To(Equal(map[string]*snapshot.Snapshot{"gw": nil}))
		src.mu.Lock()
		defer src.mu.Unlock()
		Expect(src.asked).To(Equal([]model.Mark{{}, {Revision: 5, ID: "five"}}))
	})

	It("replaces everything after a restore of the database", func() {
		src.changes = []model.Change{{Revision: 5, ID: "five", Full: true, Entries: []model.Entry{proxy}}}
		start()
		Expect(pub.next()).To(HaveKey("gw"))
		src.add(model.Change{Revision: 5, ID: "other", Full: true, Restored: true})
		Expect(pub.next()).To(Equal(map[string]*snapshot.Snapshot{"gw": nil, "(replaced)": nil}))
	})

	It("retries when the source fails, and publishes nothing meanwhile", func() {
		src.err = errors.New("the database is away")
		src.changes = []model.Change{{Revision: 1, Full: true, Entries: []model.Entry{proxy}}}
		start()
		Expect(pub.next()).To(HaveKey("gw"), "the first that is published")
		Expect(src.reads()).To(Equal(2))
	})

	It("publishes nothing for a signal without a change", func() {
		start()
		Expect(pub.next()).To(BeEmpty())
		src.changed <- struct{}{}
		Eventually(src.reads).Should(Equal(2))
		src.add(model.Change{Revision: 1, Entries: []model.Entry{proxy}})
		Expect(pub.next()).To(HaveKey("gw"))
	})

	It("publishes the answers of an identity provider, and only if they matter", func() {
		filter := &model.Filter{ID: 1, Name: "login", Type: model.FilterOIDC, Config: `{"client_id":"a","client_secret":"sealed:v1:x","cookie_secret":"cookies",` +
			`"redirect_uri":"/callback","issuer":"https://login.example"}`}
		change := model.Change{Revision: 1, Full: true, Entries: []model.Entry{{Key: filter.Key(), Object: filter}}}
		for _, name := range []string{"shop", "open"} {
			for _, o := range []model.Object{
				&model.Service{ID: 1, Name: name, FQDN: name + ".example", HTTPS: model.HTTPSBoth}, proxyNamed(name), &model.ProxyService{ID: 1, Proxy: name, Service: name},
			} {
				change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
			}
		}
		on := &model.ServiceFilter{ID: 1, Service: "shop", Filter: "login"}
		change.Entries = append(change.Entries, model.Entry{Key: on.Key(), Object: on})
		src.changes = []model.Change{change}
		start()
		Expect(pub.next()).To(And(HaveKey("shop"), HaveKey("open")))
		src.add(model.Change{Revision: 2, Learned: map[model.Key]model.Providers{filter.Key(): {{Fault: "it is away"}}}})
		Expect(pub.next()).To(And(HaveLen(1), HaveKey("shop")))
	})
})
