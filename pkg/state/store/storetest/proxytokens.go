package storetest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// proxyTokenSpecs check a store against store.ProxyTokens.
func proxyTokenSpecs(h *harness) {
	var tokens store.ProxyTokens
	at := model.At(time.Date(2026, 11, 22, 8, 7, 39, 123456789, time.UTC))
	token := func(proxy, name string) store.ProxyToken {
		return store.ProxyToken{Proxy: proxy, Name: name, Hash: store.HashToken(proxy + " " + name), CreateTS: at}
	}
	create := func(ctx context.Context, list ...store.ProxyToken) {
		GinkgoHelper()
		for _, t := range list {
			Expect(tokens.CreateProxyToken(ctx, t)).To(Succeed())
		}
	}
	// since returns all tokens and the version of a store.
	since := func(ctx context.Context, s store.ProxyTokens, version string) ([]store.ProxyToken, string) {
		GinkgoHelper()
		all, now, err := s.ProxyTokensSince(ctx, version)
		Expect(err).NotTo(HaveOccurred())
		return all, now
	}

	BeforeEach(func(ctx SpecContext) {
		tokens = h.store.(store.ProxyTokens)
		h.create(ctx, &model.Proxy{Name: "edge"}, &model.Proxy{Name: "Inner"})
	})

	It("are stored by proxy and name, separately from the configuration", func(ctx SpecContext) {
		before := h.mark(ctx)
		Expect(tokens.HasProxyTokens(ctx)).To(BeFalse())
		Expect(tokens.ProxyTokens(ctx, "edge")).To(BeEmpty())
		create(ctx, token("edge", "b"), token("", "one"), token("Inner", "b"), token("edge", "A"))
		Expect(tokens.HasProxyTokens(ctx)).To(BeTrue())
		Expect(tokens.ProxyTokens(ctx, "edge")).To(Equal([]store.ProxyToken{token("edge", "A"), token("edge", "b")}))
		Expect(tokens.ProxyTokens(ctx, "Inner")).To(Equal([]store.ProxyToken{token("Inner", "b")}))
		Expect(tokens.ProxyTokens(ctx, "")).To(Equal([]store.ProxyToken{token("", "one")}), "of the rate-limit engine")
		for _, proxy := range []string{"inner", "none", "a\x00b", "a\xffb"} {
			Expect(tokens.ProxyTokens(ctx, proxy)).To(BeEmpty(), "%q", proxy)
		}
		Expect(h.mark(ctx)).To(Equal(before))
		Expect(h.store.(store.Tokens).HasTokens(ctx)).To(BeFalse(), "they do not call the API")
	})

	It("have names that are unique for each proxy, and require the proxy when they are created", func(ctx SpecContext) {
		create(ctx, token("edge", "ci"), token("", "ci"))
		for proxy, text := range map[string]string{
			"edge": `token "ci" of proxy "edge" already exists`, "": `token "ci" of the rate-limit engine already exists`,
		} {
			again := token(proxy, "ci")
			again.Hash = store.HashToken("another")
			err := tokens.CreateProxyToken(ctx, again)
			Expect(model.IsKind(err, model.Exists)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(text + " (choose another name, or delete the existing one first)"))
		}
		for _, proxy := range []string{"Edge", "none"} {
			err := tokens.CreateProxyToken(ctx, token(proxy, "ci"))
			Expect(model.IsKind(err, model.NotFound)).To(BeTrue(), "%v", err)
			Expect(err).To(MatchError(fmt.Sprintf("proxy %q does not exist", proxy)))
		}
		Expect(tokens.ProxyTokens(ctx, "edge")).To(Equal([]store.ProxyToken{token("edge", "ci")}))
	})

	It("outlive their proxy, and a rollback", func(ctx SpecContext) {
		create(ctx, token("edge", "ci"))
		h.write(ctx, func(w store.Writer) error { return store.Delete(w, model.ProxyKey("edge")) })
		Expect(tokens.ProxyTokens(ctx, "edge")).To(Equal([]store.ProxyToken{token("edge", "ci")}))
		h.write(ctx, func(w store.Writer) error { return store.Rollback(w, 1) })
		h.write(ctx, func(w store.Writer) error { return store.Delete(w, model.ProxyKey("edge")) })
		Expect(tokens.DeleteProxyToken(ctx, "edge", "ci")).To(Succeed())
		Expect(tokens.HasProxyTokens(ctx)).To(BeFalse())
	})

	It("are deleted one by one", func(ctx SpecContext) {
		create(ctx, token("edge", "ci"), token("", "ci"), token("Inner", "ci"))
		Expect(tokens.DeleteProxyToken(ctx, "edge", "ci")).To(Succeed())
		Expect(tokens.DeleteProxyToken(ctx, "", "ci")).To(Succeed())
		all, _ := since(ctx, tokens, "")
		Expect(all).To(Equal([]store.ProxyToken{token("Inner", "ci")}))
		for _, name := range []string{"ci", "", "a\x00b", "a\xffb"} {
			err := tokens.DeleteProxyToken(ctx, "edge", name)
			Expect(model.IsKind(err, model.NotFound)).To(BeTrue(), "%q: %v", name, err)
		}
		Expect(tokens.DeleteProxyToken(ctx, "edge", "ci")).To(MatchError(`token "ci" of proxy "edge" does not exist`))
		Expect(tokens.DeleteProxyToken(ctx, "", "ci")).To(MatchError(`token "ci" of the rate-limit engine does not exist`))
	})

	It("have a version that changes with every change, for every process, and with nothing else", func(ctx SpecContext) {
		other := h.open(ctx, Settings{}).(store.ProxyTokens)
		all, none := since(ctx, other, "")
		Expect(all).To(BeEmpty())
		Expect(none).To(BeEmpty())

		create(ctx, token("edge", "b"), token("", "one"))
		all, first := since(ctx, other, none)
		Expect(all).To(Equal([]store.ProxyToken{token("", "one"), token("edge", "b")}))
		all, same := since(ctx, other, first)
		Expect(all).To(BeEmpty(), "nothing changed")
		Expect(same).To(Equal(first))

		Expect(tokens.CreateProxyToken(ctx, token("edge", "b"))).NotTo(Succeed())
		Expect(tokens.DeleteProxyToken(ctx, "edge", "none")).NotTo(Succeed())
		Expect(tokens.TouchProxyTokens(ctx, [][sha256.Size]byte{store.HashToken("edge b")}, at.Time)).To(Succeed())
		h.create(ctx, &model.Proxy{Name: "third"})
		_, same = since(ctx, other, first)
		Expect(same).To(Equal(first))

		Expect(tokens.DeleteProxyToken(ctx, "edge", "b")).To(Succeed())
		all, second := since(ctx, other, first)
		Expect(all).To(Equal([]store.ProxyToken{token("", "one")}))
		Expect(tokens.DeleteProxyToken(ctx, "", "one")).To(Succeed())
		all, third := since(ctx, other, second)
		Expect(all).To(BeEmpty())
		Expect([]string{none, first, second}).NotTo(ContainElement(third))
	})

	It("remember when they were last used", func(ctx SpecContext) {
		lastUsed := func(proxy, name string) model.Time {
			GinkgoHelper()
			list, err := tokens.ProxyTokens(ctx, proxy)
			Expect(err).NotTo(HaveOccurred())
			for _, t := range list {
				if t.Name == name {
					return t.LastUsedTS
				}
			}
			return model.Time{}
		}
		create(ctx, token("edge", "a"), token("edge", "b"), token("", "a"))
		Expect(lastUsed("edge", "a").IsZero()).To(BeTrue())
		var many [][sha256.Size]byte
		for i := range 1200 { // more than fit in one statement
			many = append(many, store.HashToken(fmt.Sprint("gone ", i)))
		}
		many = append(many, store.HashToken("edge a"), store.HashToken(" a"))
		Expect(tokens.TouchProxyTokens(ctx, many, at.Add(time.Hour))).To(Succeed())
		for _, proxy := range []string{"edge", ""} {
			Expect(lastUsed(proxy, "a")).To(Equal(model.At(at.Add(time.Hour))))
		}
		Expect(lastUsed("edge", "b").IsZero()).To(BeTrue())
		Expect(tokens.TouchProxyTokens(ctx, many, at.Time)).To(Succeed())
		Expect(lastUsed("edge", "a")).To(Equal(model.At(at.Add(time.Hour))), "an earlier use")
		Expect(tokens.TouchProxyTokens(ctx, nil, at.Time)).To(Succeed())
	})
}
