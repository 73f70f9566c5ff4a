package storetest

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// ring is a Sealer whose texts show their key: it keeps nothing secret.
type ring struct {
	mu sync.Mutex
	// keys are those that open; the last one seals.
	keys []string
}

func keys(names ...string) *ring { return &ring{keys: names} }

func (r *ring) set(names ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys = names
}

func (r *ring) Seal(plain, place string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return sealedWith(r.keys[len(r.keys)-1], plain, place), nil
}

func sealedWith(key, plain, place string) string {
	return model.SealedPrefix + base64.RawURLEncoding.EncodeToString([]byte(key+" "+place+" "+plain))
}

func (r *ring) Unseal(sealed, place string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range r.keys {
		text, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(sealed, model.SealedPrefix))
		if plain, ok := strings.CutPrefix(string(text), key+" "+place+" "); ok && err == nil {
			return plain, nil
		}
	}
	return "", &model.Error{Kind: model.Invalid, Message: "the sealed text does not open"}
}

func generic(name, value string) *model.Secret { return &model.Secret{Name: name, Value: value} }

func login(clientSecret string) *model.Filter {
	return &model.Filter{Name: "login", Type: model.FilterOIDC, Config: model.JSON(`{"client_id":"shop","client_secret":"` + clientSecret +
		`","redirect_uri":"https://shop.example.com/callback","cookie_secret":"cookies","issuer":"https://login.example.com"}`)}
}

// secretSpecs check a store against store.Resealer.
func secretSpecs(h *harness) {
	var sealer *ring
	var resealer store.Resealer
	BeforeEach(func(ctx SpecContext) {
		sealer = keys("old")
		h.store = h.open(ctx, Settings{Sealer: sealer})
		resealer = h.store.(store.Resealer)
	})
	put := func(ctx context.Context, obj model.Object) int64 {
		GinkgoHelper()
		return h.write(ctx, func(w store.Writer) error { return w.Replace(obj) })
	}
	// logged lists the values of a secret in the change log, "before > after".
	logged := func(ctx context.Context, name string) (list []string) {
		GinkgoHelper()
		last := h.revision(ctx)
		value := func(obj model.Object) string {
			if obj == nil {
				return ""
			}
			return obj.(*model.Secret).Value
		}
		err := h.store.Read(ctx, func(r store.Reader) error {
			for n := int64(1); n <= last; n++ {
				for e, err := range r.Entries(n)(model.KindSecret) {
					if err != nil {
						return err
					}
					if e.Key == model.SecretKey(name) {
						list = append(list, value(e.Before)+" > "+value(e.After))
					}
				}
			}
			return nil
		})
		Expect(err).NotTo(HaveOccurred())
		return list
	}

	It("replace a client secret that is the name of a secret by a reference, with a warning", func(ctx SpecContext) {
		h.create(ctx, generic("cookies", "a"), generic("client", "b"))
		stored := func(sent, kept string, warnings ...string) {
			GinkgoHelper()
			h.write(ctx, func(w store.Writer) error {
				created, err := store.Put(w, login(sent))
				Expect(w.Warnings()).To(Equal(warnings))
				Expect(created).To(Equal(sent == "client"))
				return err
			})
			f, err := h.get(ctx, model.FilterKey("login"))
			Expect(err).NotTo(HaveOccurred())
			Expect(string(f.(*model.Filter).Config)).To(ContainSubstring(kept))
		}
		stored("client", `"client_secret":{"secret":"client"},`, `/filter/login: client_secret is the name of secret "client", so the value of the secret is used, not its name`)
		stored("clients", `"client_secret":"sealed:v1:`)
	})

	It("can be resealed with another key, including the history, and keep their contents", func(ctx SpecContext) {
		h.create(ctx, generic("cookies", "first"), upstream("blue")) // revision 1
		h.create(ctx, login("hunter2"), generic("gone", "secret"))
		put(ctx, generic("cookies", "second"))
		_, err := h.remove(ctx, model.SecretKey("gone"))
		Expect(err).NotTo(HaveOccurred())
		before, err := h.get(ctx, model.SecretKey("cookies"))
		Expect(err).NotTo(HaveOccurred())

		sealer.set("old", "new")
		Expect(resealer.Reseal(ctx)).To(Equal(store.Resealed{Current: 2, Logged: 6}))

		By("no new revision")
		Expect(h.revision(ctx)).To(Equal(int64(4)))
		after, err := h.get(ctx, model.SecretKey("cookies"))
		Expect(err).NotTo(HaveOccurred())
		Expect(after.(*model.Secret).Value).To(Equal(sealedWith("new", "second", "secret/cookies/value")))
		Expect(after.Meta().UpdateTS).To(Equal(before.Meta().UpdateTS))
		filter, err := h.get(ctx, model.FilterKey("login"))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(filter.(*model.Filter).Config)).To(ContainSubstring(sealedWith("new", "hunter2", "filter/login/client_secret")))
		Expect(logged(ctx, "cookies")).To(Equal([]string{
			" > " + sealedWith("new", "first", "secret/cookies/value"),
			sealedWith("new", "first", "secret/cookies/value") + " > " + sealedWith("new", "second", "secret/cookies/value"),
		}))
		Expect(logged(ctx, "gone")).To(Equal([]string{
			" > " + sealedWith("new", "secret", "secret/gone/value"), sealedWith("new", "secret", "secret/gone/value") + " > ",
		}))

		By("nothing is left to do a second time")
		Expect(resealer.Reseal(ctx)).To(Equal(store.Resealed{}))

		By("the old key is no longer needed")
		_, err = h.openAgain(ctx, Settings{Sealer: keys("old")})
		Expect(err).To(MatchError(HavePrefix("the secrets of this database were sealed with another key (")))
		h.store = h.open(ctx, Settings{Sealer: keys("new"), InUse: true})
		Expect(put(ctx, generic("cookies", "second"))).To(Equal(int64(4)), "the same again is no change")
		Expect(put(ctx, login("hunter2"))).To(Equal(int64(4)))
		rollback := func(to int64) {
			GinkgoHelper()
			h.write(ctx, func(w store.Writer) error { return store.Rollback(w, to) })
		}
		rollback(2)
		Expect(h.names(ctx, store.Query{Kind: model.KindSecret})).To(ConsistOf("cookies", "gone"))
		rollback(1)
		now, err := h.get(ctx, model.SecretKey("cookies"))
		Expect(err).NotTo(HaveOccurred())
		Expect(now.(*model.Secret).Value).To(Equal(sealedWith("new", "first", "secret/cookies/value")))
	})

	It("remain unchanged if one cannot be opened", func(ctx SpecContext) {
		h.create(ctx, generic("cookies", "first"))
		sealer.set("old", "lost")
		h.create(ctx, generic("token", "second"))
		sealer.set("old", "new")
		_, err := resealer.Reseal(ctx)
		Expect(err).To(And(beOfKind(model.Conflict), MatchError(HavePrefix(
			`secret "token" contains a value that no key opens, so nothing was sealed again (give it again, or delete it, then repeat this)`))))
		_, err = h.remove(ctx, model.SecretKey("token"))
		Expect(err).NotTo(HaveOccurred())
		_, err = resealer.Reseal(ctx)
		Expect(err).To(And(beOfKind(model.Conflict), MatchError(HavePrefix(
			`revision 2 contains a value of secret "token" that no key opens, so nothing was sealed again (bring the key back into the key file,`))))
		Expect(logged(ctx, "cookies")).To(Equal([]string{" > " + sealedWith("old", "first", "secret/cookies/value")}))
	})

	It("are not sealed with an outdated key", func(ctx SpecContext) {
		h.create(ctx, generic("cookies", "first"))
		elsewhere := keys("old")
		behind := h.open(ctx, Settings{Sealer: elsewhere})
		sealer.set("old", "new")
		Expect(resealer.Reseal(ctx)).To(Equal(store.Resealed{Current: 1, Logged: 1}))

		write := func() error {
			_, err := behind.Write(ctx, origin(), func(w store.Writer) error { return w.Insert(generic("token", "second")) })
			return err
		}
		Expect(write()).To(And(beOfKind(model.Unavailable), MatchError(HavePrefix(
			"the key file of this server lacks the key that the secrets are sealed with (copy the key file from where the key was rotated; a restart is not needed)"))))
		_, err := behind.Write(ctx, origin(), func(w store.Writer) error { return w.Insert(upstream("blue")) })
		Expect(err).NotTo(HaveOccurred(), "an object without a secret")
		elsewhere.set("old", "new")
		Expect(write()).To(Succeed())
	})

	It("are resealed if they are sent sealed with an old key", func(ctx SpecContext) {
		sealer.set("old", "new")
		h.create(ctx, generic("cookies", sealedWith("old", "first", "secret/cookies/value")))
		got, err := h.get(ctx, model.SecretKey("cookies"))
		Expect(err).NotTo(HaveOccurred())
		Expect(got.(*model.Secret).Value).To(Equal(sealedWith("new", "first", "secret/cookies/value")))
	})

	It("are all sealed with the new key if others write meanwhile", func(ctx SpecContext) {
		const writers, writes = 4, 10
		inParallel(writers+2, func(n int) {
			if n >= writers {
				sealer.set("old", "new")
				_, err := resealer.Reseal(ctx)
				Expect(err).NotTo(HaveOccurred())
				return
			}
			for i := range writes {
				_, err := h.store.Write(ctx, origin(), func(w store.Writer) error {
					return w.Insert(generic(fmt.Sprintf("s%d-%d", n, i), "value"))
				})
				Expect(err).NotTo(HaveOccurred())
			}
		})
		Expect(h.revision(ctx)).To(Equal(int64(writers * writes)))
		h.store = h.open(ctx, Settings{Sealer: keys("new"), InUse: true})
		Expect(h.store.(store.Resealer).Reseal(ctx)).To(Equal(store.Resealed{}))
	})

	It("wait for writers with the old key", func(ctx SpecContext) {
		done := make(chan store.Resealed, 1)
		h.write(ctx, func(w store.Writer) error {
			if err := w.Insert(generic("cookies", "first")); err != nil {
				return err
			}
			sealer.set("old", "new")
			go func() {
				defer GinkgoRecover()
				defer close(done)
				n, err := resealer.Reseal(ctx)
				Expect(err).NotTo(HaveOccurred())
				done <- n
			}()
			Consistently(done, "300ms").ShouldNot(Receive())
			return nil
		})
		Eventually(done, "10s").Should(Receive(Equal(store.Resealed{Current: 1, Logged: 1})))
	})

	It("have no key to change if the database has never had one", func(ctx SpecContext) {
		h.openAgain = h.emptyDatabase(ctx)
		h.open(ctx, Settings{})
		_, err := h.openAgain(ctx, Settings{Sealer: sealer, InUse: true})
		Expect(err).To(And(beOfKind(model.NotFound),
			MatchError("no key was ever used with this database (name the one that is in use with --data-dir or --database-url; the first start of a server makes a new one)")))
	})
}
