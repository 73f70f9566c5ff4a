package storetest

import (
	"context"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// tokenSpecs check a store against store.Tokens.
func tokenSpecs(h *harness) {
	var tokens store.Tokens
	at := model.At(time.Date(2026, 11, 21, 8, 7, 39, 123456789, time.UTC))
	token := func(name, role string) store.Token {
		return store.Token{Name: name, Role: role, Hash: store.HashToken(name), CreateTS: at}
	}
	create := func(ctx context.Context, list ...store.Token) {
		GinkgoHelper()
		for _, t := range list {
			Expect(tokens.CreateToken(ctx, t)).To(Succeed())
		}
	}
	lastUsed := func(ctx context.Context, name string) model.Time {
		GinkgoHelper()
		t, err := tokens.TokenByHash(ctx, store.HashToken(name))
		Expect(err).NotTo(HaveOccurred())
		return t.LastUsedTS
	}

	BeforeEach(func() { tokens = h.store.(store.Tokens) })

	It("are stored by name, separately from the configuration", func(ctx SpecContext) {
		Expect(tokens.HasTokens(ctx)).To(BeFalse())
		Expect(tokens.Tokens(ctx)).To(BeEmpty())
		create(ctx, token("ci", "viewer"), token("Ann", "admin"))
		Expect(tokens.HasTokens(ctx)).To(BeTrue())
		Expect(tokens.Tokens(ctx)).To(Equal([]store.Token{token("Ann", "admin"), token("ci", "viewer")}))
		Expect(tokens.TokenByHash(ctx, store.HashToken("ci"))).To(Equal(token("ci", "viewer")))
		change, err := h.store.Since(ctx, model.Mark{})
		Expect(err).NotTo(HaveOccurred())
		Expect(change.Revision).To(BeZero())
		Expect(change.Entries).To(BeEmpty())
	})

	It("keep what a team may change", func(ctx SpecContext) {
		editor := token("bob", "editor")
		editor.Team = store.Team{Tags: []string{"a", "b:c"}, Hosts: []string{"*.a.test", "*"}, Ports: []int{53, 5432}, MaxObjects: 7}
		create(ctx, editor)
		Expect(tokens.Tokens(ctx)).To(Equal([]store.Token{editor}))
		Expect(tokens.TokenByHash(ctx, store.HashToken("bob"))).To(Equal(editor))
		Expect(tokens.TokenByName(ctx, "bob")).To(Equal(editor))
		_, err := tokens.TokenByName(ctx, "Bob")
		Expect(model.IsKind(err, model.NotFound)).To(BeTrue(), "%v", err)
	})

	It("have unique names and hashes", func(ctx SpecContext) {
		create(ctx, token("ci", "viewer"))
		again := token("ci", "admin")
		again.Hash = store.HashToken("another")
		err := tokens.CreateToken(ctx, again)
		Expect(model.IsKind(err, model.Exists)).To(BeTrue(), "%v", err)
		Expect(err).To(MatchError(`token "ci" already exists (choose another name, or delete the existing one first)`))
		Expect(tokens.Tokens(ctx)).To(Equal([]store.Token{token("ci", "viewer")}))
		_, err = tokens.TokenByHash(ctx, store.HashToken("another"))
		Expect(model.IsKind(err, model.NotFound)).To(BeTrue(), "%v", err)
	})

	It("remember when they were last used", func(ctx SpecContext) {
		create(ctx, token("ci", "viewer"))
		Expect(lastUsed(ctx, "ci").IsZero()).To(BeTrue())
		Expect(tokens.TouchToken(ctx, "ci", at.Add(time.Hour))).To(Succeed())
		Expect(lastUsed(ctx, "ci")).To(Equal(model.At(at.Add(time.Hour))))
		Expect(tokens.TouchToken(ctx, "ci", at.Time)).To(Succeed())
		Expect(lastUsed(ctx, "ci")).To(Equal(model.At(at.Add(time.Hour))), "an earlier use")
		Expect(tokens.TouchToken(ctx, "gone", at.Time)).To(Succeed())
	})

	It("can be deleted, the last admin's only on request", func(ctx SpecContext) {
		create(ctx, token("ann", "admin"), token("bob", "admin"), token("ci", "viewer"))
		Expect(tokens.DeleteToken(ctx, "ann", true)).To(Succeed())
		err := tokens.DeleteToken(ctx, "bob", true)
		Expect(model.IsKind(err, model.Conflict)).To(BeTrue(), "%v", err)
		Expect(tokens.DeleteToken(ctx, "ci", true)).To(Succeed())
		Expect(tokens.Tokens(ctx)).To(Equal([]store.Token{token("bob", "admin")}))
		Expect(tokens.DeleteToken(ctx, "bob", false)).To(Succeed())
		Expect(tokens.HasTokens(ctx)).To(BeFalse())
		for _, name := range []string{"bob", "", "a\x00b", "a\xffb"} {
			err = tokens.DeleteToken(ctx, name, false)
			Expect(model.IsKind(err, model.NotFound)).To(BeTrue(), "%q: %v", name, err)
		}
	})

	It("keep one admin if two are deleted at the same time", func(ctx SpecContext) {
		stores := []store.Tokens{tokens, h.open(ctx, Settings{}).(store.Tokens)}
		create(ctx, token("ann", "admin"), token("bob", "admin"))
		var refused atomic.Int64
		inParallel(2, func(n int) {
			if err := stores[n].DeleteToken(ctx, []string{"ann", "bob"}[n], true); err != nil {
				Expect(model.IsKind(err, model.Conflict)).To(BeTrue(), "%v", err)
				refused.Add(1)
			}
		})
		Expect(refused.Load()).To(Equal(int64(1)))
		Expect(tokens.Tokens(ctx)).To(HaveLen(1))
	})
}
