package sqlstore_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

var _ = Describe("A claim", func() {
	var path, url string
	BeforeEach(func() {
		dir, err := filepath.EvalSymlinks(GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		path = filepath.Join(dir, "gatehouse.db")
		url = "sqlite://" + path
	})

	It("is held by one process at a time, which is named, and does not keep others from opening", func(ctx SpecContext) {
		Expect(sqlstore.ClaimHolder(url)).To(BeEmpty(), "there is no database")
		release, err := sqlstore.Claim(ctx, url, "gatehouse serve")
		Expect(err).NotTo(HaveOccurred())
		me := fmt.Sprintf("process %d (gatehouse serve)", os.Getpid())
		Expect(sqlstore.ClaimHolder(url)).To(Equal(me))
		_, err = sqlstore.Claim(ctx, url, "gatehouse standalone")
		Expect(model.IsKind(err, model.Conflict)).To(BeTrue())
		Expect(err).To(MatchError(HavePrefix("the database " + path + " is used by " + me + ", and one server at a time may use an SQLite file (stop that process")))
		Expect(addProxy(ctx, openStore(ctx, url), "gw")).To(Succeed())

		Expect(release()).To(Succeed())
		Expect(sqlstore.ClaimHolder(url)).To(BeEmpty())
		release, err = sqlstore.Claim(ctx, url, "gatehouse standalone")
		Expect(err).NotTo(HaveOccurred())
		Expect(sqlstore.ClaimHolder(url)).To(Equal(fmt.Sprintf("process %d (gatehouse standalone)", os.Getpid())))
		Expect(release()).To(Succeed())
	})

	It("names another machine, and no process if the claim is unreadable", func(ctx SpecContext) {
		release, err := sqlstore.Claim(ctx, url, "gatehouse serve")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(release)
		for text, want := range map[string]string{
			"7\tgateway-0\tgatehouse standalone\n": "process 7 on gateway-0 (gatehouse standalone)",
			"":                                     "another process",
			"7\tgat":                               "another process",
		} {
			Expect(os.WriteFile(path+".lock", []byte(text), 0o600)).To(Succeed())
			Expect(sqlstore.ClaimHolder(url)).To(Equal(want))
		}
	})

	It("is readable by its owner only, and reports what prevents it", func(ctx SpecContext) {
		Expect(os.Mkdir(path+".lock", 0o700)).To(Succeed())
		_, err := sqlstore.Claim(ctx, url, "gatehouse serve")
		Expect(err).To(MatchError(And(HavePrefix("the database "+path+" cannot be locked for this process (the user that runs the program needs to write "+path+".lock"),
			ContainSubstring("is a directory"))))
		Expect(os.Remove(path + ".lock")).To(Succeed())
		release, err := sqlstore.Claim(ctx, url, "gatehouse serve")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(release)
		info, err := os.Stat(path + ".lock")
		Expect(err).NotTo(HaveOccurred())
		Expect(info.Mode()).To(Equal(os.FileMode(0o600)))
	})

	It("stops waiting with its context", func(ctx SpecContext) {
		release, err := sqlstore.Claim(ctx, url, "gatehouse serve")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(release)
		ended, end := context.WithCancel(ctx)
		end()
		_, err = sqlstore.Claim(ended, url, "gatehouse serve")
		Expect(err).To(MatchError(context.Canceled))
	})

	It("is not needed for PostgreSQL", func(ctx SpecContext) {
		for range 2 {
			release, err := sqlstore.Claim(ctx, "postgres://db.example/gatehouse", "gatehouse serve")
			Expect(err).NotTo(HaveOccurred())
			Expect(release()).To(Succeed())
		}
		Expect(sqlstore.ClaimHolder("postgres://db.example/gatehouse")).To(BeEmpty())
	})
})
