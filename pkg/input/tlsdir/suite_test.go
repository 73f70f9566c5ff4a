package tlsdir_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/tlsdir"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

func TestTLSDir(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "directory of certificates")
}

var _ = BeforeEach(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() {
		Eventually(gleak.Goroutines).WithTimeout(10 * time.Second).ShouldNot(gleak.HaveLeaked(before))
	})
})

// world is a directory, a store and the log.
type world struct {
	*tlsdir.Dir
	path      string
	store     *sqlstore.Store
	status    *status.Registry
	log       *testkit.Output
	authority *testkit.Authority
	now       time.Time
}

// newWorld opens a database for an empty directory.
func newWorld(change ...func(*tlsdir.Options)) *world {
	GinkgoHelper()
	w := &world{path: filepath.Join(GinkgoT().TempDir(), "certs"), now: time.Now()}
	Expect(os.Mkdir(w.path, 0o700)).To(Succeed())
	ring, _, err := seal.OpenOrCreate(filepath.Join(GinkgoT().TempDir(), "keys.json"))
	Expect(err).NotTo(HaveOccurred())
	url, err := migrated.SQLite(filepath.Join(GinkgoT().TempDir(), "gatehouse.db"))
	Expect(err).NotTo(HaveOccurred())
	w.store, err = sqlstore.Open(context.Background(), sqlstore.Options{URL: url, Sealer: ring})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(w.store.Close()).To(Succeed()) })
	w.authority, err = testkit.NewAuthority("test")
	Expect(err).NotTo(HaveOccurred())
	w.open(w.path, change...)
	return w
}

// open switches to another directory for the same store.
func (w *world) open(path string, change ...func(*tlsdir.Options)) {
	GinkgoHelper()
	w.status, w.log = status.NewRegistry(), &testkit.Output{}
	o := tlsdir.Options{
		Path: path, Store: w.store, Status: w.status,
		Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, f := range change {
		f(&o)
	}
	var err error
	w.Dir, err = tlsdir.New(o)
	Expect(err).NotTo(HaveOccurred())
}

// look reads the directory twice, so that its contents have settled.
func (w *world) look() {
	for range 2 {
		w.now = w.now.Add(time.Second)
		w.Look(context.Background(), w.now)
	}
}

// put writes a file of the directory, with the directories above it.
func (w *world) put(name, content string) {
	GinkgoHelper()
	path := filepath.Join(w.path, name)
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	Expect(os.WriteFile(path, []byte(content), 0o600)).To(Succeed())
}

func (w *world) link(target, name string) {
	GinkgoHelper()
	path := filepath.Join(w.path, name)
	Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
	Expect(os.Symlink(target, path+".new")).To(Succeed())
	Expect(os.Rename(path+".new", path)).To(Succeed())
}

func (w *world) issue(names ...string) testkit.Pair {
	GinkgoHelper()
	pair, err := w.authority.Issue(testkit.CertificateOptions{Names: names})
	Expect(err).NotTo(HaveOccurred())
	return pair
}

// putPair writes NAME.crt and NAME.key of a new certificate.
func (w *world) putPair(name string) testkit.Pair {
	GinkgoHelper()
	pair := w.issue(name + ".test")
	w.put(name+".crt", pair.Cert)
	w.put(name+".key", pair.Key)
	return pair
}

// secret returns the stored secret; nil if there is none.
func (w *world) secret(name string) *model.Secret {
	GinkgoHelper()
	var s *model.Secret
	err := w.store.Read(context.Background(), func(r store.Reader) (err error) {
		s, err = store.Get[*model.Secret](r, model.SecretKey(name))
		return err
	})
	if model.IsKind(err, model.NotFound) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return s
}

// expectPair expects that a pair is stored, with its key.
func (w *world) expectPair(name string, pair testkit.Pair) {
	GinkgoHelper()
	s := w.secret(name)
	Expect(s).NotTo(BeNil(), "%s: %s", name, w.log)
	Expect(s.Cert).To(Equal(pair.Cert))
	key, err := s.OpenKey(w.store.Unseal)
	Expect(err).NotTo(HaveOccurred())
	Expect(key).To(Equal(pair.Key))
}

// write changes the store as another client.
func (w *world) write(fn func(store.Writer) error) []string {
	GinkgoHelper()
	var warnings []string
	_, err := w.store.Write(context.Background(), store.Origin{Actor: "ann", Request: "PUT /secret/shop"}, func(tx store.Writer) (err error) {
		if err := fn(tx); err != nil {
			return err
		}
		warnings, err = w.Warnings(tx.Written())
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return warnings
}

// revisions lists who wrote what, the oldest first.
func (w *world) revisions() (list []string) {
	GinkgoHelper()
	Expect(w.store.Read(context.Background(), func(r store.Reader) error {
		all, err := r.Revisions(0, 100)
		for _, rev := range all {
			list = append([]string{rev.Actor + ": " + rev.Request}, list...)
		}
		return err
	})).To(Succeed())
	return list
}

// conditions returns "PATH: MESSAGE", with DIR for the directory.
func (w *world) conditions() []string {
	list := []string{}
	for _, c := range w.status.Conditions() {
		Expect(c.Code).To(Equal("TLSDirectory"))
		list = append(list, strings.ReplaceAll(fmt.Sprintf("%s: %s", c.Key.Path(), c.Message), w.path, "DIR"))
	}
	return list
}

// logged lists the log lines that contain a text.
func (w *world) logged(text string) (lines []string) {
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, line)
		}
	}
	return lines
}
