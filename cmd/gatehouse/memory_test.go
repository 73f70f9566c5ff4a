package main

import (
	"os"
	"runtime/debug"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("collecting garbage rarely", func() {
	percent := func() int {
		now := debug.SetGCPercent(100)
		debug.SetGCPercent(now)
		return now
	}

	It("restores the previous setting at the end", func() {
		GinkgoT().Setenv("GOGC", "")
		Expect(os.Unsetenv("GOGC")).To(Succeed())
		DeferCleanup(debug.SetGCPercent, debug.SetGCPercent(150))
		end := collectRarely()
		Expect(percent()).To(Equal(400))
		end()
		Expect(percent()).To(Equal(150))
	})

	It("leaves the setting alone if the environment has GOGC", func() {
		GinkgoT().Setenv("GOGC", "120")
		DeferCleanup(debug.SetGCPercent, debug.SetGCPercent(120))
		end := collectRarely()
		Expect(percent()).To(Equal(120))
		end()
		Expect(percent()).To(Equal(120))
	})
})
