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

	It("makes none of a viewer while there is none of an admin, unless told so", func() {
		dir := GinkgoT().TempDir()
		Expect(run1("", "token", "create", "ci", "--role", "viewer", "--data-dir", dir)).To(Equal(result{1, "",
			"gatehouse: there is no token with the role admin yet, and with a viewer's alone nobody could change anything " +
				"(make one first: gatehouse token create NAME --role admin; or give --without-admin if the server has --api-admin-token-file)\n"}))
		Expect(good("token", "list", "--data-dir", dir)).NotTo(ContainSubstring("ci"))
		good("token", "create", "ci", "--role", "viewer", "--without-admin", "--data-dir", dir)
		Expect(run1("", "token", "create", "board", "--role", "viewer", "--data-dir", dir).code).To(Equal(1), "one of a viewer does not help")
		good("token", "create", "ann", "--role", "admin", "--data-dir", dir)
		good("token", "create", "board", "--role", "viewer", "--data-dir", dir)
	})
})
