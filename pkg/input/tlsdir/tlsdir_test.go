package tlsdir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/tlsdir"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A directory", func() {
	It("must exist", func() {
		_, err := tlsdir.New(tlsdir.Options{Path: "/nonexistent/certs"})
		Expect(err).To(MatchError("reading --tls-dir /nonexistent/certs: no such file or directory: it must be a directory that the user that runs the program can read"))
		file := filepath.Join(GinkgoT().TempDir(), "file")
		Expect(os.WriteFile(file, nil, 0o600)).To(Succeed())
		_, err = tlsdir.New(tlsdir.Options{Path: file})
		Expect(err).To(MatchError(ContainSubstring("not a directory")))
	})

	DescribeTable("creates secrets from pairs in the layout of", func(lay func(w *world, p testkit.Pair)) {
		w := newWorld()
		pair := w.issue("shop.test")
		lay(w, pair)
		w.look()
		w.expectPair("shop", pair)
		Expect(w.revisions()).To(Equal([]string{"tls-dir: PUT /secret/shop"}))
		Expect(w.conditions()).To(BeEmpty())
		Expect(w.logged("certificate of a directory stored")).To(HaveLen(1))
		By("once")
		w.look()
		w.open(w.path)
		w.look()
		Expect(w.revisions()).To(HaveLen(1))
	},
		Entry("manual files", func(w *world, p testkit.Pair) { w.put("shop.crt", p.Cert); w.put("shop.key", p.Key) }),
		Entry("manual files, as .pem", func(w *world, p testkit.Pair) { w.put("shop.pem", p.Cert); w.put("shop.key", p.Key) }),
		Entry("certbot", func(w *world, p testkit.Pair) {
			w.put("archive/shop/fullchain1.pem", p.Cert)
			w.put("archive/shop/privkey1.pem", p.Key)
			w.link("../../archive/shop/fullchain1.pem", "live/shop/fullchain.pem")
			w.link("../../archive/shop/privkey1.pem", "live/shop/privkey.pem")
			w.put("live/shop/cert.pem", p.Cert)
			w.put("live/README", "keys")
		}),
		Entry("Kubernetes", func(w *world, p testkit.Pair) {
			w.put("shop/..2026_11_22/tls.crt", p.Cert)
			w.put("shop/..2026_11_22/tls.key", p.Key)
			w.put("shop/..2026_11_22/ca.crt", p.Cert)
			w.link("..2026_11_22", "shop/..data")
			w.link("..data/tls.crt", "shop/tls.crt")
			w.link("..data/tls.key", "shop/tls.key")
			w.link("..data/ca.crt", "shop/ca.crt")
		}),
		Entry("a link to another directory", func(w *world, p testkit.Pair) {
			w.put(".elsewhere/tls.crt", p.Cert)
			w.put(".elsewhere/tls.key", p.Key)
			w.link(".elsewhere", "shop")
		}),
	)

	It("does not write the same certificates again in another form", func() {
		w := newWorld()
		pair := w.putPair("shop")
		w.look()
		w.put("shop.crt", "# of the shop\n"+pair.Cert+"\n\n")
		w.look()
		Expect(w.revisions()).To(HaveLen(1))
		Expect(w.logged("certificate of a directory stored")).To(HaveLen(1))
		By("an additional authority in the chain is written")
		w.put("shop.crt", pair.Cert+w.authority.PEM)
		w.look()
		Expect(w.revisions()).To(HaveLen(2))
		Expect(w.secret("shop").Cert).To(Equal(pair.Cert + w.authority.PEM))
	})

	It("keeps tags and the host name", func() {
		w := newWorld()
		w.putPair("shop")
		w.look()
		Expect(w.write(func(tx store.Writer) error {
			s := *w.secret("shop")
			s.Tags, s.SNI = model.Tags{"web"}, "shop.test"
			return store.Replace(tx, &s)
		})).To(BeEmpty())
		pair := w.putPair("shop")
		w.look()
		w.expectPair("shop", pair)
		Expect(w.secret("shop").Tags).To(Equal(model.Tags{"web"}))
		Expect(w.secret("shop").SNI).To(Equal("shop.test"))
	})

	It("waits while a file grows", func() {
		w := newWorld()
		old := w.putPair("shop")
		w.look()
		pair := w.issue("shop.test")
		w.put("shop.key", pair.Key)
		w.put("shop.crt", pair.Cert) // complete, but the chain is still to follow
		Expect(w.Look(context.Background(), w.now)).To(Equal(500 * time.Millisecond))
		w.put("shop.crt", pair.Cert+w.authority.PEM)
		w.now = w.now.Add(499 * time.Millisecond)
		Expect(w.Look(context.Background(), w.now)).To(Equal(500 * time.Millisecond))
		w.expectPair("shop", old)
		w.now = w.now.Add(500 * time.Millisecond)
		Expect(w.Look(context.Background(), w.now)).To(Equal(time.Minute))
		Expect(w.secret("shop").Cert).To(Equal(pair.Cert + w.authority.PEM))
		Expect(w.logged("WARN")).To(BeEmpty())
	})

	It("keeps the old pair while a file is incomplete, wherever it ends", func() {
		w := newWorld()
		old := w.putPair("shop")
		w.look()
		pair := w.issue("shop.test")
		whole := pair.Cert + w.authority.PEM
		w.put("shop.key", pair.Key)
		for cut := 0; cut < len(whole); cut += 41 {
			if cut == len(pair.Cert) || cut == len(pair.Cert)-1 {
				continue // the leaf alone is a pair
			}
			w.put("shop.crt", whole[:cut])
			w.look()
			w.expectPair("shop", old)
			Expect(w.conditions()).To(ConsistOf(Or(
				Equal("/secret/shop: DIR/shop.crt is cut off, or damaged; it is read again when it changes; the secret stays as it is"),
				Equal("/secret/shop: DIR/shop.crt is empty; it is read again when it changes; the secret stays as it is"),
			)), "%d", cut)
		}
		w.put("shop.crt", whole)
		for cut := 0; cut < len(pair.Key)-1; cut += 17 {
			w.put("shop.key", pair.Key[:cut])
			w.look()
			w.expectPair("shop", old)
			Expect(w.conditions()).To(HaveLen(1))
		}
		w.put("shop.key", pair.Key)
		w.look()
		w.expectPair("shop", testkit.Pair{Cert: whole, Key: pair.Key})
		Expect(w.conditions()).To(BeEmpty())
		Expect(w.logged("the directory of certificates has no errors any more")).NotTo(BeEmpty())
	})

	It("waits for the other half of a rotation", func() {
		for _, first := range []string{"crt", "key"} {
			w := newWorld()
			old := w.putPair("shop")
			w.look()
			pair := w.issue("shop.test")
			content := map[string]string{"crt": pair.Cert, "key": pair.Key}
			w.put("shop."+first, content[first])
			w.look()
			w.look()
			w.expectPair("shop", old)
			Expect(w.conditions()).To(Equal([]string{"/secret/shop: the key in DIR/shop.key does not belong to the certificate in DIR/shop.crt: " +
				"one of the two has been replaced, and the other half is waited for; the secret stays as it is"}))
			Expect(w.logged("does not belong")).To(HaveLen(1))
			delete(content, first)
			for half, text := range content {
				w.put("shop."+half, text)
			}
			w.look()
			w.expectPair("shop", pair)
			Expect(w.conditions()).To(BeEmpty())
		}
	})

	DescribeTable("reports what is wrong, and keeps the old pair", func(breakIt func(w *world, path string), want string) {
		w := newWorld()
		old := w.putPair("shop")
		w.look()
		key := filepath.Join(w.path, "shop.key")
		Expect(os.Remove(key)).To(Succeed())
		breakIt(w, key)
		w.look()
		w.look()
		w.expectPair("shop", old)
		Expect(w.conditions()).To(Equal([]string{"/secret/shop: DIR/shop." + want + "; the secret stays as it is"}))
		Expect(w.logged("the directory of certificates has errors")).To(HaveLen(1))
		Expect(os.RemoveAll(key)).To(Succeed())
		pair := w.putPair("shop")
		w.look()
		w.expectPair("shop", pair)
		Expect(w.conditions()).To(BeEmpty())
	},
		Entry("for a missing half", func(*world, string) {}, "crt has no key beside it (shop.key, privkey.pem or tls.key)"),
		Entry("for a large file", func(w *world, _ string) { w.put("shop.key", strings.Repeat("x", 1<<20+1)) }, "key has more than 1 MiB: it is not a certificate or a key"),
		Entry("for a named pipe", func(_ *world, path string) { Expect(syscall.Mkfifo(path, 0o600)).To(Succeed()) }, "key is not a regular file"),
		Entry("for other text", func(w *world, _ string) { w.put("shop.key", "secret\n") }, "key contains no PEM key (-----BEGIN PRIVATE KEY-----)"),
		Entry("for a certificate instead of the key", func(w *world, _ string) { w.put("shop.key", w.authority.PEM) }, "key contains a PEM block \"CERTIFICATE\"; only a private key is allowed here; send certificates as Secret_cert"),
	)

	It("reports what cannot be read, or is not a valid name", func() {
		w := newWorld()
		pair := w.issue("shop.test")
		w.put("*.shop.crt", pair.Cert)
		w.put("*.shop.key", pair.Key)
		w.link("nowhere", "gone.crt")
		w.link("loop.key", "loop.key")
		w.put("twice.crt", pair.Cert)
		w.put("twice.pem", pair.Cert)
		w.put("twice.key", pair.Key)
		w.put("shop.crt", pair.Cert)
		w.put("shop.key", pair.Key)
		w.put("shop/tls.crt", pair.Cert)
		w.look()
		Expect(w.conditions()).To(ConsistOf(
			`/tls-dir/*.shop.crt: DIR/*.shop.crt has a name that no secret can have: "*.shop" may contain only the characters A-Z a-z 0-9 . _ -; rename the files`,
			"/tls-dir/gone.crt: DIR/gone.crt cannot be read: no such file or directory",
			"/tls-dir/loop.key: DIR/loop.key cannot be read: too many levels of symbolic links",
			"/tls-dir/twice.pem: DIR/twice.pem is beside twice.crt: one of the two has to go; twice.crt is used",
			"/tls-dir/tls.crt: DIR/shop/tls.crt is of a pair with the name shop, and so is DIR/shop.crt, which is used; rename one of the two",
		))
		w.expectPair("twice", pair)
		w.expectPair("shop", pair)
	})

	It("ignores what is not a pair, with one log line", func() {
		w := newWorld()
		w.put("README", "text")
		w.put("notes/old.txt", "text")
		w.put("ca.crt", w.authority.PEM)
		w.put(".shop.crt.swp", "text")
		for range 3 {
			w.look()
		}
		Expect(w.conditions()).To(BeEmpty())
		Expect(w.revisions()).To(BeEmpty())
		lines := w.logged("ignored in the directory")
		Expect(lines).To(HaveLen(3))
		Expect(strings.Join(lines, "")).To(And(
			ContainSubstring(`README reason="is not part of a pair: expected NAME.crt or NAME.pem, with NAME.key"`),
			ContainSubstring(`notes reason="has no pair: expected fullchain.pem with privkey.pem, or tls.crt with tls.key"`),
			ContainSubstring(`ca.crt reason="is not a pair: `)))
	})

	It("keeps a secret whose files are deleted", func() {
		w := newWorld()
		pair := w.putPair("shop")
		w.look()
		for _, half := range []string{"crt", "key"} {
			Expect(os.Remove(filepath.Join(w.path, "shop."+half))).To(Succeed())
		}
		w.look()
		w.look()
		w.expectPair("shop", pair)
		Expect(w.conditions()).To(BeEmpty())
		Expect(w.logged("files of a certificate are gone, the secret stays")).To(HaveLen(1))
		By("which then belongs to its writers")
		Expect(w.write(func(tx store.Writer) error { return store.Delete(tx, model.SecretKey("shop")) })).To(BeEmpty())
		w.look()
		Expect(w.secret("shop")).To(BeNil())
	})

	It("does not report what is only temporary", func() {
		w := newWorld()
		pair := w.putPair("shop")
		w.look()
		shop := filepath.Join(w.path, "shop")
		for _, half := range []string{".crt", ".key"} {
			Expect(os.Rename(shop+half, shop+half+".away")).To(Succeed())
		}
		w.link("nowhere", "gone.crt")
		Expect(w.Look(context.Background(), w.now)).To(Equal(500 * time.Millisecond))
		Expect(os.Remove(filepath.Join(w.path, "gone.crt"))).To(Succeed())
		for _, half := range []string{".crt", ".key"} {
			Expect(os.Rename(shop+half+".away", shop+half)).To(Succeed())
		}
		w.look()
		Expect(w.logged("WARN")).To(BeEmpty())
		Expect(w.logged("are gone")).To(BeEmpty())
		w.expectPair("shop", pair)
	})

	It("keeps everything if it is missing itself", func() {
		w := newWorld()
		old := w.putPair("shop")
		w.look()
		Expect(os.Rename(w.path, w.path+".away")).To(Succeed())
		Expect(w.Look(context.Background(), w.now)).To(Equal(5 * time.Second))
		Expect(w.conditions()).To(Equal([]string{"/tls-dir/certs: DIR cannot be read: no such file or directory; the secrets stay as they are"}))
		w.expectPair("shop", old)
		Expect(os.Rename(w.path+".away", w.path)).To(Succeed())
		w.look()
		Expect(w.conditions()).To(BeEmpty())
	})
})

var _ = Describe("What others write", func() {
	put := func(pair testkit.Pair) func(store.Writer) error {
		return func(tx store.Writer) error {
			_, err := store.Put(tx, &model.Secret{Name: "shop", Cert: pair.Cert, PrivateKey: pair.Key})
			return err
		}
	}

	It("is replaced by the files, with a warning", func() {
		w := newWorld()
		pair := w.putPair("shop")
		w.look()
		Expect(w.write(put(w.issue("shop.test")))).To(Equal([]string{
			"/secret/shop comes from the files in " + w.path + " (--tls-dir), which replace what is written here; change the files"}))
		w.look()
		w.expectPair("shop", pair)
		Expect(w.write(put(pair))).To(BeEmpty())
		Expect(w.write(func(tx store.Writer) error { return store.Delete(tx, model.SecretKey("shop")) })).To(Equal([]string{
			"/secret/shop comes from the files in " + w.path + " (--tls-dir), which would create it again; remove the files first"}))
		w.look()
		w.expectPair("shop", pair)
	})

	It("is also replaced at startup", func() {
		w := newWorld()
		Expect(w.write(put(w.issue("shop.test")))).To(BeEmpty())
		pair := w.putPair("shop")
		w.look()
		w.expectPair("shop", pair)
	})

	It("is kept if it is not a pair", func() {
		w := newWorld()
		w.write(func(tx store.Writer) error {
			return errors.Join(store.Create(tx, &model.Secret{Name: "shop", Value: "password"}), store.Create(tx, &model.Secret{Name: "ca", Cert: w.authority.PEM}))
		})
		shop := w.putPair("shop")
		w.putPair("ca")
		w.look()
		Expect(w.secret("shop").Type).To(Equal(model.SecretGeneric))
		Expect(w.conditions()).To(Equal([]string{
			"/secret/ca: the secret contains a value, or a certificate without a key, and DIR/ca.crt does not replace either; rename the files, or delete the secret",
			"/secret/shop: the secret contains a value, or a certificate without a key, and DIR/shop.crt does not replace either; rename the files, or delete the secret",
		}))
		Expect(w.write(func(tx store.Writer) error { return store.Delete(tx, model.SecretKey("shop")) })).To(BeEmpty())
		w.look()
		w.expectPair("shop", shop)
		Expect(w.conditions()).To(HaveLen(1))
	})

	It("is replaced only by a pair that the checks of the API accept", func() {
		bad := true
		tries := 0
		w := newWorld(func(o *tlsdir.Options) {
			o.Check = func(r store.Reader, written store.Changes) error {
				tries++
				if !bad {
					return nil
				}
				return &model.Error{Kind: model.Unworkable, Message: "service shop cannot use it", Hint: "detach it", Err: errors.New("inside")}
			}
			o.Warn = func(store.Reader, store.Changes) ([]string, error) {
				return []string{"service api loses its host"}, nil
			}
		})
		pair := w.putPair("shop")
		w.look()
		w.look()
		Expect(w.secret("shop")).To(BeNil())
		Expect(w.revisions()).To(BeEmpty())
		Expect(w.conditions()).To(Equal([]string{
			"/secret/shop: DIR/shop.crt with DIR/shop.key is refused: service shop cannot use it (detach it); the secret stays as it is"}))
		Expect(tries).To(Equal(1))
		bad = false
		w.now = w.now.Add(time.Minute)
		w.look()
		w.expectPair("shop", pair)
		Expect(w.conditions()).To(BeEmpty())
		Expect(w.logged("service api loses its host")).To(HaveLen(1))
	})

	It("does not stop it while the database is unavailable", func() {
		f := &failing{}
		w := newWorld(func(o *tlsdir.Options) { f.Store, o.Store = o.Store, f })
		w.write(func(tx store.Writer) error { return store.Create(tx, &model.Secret{Name: "text", Value: "password"}) })
		w.putPair("text")
		old := w.putPair("shop")
		w.look()
		w.put("shop.key", "")
		w.look()
		before := w.conditions()
		Expect(before).To(HaveLen(2))
		f.away = true
		w.now = w.now.Add(time.Second)
		Expect(w.Look(context.Background(), w.now)).To(Equal(5 * time.Second))
		Expect(w.conditions()).To(Equal(before))
		w.expectPair("shop", old)
		pair := w.putPair("shop")
		w.look()
		f.away = false
		w.look()
		w.expectPair("shop", pair)
		Expect(w.conditions()).To(HaveLen(1))
	})

	It("is not overwritten in turn by several control planes", func() {
		older := newWorld()
		first, second := older.issue("shop.test"), testkit.Pair{}
		Eventually(func() bool { // times in certificates have seconds
			second = older.issue("shop.test")
			return issued(second).After(issued(first))
		}).Should(BeTrue())
		newer := *older
		newer.path = filepath.Join(GinkgoT().TempDir(), "certs")
		Expect(os.Mkdir(newer.path, 0o700)).To(Succeed())
		newer.open(newer.path)
		both := []*world{older, &newer}
		for _, w := range both {
			w.put("shop.crt", first.Cert)
			w.put("shop.key", first.Key)
			w.look()
			w.look()
		}
		Expect(older.revisions()).To(HaveLen(1))
		By("during a rotation that one of them sees later")
		newer.put("shop.crt", second.Cert)
		newer.put("shop.key", second.Key)
		newer.look()
		older.look()
		Expect(older.conditions()).To(BeEmpty(), "its files may be on their way")
		for range 5 {
			for _, w := range both {
				w.now = w.now.Add(time.Minute)
				w.look()
			}
		}
		older.expectPair("shop", second)
		Expect(older.revisions()).To(HaveLen(2))
		Expect(older.conditions()).To(Equal([]string{
			"/secret/shop: DIR/shop.crt is older than the certificate that another control plane has stored from its --tls-dir, which stays: give both the same files"}))
		Expect(newer.conditions()).To(BeEmpty())
		By("what somebody writes is replaced once")
		older.write(put(older.issue("shop.test")))
		for range 3 {
			for _, w := range []*world{&newer, older} {
				w.now = w.now.Add(time.Minute)
				w.look()
			}
		}
		older.expectPair("shop", second)
		Expect(older.revisions()).To(Equal([]string{
			"tls-dir: PUT /secret/shop", "tls-dir: PUT /secret/shop", "ann: PUT /secret/shop", "tls-dir: PUT /secret/shop"}))
		By("until both have the same")
		older.put("shop.crt", second.Cert)
		older.put("shop.key", second.Key)
		older.look()
		Expect(older.conditions()).To(BeEmpty())
		Expect(older.revisions()).To(HaveLen(4))
		By("an older pair that is restored on purpose is used")
		for _, w := range both {
			w.put("shop.crt", first.Cert)
			w.put("shop.key", first.Key)
			w.look()
		}
		older.expectPair("shop", first)
	})
})

var _ = Describe("Keys", func() {
	It("are in no log line and no condition", func() {
		w := newWorld(func(o *tlsdir.Options) {
			o.Check = func(store.Reader, store.Changes) error { return errors.New("broken") }
		})
		pair := w.putPair("shop")
		w.put("swapped.crt", pair.Key)
		w.put("swapped.key", pair.Cert)
		w.put("cut.crt", pair.Cert)
		w.put("cut.key", pair.Key[:len(pair.Key)/2])
		w.look()
		Expect(w.conditions()).To(HaveLen(3))
		marker := strings.Split(pair.Key, "\n")[1][:20]
		Expect(w.log.String() + strings.Join(w.conditions(), "")).NotTo(ContainSubstring(marker))
	})
})
