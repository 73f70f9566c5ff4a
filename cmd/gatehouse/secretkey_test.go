package main

import (
	"context"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

var _ = Describe("secret-key", func() {
	var dir, key string
	// onStore works on the database in dir with the key as it is now.
	onStore := func(work func(context.Context, *sqlstore.Store) error) error {
		GinkgoHelper()
		ring, err := seal.Open(key)
		Expect(err).NotTo(HaveOccurred())
		ctx := context.Background()
		db, err := sqlstore.Open(ctx, sqlstore.Options{URL: "sqlite://" + filepath.Join(dir, "gatehouse.db"), Sealer: ring})
		if err != nil {
			return err
		}
		defer func() { Expect(db.Close()).To(Succeed()) }()
		return work(ctx, db)
	}
	write := func(work func(store.Writer) error) {
		GinkgoHelper()
		Expect(onStore(func(ctx context.Context, db *sqlstore.Store) error {
			_, err := db.Write(ctx, store.Origin{Actor: "tester"}, work)
			return err
		})).To(Succeed())
	}
	value := func() string {
		GinkgoHelper()
		var sealed string
		Expect(onStore(func(ctx context.Context, db *sqlstore.Store) error {
			return db.Read(ctx, func(r store.Reader) error {
				obj, err := r.Get(model.SecretKey("token"))
				if err == nil {
					sealed = obj.(*model.Secret).Value
				}
				return err
			})
		})).To(Succeed())
		ring, err := seal.Open(key)
		Expect(err).NotTo(HaveOccurred())
		plain, err := ring.Unseal(sealed, "secret/token/value")
		Expect(err).NotTo(HaveOccurred())
		return plain
	}
	content := func() string {
		GinkgoHelper()
		b, err := os.ReadFile(key)
		Expect(err).NotTo(HaveOccurred())
		return string(b)
	}

	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		key = filepath.Join(dir, "secret.key")
		_, _, err := seal.OpenOrCreate(key)
		Expect(err).NotTo(HaveOccurred())
		write(func(w store.Writer) error { return w.Insert(&model.Secret{Name: "token", Value: "first"}) })
		write(func(w store.Writer) error { return w.Replace(&model.Secret{Name: "token", Value: "second"}) })
	})

	It("rotate adds a new key and removes the old one", func() {
		before := content()
		Expect(onData(dir, "secret-key", "rotate", "--remove-old")).To(Equal(
			"sealed again: 1 text of the configuration, 3 texts of its history\nremoved from " + key + ": 1 old key\n"))
		Expect(value()).To(Equal("second"))
		write(func(w store.Writer) error { return store.Rollback(w, 1) })
		Expect(value()).To(Equal("first"))

		By("the old key is no longer of any use")
		Expect(os.WriteFile(key, []byte(before), 0o600)).To(Succeed())
		wrong := result{1, "", "gatehouse: the secrets of this database were sealed with another key " +
			"(give the key file that was used before with --secret-key-file): the key does not open the check text\n"}
		Expect(run1("", "secret-key", "rotate", "--data-dir", dir)).To(Equal(wrong))
		Expect(content()).To(Equal(before))
	})

	It("add, rotate and remove-old are separate steps if the file has copies", func() {
		Expect(good("secret-key", "add", "--data-dir", dir)).To(Equal(
			key + " has one more key: copy it to every control plane, then run gatehouse secret-key rotate\n"))
		Expect(onData(dir, "secret-key", "rotate")).To(Equal(
			"sealed again: 1 text of the configuration, 3 texts of its history\nthe old keys are still in " + key +
				"; once every control plane has this file: gatehouse secret-key remove-old\n"))
		Expect(run1("", "secret-key", "remove-old", "--database-url", "sqlite://"+dir+"/gatehouse.db", "--secret-key-file", key)).To(Equal(result{0,
			"sealed again: 0 texts of the configuration, 0 texts of its history\nremoved from " + key + ": 1 old key\n",
			"using the database " + dir + "/gatehouse.db\n"}))
		Expect(value()).To(Equal("second"))
	})

	It("continues a run that was interrupted halfway", func() {
		Expect(seal.Rotate(key)).To(Succeed()) // and then the power went
		Expect(value()).To(Equal("second"))
		Expect(onData(dir, "secret-key", "rotate", "--remove-old")).To(HaveSuffix(": 2 old keys\n"))
		Expect(value()).To(Equal("second"))
	})

	It("touches no key if the database is not the one in use", func() {
		before := content()
		elsewhere := filepath.Join(GinkgoT().TempDir(), "other.db")
		Expect(run1("", "secret-key", "rotate", "--remove-old", "--data-dir", dir, "--database-url", "sqlite://"+elsewhere)).To(Equal(result{1, "",
			"gatehouse: the database file " + elsewhere + " does not exist" + noDatabase}))
		Expect(elsewhere).NotTo(BeAnExistingFile())
		elsewhere = filepath.Join(newDatabase(), "gatehouse.db")
		Expect(run1("", "secret-key", "rotate", "--remove-old", "--data-dir", dir, "--database-url", "sqlite://"+elsewhere)).To(Equal(result{1, "",
			"gatehouse: no key was ever used with this database" + noDatabase}))
		Expect(content()).To(Equal(before))
	})

	It("reports what is wrong with the key file, and creates none", func() {
		missing := filepath.Join(dir, "none.key")
		for _, command := range []string{"add", "rotate", "remove-old"} {
			Expect(run1("", "secret-key", command, "--data-dir", dir, "--secret-key-file", missing)).To(Equal(result{1, "", "gatehouse: the key file " + missing +
				" does not exist (restore it, or name the right one with --secret-key-file: nothing else opens what was sealed with it)\n"}))
		}
		Expect(missing).NotTo(BeAnExistingFile())
		Expect(os.Chmod(key, 0o644)).To(Succeed())
		Expect(run1("", "secret-key", "rotate", "--data-dir", dir).stderr).To(HavePrefix("gatehouse: the key file " + key + " has mode 0644, which gives too many users access ("))
	})

	It("fails when it is interrupted, and changes nothing", func() {
		before := content()
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		Expect(runIn(ctx, "", "secret-key", "rotate", "--data-dir", dir)).To(Equal(result{1, "", "gatehouse: interrupted before it was done; run it again\n"}))
		Expect(content()).To(Equal(before))
	})
})
