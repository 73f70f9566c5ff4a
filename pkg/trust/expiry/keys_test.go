package expiry

import (
	"context"
	"log/slog"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// changes is a source whose next change is set by a spec.
type changes struct {
	next    *model.Change
	changed chan struct{}
}

func (s changes) Since(context.Context, model.Mark) (model.Change, error) {
	change := *s.next
	*s.next = model.Change{}
	return change, nil
}
func (s changes) Changed() <-chan struct{} { return s.changed }

func entry(o model.Object) model.Entry { return model.Entry{Key: o.Key(), Object: o} }

// ended returns the keys of a change, those that have ended with an exclamation mark.
func ended(change model.Change) (names []string) {
	for _, e := range change.Entries {
		switch k, is := e.Object.(*model.APIKey); {
		case is && k.IsExpired():
			names = append(names, e.Key.Name()+"!")
		case is:
			names = append(names, e.Key.Name())
		}
	}
	return names
}

var _ = Describe("An API key", func() {
	var (
		now      time.Time
		next     model.Change
		registry *status.Registry
		watch    *Watch
		store    chan struct{}
	)
	BeforeEach(func() {
		now = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
		registry, store = status.NewRegistry(), make(chan struct{}, 1)
		watch = New(Options{
			Source: changes{&next, store}, Status: registry, Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return now },
		})
	})
	since := func(change model.Change) []string {
		GinkgoHelper()
		next = change
		got, err := watch.Since(context.Background(), model.Mark{})
		Expect(err).NotTo(HaveOccurred())
		return ended(got)
	}
	key := func(name, expires string) *model.APIKey {
		return &model.APIKey{KeySet: "partners", Name: name, Expires: expires}
	}
	codes := func() (list []string) {
		for _, c := range registry.Conditions() {
			list = append(list, c.Key.Name()+" "+c.Code)
		}
		return list
	}

	It("ends at its time, which the reader is told of", func() {
		all := model.Change{Full: true, Entries: []model.Entry{
			entry(&model.KeySet{Name: "partners"}), entry(key("never", "")), entry(key("old", "2026-12-31T23:59:59Z")),
			entry(key("now", "2027-01-01T01:00:00+01:00")), entry(key("soon", "2027-01-01T00:00:01Z")), entry(key("late", "2027-02-01T00:00:00Z")),
			entry(key("odd", "tomorrow")),
		}}
		Expect(since(all)).To(Equal([]string{"never", "old!", "now!", "soon", "late", "odd"}))
		Expect(all.Entries[2].Object.(*model.APIKey).IsExpired()).To(BeFalse(), "what others read stays as it is")
		Expect(codes()).To(ConsistOf("old KeyExpired", "now KeyExpired", "soon KeyExpires"))
		Expect(watch.Changed()).NotTo(Receive())

		now = now.Add(time.Second)
		Expect(watch.look()).To(Equal(time.Date(2027, 1, 25, 0, 0, 0, 0, time.UTC)), "when the next condition comes")
		Expect(watch.Changed()).To(Receive())
		Expect(since(model.Change{})).To(Equal([]string{"soon!"}))
		Expect(since(model.Change{})).To(BeEmpty(), "it is told once")
		Expect(codes()).To(ConsistOf("old KeyExpired", "now KeyExpired", "soon KeyExpired"))

		By("a clock that goes back")
		now = now.Add(-time.Second)
		watch.look()
		Expect(watch.Changed()).To(Receive())
		Expect(since(model.Change{})).To(Equal([]string{"soon"}))

		By("another end, none, and no key")
		Expect(since(model.Change{Entries: []model.Entry{entry(key("old", "2027-06-01T00:00:00Z")), entry(key("now", ""))}})).To(Equal([]string{"old", "now"}))
		Expect(codes()).To(ConsistOf("soon KeyExpires"))
		Expect(since(model.Change{Entries: []model.Entry{{Key: key("soon", "").Key()}}})).To(BeEmpty())
		Expect(codes()).To(BeEmpty())
		Expect(since(model.Change{Full: true})).To(BeEmpty())
		now = now.AddDate(1, 0, 0)
		Expect(since(model.Change{})).To(BeEmpty())
	})

	It("is reported while time passes, with events", func(ctx SpecContext) {
		from := registry.Feed().Now()
		end := time.Now().Add(1500 * time.Millisecond)
		watch.opts.Now = time.Now
		Expect(since(model.Change{Entries: []model.Entry{entry(key("web", end.Format(time.RFC3339Nano)))}})).To(Equal([]string{"web"}))
		running, stop := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- watch.Run(running) }()
		Eventually(watch.Changed()).WithContext(ctx).WithTimeout(20 * time.Second).Should(Receive())
		Expect(time.Now()).To(BeTemporally(">=", end))
		Expect(since(model.Change{})).To(Equal([]string{"web!"}))
		var told []string
		events, _ := registry.Feed().After(from, 10)
		for _, e := range events {
			told = append(told, e.Event+" "+e.Object+" "+e.Code)
		}
		Expect(told).To(Equal([]string{"key /keyset/partners/key/web KeyExpires", "key /keyset/partners/key/web KeyExpired"}))
		store <- struct{}{}
		Eventually(watch.Changed()).WithContext(ctx).WithTimeout(20*time.Second).Should(Receive(), "what the store says is passed on")
		stop()
		Eventually(done).Should(Receive(BeNil()))
	})
})
