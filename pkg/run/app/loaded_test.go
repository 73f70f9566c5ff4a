package app_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
)

var _ = Describe("Env.Loaded", func() {
	It("is called once, when the first configuration is published", func() {
		loaded, done := make(chan struct{}), make(chan error, 1)
		r := &running{log: gbytes.NewBuffer(), done: done}
		env := environment(r.log)
		env.Loaded = func() { close(loaded) }
		ctx, cancel := context.WithCancel(context.Background())
		go func() { done <- app.Serve(ctx, settings(GinkgoT().TempDir(), nil), env) }()
		DeferCleanup(func() {
			cancel()
			Eventually(done).Should(Receive(BeNil()))
		})
		Eventually(loaded).Should(BeClosed())
		code, answer := call("GET", "http://127.0.0.1:"+r.port()+"/ready", "", "")
		Expect(code).To(Equal(200), answer)
		code, answer = call("POST", "http://127.0.0.1:"+r.port()+"/proxy", formType, "Name=gw")
		Expect(code).To(Equal(201), answer)
	})
})
