package storetest

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// sessionSpecs check a store against store.Sessions.
func sessionSpecs(h *harness) {
	var sessions store.Sessions
	at := func(minutes int) model.Time {
		return model.At(time.Date(2026, 11, 22, 8, minutes, 0, 0, time.UTC))
	}
	session := func(name, token string, begin, end int) store.Session {
		return store.Session{
			Hash: store.HashToken(name), Header: store.HashToken("header of " + name), Token: store.HashToken(token),
			CreateTS: at(begin), EndTS: at(end),
		}
	}
	// left returns which of the named sessions are stored.
	left := func(ctx context.Context, names ...string) (list []string) {
		GinkgoHelper()
		for _, name := range names {
			_, err := sessions.Session(ctx, store.HashToken(name))
			if model.IsKind(err, model.NotFound) {
				continue
			}
			Expect(err).NotTo(HaveOccurred())
			list = append(list, name)
		}
		return list
	}

	BeforeEach(func() { sessions = h.store.(store.Sessions) })

	It("are found by their hash until they are deleted, and change no revision", func(ctx SpecContext) {
		before := h.mark(ctx)
		want := session("a", "ann", 0, 10)
		Expect(sessions.CreateSession(ctx, want, 2)).To(Succeed())
		Expect(sessions.Session(ctx, want.Hash)).To(Equal(want))
		Expect(left(ctx, "A", "header of a", "ann")).To(BeEmpty())
		user := session("u", "x", 0, 10)
		user.Token = store.HashUser("https://id.example.com", "x")
		user.User = store.User{Issuer: "https://id.example.com", Actor: "oidc:x", Group: "ops"}
		Expect(sessions.CreateSession(ctx, user, 2)).To(Succeed())
		Expect(sessions.Session(ctx, user.Hash)).To(Equal(user))
		for range 2 {
			Expect(sessions.DeleteSession(ctx, want.Hash)).To(Succeed())
			Expect(left(ctx, "a")).To(BeEmpty())
		}
		Expect(h.mark(ctx)).To(Equal(before))
	})

	It("are bounded for each token, and go when they have ended", func(ctx SpecContext) {
		for i, name := range []string{"a", "b", "c"} {
			Expect(sessions.CreateSession(ctx, session(name, "ann", i, 20), 2)).To(Succeed())
		}
		Expect(sessions.CreateSession(ctx, session("d", "bob", 3, 5), 2)).To(Succeed())
		Expect(left(ctx, "a", "b", "c", "d")).To(Equal([]string{"b", "c", "d"}))
		Expect(sessions.CreateSession(ctx, session("e", "ann", 5, 20), 2)).To(Succeed())
		Expect(left(ctx, "a", "b", "c", "d", "e")).To(Equal([]string{"c", "e"}))
	})
}
