package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("key create", func() {
	It("prints the key, and nothing else", func() {
		f := &fake{answers: map[string]reply{
			"POST /keyset/partners/key": {status: 201, body: `{"data":{"insert_core_db_key":{"affected_rows":1},"key":"c2VjcmV0"}}`},
		}}
		f.serve()
		Expect(run1("", "key", "create", "partners/mobile", "--description", "the app")).To(Equal(result{0, "c2VjcmV0\n", ""}))
		Expect(f.bodies).To(Equal([]string{"Key_description=the+app&Key_name=mobile"}))
		for _, args := range [][]string{{"partners", "mobile"}, {"key/partners/mobile"}, {"key", "partners/mobile"}, {"keyset/partners/key/mobile"}} {
			Expect(run1("", append([]string{"key", "create"}, args...)...)).To(Equal(result{0, "c2VjcmV0\n", ""}))
		}
		for _, name := range []string{"mobile", "/mobile", "partners/", "a/b/c"} {
			Expect(run1("", "key", "create", name)).To(Equal(result{2, "", "gatehouse: \"" + name + "\" does not name a key; write KEYSET/NAME\n"}))
		}
	})

	It("prints the key before it reports what lags", func() {
		f := &fake{answers: map[string]reply{
			"POST /keyset/partners/key?timeout=30s&wait=applied": {status: 202, body: `{"data":{"insert_core_db_key":{"affected_rows":1},"key":"c2VjcmV0","lagging":[{"proxy":"gw","reason":"Waiting","message":"not yet"}]}}`},
		}}
		f.serve()
		r := run1("", "key", "create", "partners/mobile", "--wait")
		Expect(r.code).To(Equal(3), r.stderr)
		Expect(r.stdout).To(Equal("c2VjcmV0\n"))
		Expect(r.stderr).To(ContainSubstring("proxy gw: not yet (Waiting)"))
	})
})
