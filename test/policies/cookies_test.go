package policies_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A cookie that carries a token", func() {
	It("is taken away from the backend, with all that separated it from others", func() {
		p := jwt()
		p.config = `{"issuer":"https://issuer.test","jwks":` + tokenIssuer().JWKS() + `,"from":{"cookie":"session"}}`
		w := newWorld(p)
		w.attach(onShop)
		session := "session=" + tokenIssuer().Token(object{"sub": "ann"})
		for sent, want := range map[string][]string{
			session:                     nil,
			session + "; " + session:    nil,
			session + ";":               nil,
			session + "; b=2":           {"b=2"},
			"a=1; " + session:           {"a=1"},
			"a=1;" + session:            {"a=1"},
			"a=1; " + session + "; b=2": {"a=1; b=2"},
		} {
			a := w.send(request{header: []string{"Cookie: " + sent}})
			Expect(a.status).To(Equal(200), a.body)
			Expect(a.seen["Cookie"]).To(Equal(want), sent)
		}
	})
})
