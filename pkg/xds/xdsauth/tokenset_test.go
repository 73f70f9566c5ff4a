package xdsauth_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/xdsauth"
)

type proxyTokens = store.ProxyTokens

// database is a store that can be made unavailable, and counts its calls.
type database struct {
	proxyTokens
	away        atomic.Bool
	untouchable atomic.Bool // its uses cannot be recorded
	hanging     atomic.Bool // it answers when the caller gives up
	looks, read atomic.Int64
	touches     atomic.Int64
	// patience is how long the last caller waits.
	patience atomic.Int64
}

var errAway = errors.New("the database does not answer")

func (d *database) notePatience(ctx context.Context) {
	if deadline, ok := ctx.Deadline(); ok {
		d.patience.Store(int64(time.Until(deadline)))
	}
}

func (d *database) ProxyTokensSince(ctx context.Context, version string) ([]store.ProxyToken, string, error) {
	d.notePatience(ctx)
	d.looks.Add(1)
	switch {
	case d.away.Load():
		return nil, "", errAway
	case d.hanging.Load():
		<-ctx.Done()
		return nil, "", ctx.Err()
	}
	all, now, err := d.proxyTokens.ProxyTokensSince(ctx, version)
	d.read.Add(int64(len(all)))
	return all, now, err
}

func (d *database) TouchProxyTokens(ctx context.Context, hashes [][sha256.Size]byte, at time.Time) error {
	d.notePatience(ctx)
	d.touches.Add(1)
	if d.untouchable.Load() {
		return errAway
	}
	return d.proxyTokens.TouchProxyTokens(ctx, hashes, at)
}

// clock is a clock that a spec sets.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// tokenLab is a set of tokens on an SQLite database.
type tokenLab struct {
	*database
	other store.ProxyTokens // another process on the same database
	set   *xdsauth.TokenSet
	log   *gbytes.Buffer
	clock *clock
}

func newTokenLab(ctx context.Context) *tokenLab {
	GinkgoHelper()
	url, err := migrated.SQLite(filepath.Join(GinkgoT().TempDir(), "gatehouse.db"))
	Expect(err).NotTo(HaveOccurred())
	open := func() *sqlstore.Store {
		db, err := sqlstore.Open(ctx, sqlstore.Options{URL: url})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(db.Close)
		return db
	}
	db := open()
	_, err = db.Write(ctx, store.Origin{Actor: "tester"}, func(w store.Writer) error {
		return errors.Join(w.Insert(&model.Proxy{Name: "edge"}), w.Insert(&model.Proxy{Name: "inner"}))
	})
	Expect(err).NotTo(HaveOccurred())
	l := &tokenLab{
		database: &database{proxyTokens: db}, other: open(), log: gbytes.NewBuffer(),
		clock: &clock{at: time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)},
	}
	l.set = xdsauth.NewTokenSet(l.database, slog.New(slog.NewTextHandler(l.log, nil)), l.clock.now)
	l.set.LookEvery(20 * time.Millisecond)
	return l
}

// run runs the set until the spec ends.
func (l *tokenLab) run() {
	GinkgoHelper()
	before := gleak.Goroutines()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- l.set.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done).Should(Receive(BeNil()))
		Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
	})
}

// create makes a token whose text is its name, and revoke deletes it, as another process does.
func (l *tokenLab) create(ctx context.Context, proxy, name string) {
	GinkgoHelper()
	Expect(l.other.CreateProxyToken(ctx, store.ProxyToken{Proxy: proxy, Name: name, Hash: store.HashToken(name), CreateTS: model.At(l.clock.now())})).To(Succeed())
}

func (l *tokenLab) revoke(ctx context.Context, proxy, name string) {
	GinkgoHelper()
	Expect(l.other.DeleteProxyToken(ctx, proxy, name)).To(Succeed())
}

// find looks a token up as a stream does that stays open until ctx ends.
func (l *tokenLab) find(ctx context.Context, text string) (xdsauth.Token, bool) {
	return l.set.Find(ctx, sha256.Sum256([]byte(text)))
}

func (l *tokenLab) knows(text string) func() bool {
	return func() bool {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, ok := l.find(ctx, text)
		return ok
	}
}

var _ = Describe("A set of tokens", func() {
	It("has the tokens of the database from the beginning, and new ones of others a second later", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.create(ctx, "edge", "first")
		l.create(ctx, "", "engine")
		Expect(l.knows("first")()).To(BeFalse(), "before the first look")
		Expect(l.set.Refresh(ctx)).To(Succeed())
		found, ok := l.find(ctx, "first")
		Expect([]any{ok, found.Name, found.Proxy, found.RateLimits}).To(Equal([]any{true, "first", "edge", false}))
		found, ok = l.find(ctx, "engine")
		Expect([]any{ok, found.Name, found.Proxy, found.RateLimits}).To(Equal([]any{true, "engine", "", true}))
		for _, text := range []string{"", "First", "first ", "edge", "second"} {
			Expect(l.knows(text)()).To(BeFalse(), text)
		}
		l.run()
		l.create(ctx, "inner", "second")
		Eventually(l.knows("second"), "5s").Should(BeTrue())
		Expect(l.log.Contents()).To(BeEmpty())
	})

	It("ends what is open with a revoked token, and nothing else", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.create(ctx, "edge", "first")
		l.create(ctx, "edge", "second")
		Expect(l.set.Refresh(ctx)).To(Succeed())
		first, _ := l.find(ctx, "first")
		second, _ := l.find(ctx, "second")
		l.run()
		l.revoke(ctx, "edge", "first")
		Eventually(first.Revoked, "5s").Should(BeClosed())
		Expect(l.knows("first")()).To(BeFalse())
		l.create(ctx, "edge", "third")
		Eventually(l.knows("third"), "5s").Should(BeTrue())
		Expect(second.Revoked).NotTo(BeClosed())
		again, _ := l.find(ctx, "second")
		Expect(again.Revoked).To(BeIdenticalTo(second.Revoked))
	})

	It("has changes of its own process immediately", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		Expect(l.set.Refresh(ctx)).To(Succeed())
		l.create(ctx, "edge", "first")
		l.set.Changed(ctx)
		first, ok := l.find(ctx, "first")
		Expect(ok).To(BeTrue())
		l.revoke(ctx, "edge", "first")
		gone, cancel := context.WithCancel(ctx)
		cancel() // the caller of the API does not wait for the answer
		l.set.Changed(gone)
		Expect(first.Revoked).To(BeClosed())
		Expect(l.log.Contents()).To(BeEmpty())
	})

	It("ends what is open with each of several revoked tokens", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		names := []string{"a", "b", "c", "d", "e"}
		for _, name := range names {
			l.create(ctx, "edge", name)
		}
		Expect(l.set.Refresh(ctx)).To(Succeed())
		var open []<-chan struct{}
		for _, name := range names {
			found, _ := l.find(ctx, name)
			open = append(open, found.Revoked)
			l.revoke(ctx, "edge", name)
		}
		Expect(l.set.Refresh(ctx)).To(Succeed())
		Expect(open).To(HaveEach(BeClosed()))
	})

	It("treats a token that is created again with the same name as a different one", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.create(ctx, "edge", "first")
		Expect(l.set.Refresh(ctx)).To(Succeed())
		first, _ := l.find(ctx, "first")
		l.revoke(ctx, "edge", "first")
		Expect(l.other.CreateProxyToken(ctx, store.ProxyToken{Proxy: "edge", Name: "first", Hash: store.HashToken("new"), CreateTS: model.At(l.clock.now())})).To(Succeed())
		Expect(l.set.Refresh(ctx)).To(Succeed())
		Expect(first.Revoked).To(BeClosed())
		Expect(l.knows("first")()).To(BeFalse())
		Expect(l.knows("new")()).To(BeTrue())
	})

	It("reads nothing while nothing changes", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.create(ctx, "edge", "first")
		l.create(ctx, "edge", "second")
		for range 3 {
			Expect(l.set.Refresh(ctx)).To(Succeed())
		}
		Expect([]int64{l.looks.Load(), l.read.Load()}).To(Equal([]int64{3, 2}))
	})

	It("remains unchanged while the database is unavailable, and reports it once", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.create(ctx, "edge", "first")
		Expect(l.set.Refresh(ctx)).To(Succeed())
		first, _ := l.find(ctx, "first")
		l.away.Store(true)
		l.run()
		looks := l.looks.Load()
		Eventually(l.looks.Load, "10s").Should(BeNumerically(">=", looks+3))
		Expect(first.Revoked).NotTo(BeClosed())
		Expect(l.knows("first")()).To(BeTrue())
		Expect(string(l.log.Contents())).To(MatchRegexp(`^time=\S+ level=WARN msg="tokens of the xds port stay as they are, trying again" err="looking for changed tokens of the xDS port: the database does not answer"\n$`))
		l.revoke(ctx, "edge", "first")
		l.away.Store(false)
		Eventually(first.Revoked, "5s").Should(BeClosed())
		Eventually(l.log).Should(gbytes.Say(`level=INFO msg="tokens of the xds port are up to date again"`))
		looks = l.looks.Load()
		Eventually(l.looks.Load, "10s").Should(BeNumerically(">=", looks+3))
		Expect(strings.Count(string(l.log.Contents()), "up to date again")).To(Equal(1))
	})

	It("waits five seconds for the database, to read and to record", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.create(ctx, "edge", "first")
		Expect(l.set.Refresh(ctx)).To(Succeed())
		Expect(time.Duration(l.patience.Swap(0))).To(BeNumerically("~", 5*time.Second, time.Second))
		l.find(ctx, "first")
		l.untouchable.Store(true)
		l.run()
		Eventually(l.touches.Load, "5s").Should(BeNumerically(">", 0))
		Expect(time.Duration(l.patience.Load())).To(BeNumerically("~", 5*time.Second, time.Second))
	})

	It("says that a change of its own process takes effect later if the database is unavailable", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.away.Store(true)
		l.set.Changed(ctx)
		Expect(l.log).To(gbytes.Say(`level=WARN msg="change of a token takes effect later" err="looking for changed tokens of the xDS port: the database does not answer"`))
	})

	It("ends while the database hangs, without a word", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.hanging.Store(true)
		running, cancel := context.WithCancel(ctx)
		l.set.LookEvery(time.Millisecond)
		done := make(chan error, 1)
		before := gleak.Goroutines()
		go func() { done <- l.set.Run(running) }()
		Eventually(l.looks.Load, "5s").Should(BeNumerically(">", 0))
		cancel()
		Eventually(done, "3s").Should(Receive(BeNil()))
		Expect(l.log.Contents()).To(BeEmpty())
		Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before))
	})

	It("does not record a use that another process has recorded within the minute", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.create(ctx, "edge", "first")
		Expect(l.other.TouchProxyTokens(ctx, [][sha256.Size]byte{sha256.Sum256([]byte("first"))}, l.clock.now())).To(Succeed())
		Expect(l.set.Refresh(ctx)).To(Succeed())
		l.clock.pass(59 * time.Second)
		Expect(l.knows("first")()).To(BeTrue())
		l.run()
		looks := l.looks.Load()
		Eventually(l.looks.Load, "5s").Should(BeNumerically(">=", looks+2))
		Expect(l.touches.Load()).To(BeZero())
	})

	It("remains unchanged if the database is a different one, which never had a token", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.create(ctx, "edge", "first")
		Expect(l.set.Refresh(ctx)).To(Succeed())
		first, _ := l.find(ctx, "first")
		l.proxyTokens = newTokenLab(ctx).proxyTokens
		Expect(l.set.Refresh(ctx)).To(MatchError(ContainSubstring("the database never had a token")))
		Expect(first.Revoked).NotTo(BeClosed())
		Expect(l.knows("first")()).To(BeTrue())
		Expect(l.CreateProxyToken(ctx, store.ProxyToken{Proxy: "edge", Name: "new", Hash: store.HashToken("new"), CreateTS: model.At(l.clock.now())})).To(Succeed())
		Expect(l.set.Refresh(ctx)).To(Succeed())
		Expect(first.Revoked).To(BeClosed())
	})

	It("records the use of tokens once a minute, also while streams are open", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		l.create(ctx, "edge", "first")
		l.create(ctx, "edge", "never")
		l.create(ctx, "edge", "second")
		Expect(l.set.Refresh(ctx)).To(Succeed())
		l.run()
		lastUsed := func(ctx context.Context) []string {
			GinkgoHelper()
			list, err := l.other.ProxyTokens(ctx, "edge")
			Expect(err).NotTo(HaveOccurred())
			var used []string
			for _, t := range list {
				if !t.LastUsedTS.IsZero() {
					used = append(used, t.Name+" "+t.LastUsedTS.Format(time.TimeOnly))
				}
			}
			return used
		}
		stream, end := context.WithCancel(ctx)
		for range 3 {
			l.find(stream, "first")
		}
		l.find(stream, "second")
		Eventually(lastUsed, "5s").WithContext(ctx).Should(ConsistOf("first 08:00:00", "second 08:00:00"))
		Expect(l.touches.Load()).To(Equal(int64(1)))
		l.clock.pass(59 * time.Second)
		l.find(stream, "first")
		looks := l.looks.Load()
		Eventually(l.looks.Load, "5s").Should(BeNumerically(">=", looks+2))
		Expect(l.touches.Load()).To(Equal(int64(1)))
		l.clock.pass(time.Second)
		Eventually(lastUsed, "5s").WithContext(ctx).Should(ConsistOf("first 08:01:00", "second 08:01:00"), "no stream has begun since")
		end()
		Eventually(func() bool {
			l.clock.pass(time.Minute)
			looks, touches := l.looks.Load(), l.touches.Load()
			Eventually(l.looks.Load, "5s").Should(BeNumerically(">=", looks+2))
			return l.touches.Load() == touches
		}, "20s").Should(BeTrue(), "when the last stream has ended")
	})

	It("records the use of every token, of streams that have ended too, as soon as the database takes it", func(ctx SpecContext) {
		l := newTokenLab(ctx)
		for _, name := range []string{"first", "second", "third"} {
			l.create(ctx, "edge", name)
		}
		Expect(l.set.Refresh(ctx)).To(Succeed())
		l.untouchable.Store(true)
		Expect(l.knows("first")()).To(BeTrue())
		l.find(ctx, "second")
		l.find(ctx, "third")
		l.run()
		Eventually(l.touches.Load, "5s").Should(BeNumerically(">=", 2))
		l.untouchable.Store(false)
		Eventually(func(ctx context.Context) []bool {
			GinkgoHelper()
			list, err := l.other.ProxyTokens(ctx, "edge")
			Expect(err).NotTo(HaveOccurred())
			var used []bool
			for _, t := range list {
				used = append(used, !t.LastUsedTS.IsZero())
			}
			return used
		}, "5s").WithContext(ctx).Should(Equal([]bool{true, true, true}))
		Eventually(l.log).Should(gbytes.Say("noting the use of tokens of the xDS port: the database does not answer"))
		Eventually(l.log).Should(gbytes.Say("tokens of the xds port are up to date again"))
	})
})
