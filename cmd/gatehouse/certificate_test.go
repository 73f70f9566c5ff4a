package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("certificate", func() {
	const good = `{"host":"a.test","service":"a","state":"issued","not_after":"2027-02-20T08:00:00Z","next":"2027-01-21T08:00:00Z"}`
	const bad = `{"host":"b.test","service":"b","state":"failing","reason":"dns: \u001b[2J","advice":"check A"}`

	It("list shows the state of each, and what to do", func() {
		serving("GET /certificate", reply{200, `{"data":{"core_db_certificate":[` + good + `,` + bad + `]}}`, nil})
		got := run1("", "certificate", "list", "-o", "table")
		Expect(got.code).To(Equal(0), got.stderr)
		Expect(got.stdout).To(MatchRegexp(`(?m)^HOST +SERVICE +STATE +ENDS +NEXT +REASON$`))
		Expect(got.stdout).To(MatchRegexp(`(?m)^a\.test +a +issued +2027-02-20T08:00:00Z +2027-01-21T08:00:00Z`))
		Expect(got.stdout).To(MatchRegexp(`(?m)^b\.test +b +failing .*dns: \\u001b\[2J -> check A$`))
		got = run1("", "certificate", "list", "-o", "json")
		Expect(got.stdout).To(MatchJSON(`[` + good + `,` + bad + `]`))
	})

	Describe("test", func() {
		const test = `"host":"*.a.test","service":"a","directory":"https://ca.test/dir","challenge":"dns-01","began":"2026-11-22T08:00:00Z"`
		running := reply{200, `{"data":{"core_db_certificate_test":[{` + test + `,"state":"running"}]}}`, nil}
		const path = "/certificate/%2A.a.test/test"

		ends := func(last reply) {
			f := &fake{answers: map[string]reply{"POST " + path: running, "GET " + path: last}}
			f.serve()
		}

		It("waits for the end, and fails if the test does", func() {
			ends(reply{200, `{"data":{"core_db_certificate_test":[{` + test + `,"state":"failed","reason":"caa: \u001b[2J","advice":"change it"}]}}`, nil})
			got := run1("", "certificate", "test", "*.a.test", "-o", "table")
			Expect(got.code).To(Equal(1))
			Expect(got.stdout).To(MatchRegexp(`(?m)^HOST +\*\.a\.test$`))
			Expect(got.stdout).To(MatchRegexp(`(?m)^REASON +caa: \\u001b\[2J$`))
			Expect(got.stdout).To(MatchRegexp(`(?m)^ADVICE +change it$`))
			Expect(got.stderr).To(ContainSubstring("no certificate could be ordered for *.a.test"))
		})

		It("ends with 0 if it passes", func() {
			ends(reply{200, `{"data":{"core_db_certificate_test":[{` + test + `,"state":"passed","issuer":"R11"}]}}`, nil})
			got := run1("", "certificate", "test", "*.a.test", "-o", "json")
			Expect(got.code).To(Equal(0), got.stderr)
			Expect(got.stdout).To(MatchJSON(`{` + test + `,"state":"passed","issuer":"R11"}`))
		})

		It("does not wait longer than it is told", func() {
			serving("POST "+path, running)
			got := run1("", "certificate", "test", "*.a.test", "--wait", "1ms", "-o", "json")
			Expect(got.code).To(Equal(1))
			Expect(got.stderr).To(ContainSubstring("the test still runs"))
		})
	})

	It("renew asks for a new one", func() {
		serving("POST /certificate/a.test/renew", reply{200, `{"data":{"core_db_certificate":[` + good + `]}}`, nil})
		got := run1("", "certificate", "renew", "a.test", "-o", "table")
		Expect(got.code).To(Equal(0), got.stderr)
		Expect(got.stdout).To(ContainSubstring("a.test"))
	})
})
