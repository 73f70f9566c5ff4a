package providers_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
)

// badNotes are notes that cannot be read while fails is set. They count what is done with them.
type badNotes struct {
	store.Notes
	fails        atomic.Bool
	reads, saved atomic.Int64
}

func (n *badNotes) Note(ctx context.Context, name string) (string, error) {
	n.reads.Add(1)
	if n.fails.Load() {
		return "", errors.New("the disk is away")
	}
	return n.Notes.Note(ctx, name)
}

func (n *badNotes) SetNote(ctx context.Context, name, text string) error {
	n.saved.Add(1)
	return n.Notes.SetNote(ctx, name, text)
}

var _ = Describe("A watch of providers in trouble", func() {
	login := model.FilterKey("login")

	It("reads the note again when that failed, and does not overwrite it", func() {
		w := newWorld(quick())
		w.put(w.shop()...)
		before := w.learn(login)
		w.stop()

		By("starting while neither the note nor one of the providers can be reached")
		notes := &badNotes{Notes: w.store}
		notes.fails.Store(true)
		w.notes = notes
		w.ask = func(_ context.Context, source model.ProviderSource, _ *oidc.Via) (oidc.Answer, error) {
			if source.Issuer == "https://new.example" {
				return oidc.Answer{Provider: model.Provider{JWKS: setP256}}, nil
			}
			return oidc.Answer{}, errors.New("away")
		}
		w.start(quick())
		w.put(w.login("new", "issuer", "https://new.example"), &model.ServiceFilter{Service: "shop", Filter: "new"})
		Expect(w.read().Learned).NotTo(HaveKey(login))
		Expect(w.learn(login)).To(And(HaveField("Fault", "away"), HaveField("JWKS", "")))
		reads := notes.reads.Load()
		Eventually(notes.reads.Load).Should(BeNumerically(">", reads+3))
		Expect(notes.saved.Load()).To(BeZero(), "what is in it would be lost")
		Expect(strings.Count(w.log.String(), "cannot be read")).To(Equal(1))

		By("until it can be read")
		notes.fails.Store(false)
		Eventually(func() model.Providers { return w.read().Learned[login] }).Should(ConsistOf(HaveValue(And(HaveField("Fault", "away"), HaveField("JWKS", before.JWKS)))))
		Eventually(notes.saved.Load).Should(BeNumerically(">", 0))
	})

	It("does not write a note that it could not read when it ends", func() {
		w := newWorld(quick())
		w.put(w.shop()...)
		before := w.learn(login)
		w.stop()
		notes := &badNotes{Notes: w.store}
		notes.fails.Store(true)
		w.notes = notes
		w.start(slow())
		w.put(w.login("new", "issuer", w.Issuer()+"/")) // its answer would be noted
		Eventually(func() bool { w.read(); return len(w.Reports()) > 0 && w.Reports()[0].Age >= 0 }).Should(BeTrue())
		w.stop()
		Expect(notes.saved.Load()).To(BeZero())
		notes.fails.Store(false)
		w.ask = func(context.Context, model.ProviderSource, *oidc.Via) (oidc.Answer, error) {
			return oidc.Answer{}, errors.New("away")
		}
		w.start(slow())
		Expect(w.read().Learned).To(HaveKeyWithValue(login, ConsistOf(HaveValue(HaveField("JWKS", before.JWKS)))))
	})

	It("asks those that answer in time, however many others do not", func() {
		w := newWorld(slow())
		w.stop()
		var mu sync.Mutex
		tried, live := map[string]bool{}, 0
		w.ask = func(ctx context.Context, source model.ProviderSource, _ *oidc.Via) (oidc.Answer, error) {
			mu.Lock()
			again := tried[source.Issuer]
			tried[source.Issuer] = true
			if source.Issuer == "https://live.example" {
				live++
				mu.Unlock()
				return oidc.Answer{Provider: model.Provider{JWKS: setP256}}, nil
			}
			mu.Unlock()
			if again {
				<-ctx.Done() // it hangs from the second attempt on
			}
			return oidc.Answer{}, errors.New("away")
		}
		w.start(quick())
		objects := w.shop()
		for i := range 105 {
			name := fmt.Sprint("dead", i)
			objects = append(objects, w.login(name, "issuer", "https://"+name+".example"), &model.ServiceFilter{Service: "shop", Filter: name})
		}
		objects[1] = w.login("login", "issuer", "https://dead.example")
		w.put(objects...)
		Eventually(func() int {
			w.read()
			mu.Lock()
			defer mu.Unlock()
			return len(tried)
		}).WithPolling(5 * time.Millisecond).Should(Equal(106))
		w.put(w.login("login", "issuer", "https://live.example"))
		Eventually(func() int {
			w.read()
			mu.Lock()
			defer mu.Unlock()
			return live
		}).WithPolling(5 * time.Millisecond).Should(BeNumerically(">", 5))
	})
})
