package main

import (
	"os"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("token", func() {
	It("works on the database that the flags name, and on no other", func() {
		home, dir := GinkgoT().TempDir(), filepath.Join(GinkgoT().TempDir(), "data")
		GinkgoT().Setenv("XDG_DATA_HOME", home)
		made := run1("", "token", "create", "ann", "--role", "admin", "--data-dir", dir)
		Expect(made.code).To(Equal(0), made.stderr)
		Expect(made.stdout).To(MatchRegexp(`^gh_[A-Za-z0-9_-]{43}\n$`))
		Expect(filepath.Join(dir, "gatehouse.db")).To(BeAnExistingFile())
		Expect(os.ReadDir(home)).To(BeEmpty())

		list := run1("", "token", "list", "--database-url", "sqlite://"+dir+"/gatehouse.db")
		Expect(list.stdout).To(And(ContainSubstring("ann"), Not(ContainSubstring("gh_"))))
		Expect(run1("", "token", "revoke", "ann", "--data-dir", dir).code).To(Equal(0))
		Expect(run1("", "token", "list", "--data-dir", dir).stdout).NotTo(ContainSubstring("ann"))
	})
})
