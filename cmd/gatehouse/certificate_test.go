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

	It("renew asks for a new one", func() {
		serving("POST /certificate/a.test/renew", reply{200, `{"data":{"core_db_certificate":[` + good + `]}}`, nil})
		got := run1("", "certificate", "renew", "a.test", "-o", "table")
		Expect(got.code).To(Equal(0), got.stderr)
		Expect(got.stdout).To(ContainSubstring("a.test"))
	})
})
