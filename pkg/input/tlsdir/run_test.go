package tlsdir_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/tlsdir"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// issued returns when a certificate became valid.
func issued(p testkit.Pair) time.Time {
	GinkgoHelper()
	block, _ := pem.Decode([]byte(p.Cert))
	cert, err := x509.ParseCertificate(block.Bytes)
	Expect(err).NotTo(HaveOccurred())
	return cert.NotBefore
}

// failing is a store that can be made unavailable.
type failing struct {
	store.Store
	away bool
}

func (f *failing) Read(ctx context.Context, fn func(store.Reader) error) error {
	if f.away {
		return &model.Error{Kind: model.Unavailable, Message: "the database is away"}
	}
	return f.Store.Read(ctx, fn)
}

// running runs a directory until the end of the spec.
func running(change ...func(*tlsdir.Options)) *world {
	GinkgoHelper()
	w := newWorld(append([]func(*tlsdir.Options){func(o *tlsdir.Options) {
		o.Settle, o.Every = 20*time.Millisecond, time.Hour
	}}, change...)...)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	DeferCleanup(func() {
		stop()
		Eventually(ended).Should(Receive(BeNil()))
	})
	return w
}

var _ = Describe("Run", func() {
	has := func(w *world, name string, pair testkit.Pair) {
		GinkgoHelper()
		Eventually(func() string {
			if s := w.secret(name); s != nil {
				return s.Cert
			}
			return ""
		}).Should(Equal(pair.Cert))
	}
	// move replaces a file atomically, as a correct writer does.
	move := func(w *world, name, content string) {
		GinkgoHelper()
		w.put(".new", content)
		Expect(os.Rename(filepath.Join(w.path, ".new"), filepath.Join(w.path, name))).To(Succeed())
	}

	It("notices files that are created, changed and moved", func() {
		w := running()
		has(w, "shop", w.putPair("shop"))
		has(w, "shop", w.putPair("shop"))
		pair := w.issue("shop.test")
		move(w, "shop.crt", pair.Cert)
		move(w, "shop.key", pair.Key)
		has(w, "shop", pair)
		By("also what others write")
		w.write(func(tx store.Writer) error { return store.Delete(tx, model.SecretKey("shop")) })
		has(w, "shop", pair)
	})

	It("notices new directories, and links that are swapped", func() {
		w := running()
		pair := w.issue("shop.test")
		w.put("shop/..1/tls.crt", pair.Cert)
		w.put("shop/..1/tls.key", pair.Key)
		w.link("..1", "shop/..data")
		w.link("..data/tls.crt", "shop/tls.crt")
		w.link("..data/tls.key", "shop/tls.key")
		has(w, "shop", pair)
		pair = w.issue("shop.test")
		w.put("shop/..2/tls.crt", pair.Cert)
		w.put("shop/..2/tls.key", pair.Key)
		w.link("..2", "shop/..data")
		Expect(os.RemoveAll(filepath.Join(w.path, "shop/..1"))).To(Succeed())
		has(w, "shop", pair)
		By("a directory that was replaced")
		Expect(os.Rename(filepath.Join(w.path, "shop"), filepath.Join(w.path, ".old"))).To(Succeed())
		for range 2 {
			pair = w.issue("shop.test")
			w.put("shop/tls.crt", pair.Cert)
			w.put("shop/tls.key", pair.Key)
			has(w, "shop", pair)
		}
		By("the target of a link")
		pair = w.issue("far.test")
		away := GinkgoT().TempDir()
		for range 2 {
			Expect(os.WriteFile(filepath.Join(away, "c"), []byte(pair.Cert), 0o600)).To(Succeed())
			Expect(os.WriteFile(filepath.Join(away, "k"), []byte(pair.Key), 0o600)).To(Succeed())
			if w.secret("far") == nil {
				w.link(filepath.Join(away, "c"), "far.crt")
				w.link(filepath.Join(away, "k"), "far.key")
			}
			has(w, "far", pair)
			pair = w.issue("far.test")
		}
	})

	It("reads again if it gets no notifications", func() {
		w := running(func(o *tlsdir.Options) { o.Blind, o.Every = true, 10*time.Millisecond })
		has(w, "shop", w.putPair("shop"))
		has(w, "shop", w.putPair("shop"))
	})

	It("reports a fault, and its end", func() {
		w := running()
		pair := w.putPair("shop")
		has(w, "shop", pair)
		w.put("shop.crt", pair.Cert[:100])
		Eventually(w.conditions).Should(HaveLen(1))
		w.put("shop.crt", pair.Cert)
		Eventually(w.conditions).Should(BeEmpty())
		Expect(w.revisions()).To(HaveLen(1))
	})
})
