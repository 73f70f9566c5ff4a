package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("gatehouse --version", func() {
	It("prints the same as gatehouse version", func() {
		want := good("version")
		Expect(want).To(MatchRegexp(`^gatehouse .*\ncommit .*\ngo1.* linux/.*\nmade for Envoy 1\.39\.3\n$`))
		Expect(good("--version")).To(Equal(want))
		Expect(run1("", "serve", "--version").code).To(Equal(2), "it is not a setting")
	})
})
