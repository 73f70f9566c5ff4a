package main

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("--wait", func() {
	const lagging = `"lagging":[{"proxy":"gw","envoy":"10.0.0.9:4000","reason":"refused","message":"bad\u001bport"},{"proxy":"edge","reason":"not_connected","message":"no Envoy"}]`
	late := "gatehouse: the change is stored, but was not live everywhere when the wait ended; gatehouse status shows what becomes of it\n" +
		"  proxy gw, Envoy at 10.0.0.9:4000: bad\\u001bport (refused)\n  proxy edge: no Envoy (not_connected)\n"

	DescribeTable("reports whether a change is live", func(call, words string, rows int, status int, args ...string) {
		body := `{"data":{"x_core_db_y":{"affected_rows":` + string(rune('0'+rows)) + `}`
		f := serving(call+"?timeout=5s&wait=applied", reply{status, body + `}}`, map[string]string{"Gatehouse-Revision": "7"}})
		args = append(args, "--wait", "--wait-timeout", "5s")
		Expect(good(append(args, "-o", "table")...)).To(Equal(words + " (revision 7)\n"))

		f.answers[call+"?timeout=5s&wait=applied"] = reply{http.StatusAccepted, body + `,` + lagging + `}}`, map[string]string{"Gatehouse-Revision": "7"}}
		Expect(run1("", append(args, "-o", "table")...)).To(Equal(result{3, words + " (revision 7)\n", late}))
		r := run1("", args...)
		Expect(r.stdout).To(MatchJSON(`{"x_core_db_y":{"affected_rows":` + string(rune('0'+rows)) + `},"revision":7,` + lagging + `}`))
		Expect(r.stderr).To(Equal(late))
		Expect(r.code).To(Equal(3))
	},
		Entry(nil, "DELETE /upstream/blue", "upstream blue is deleted", 1, 200, "delete", "upstream", "blue"),
		Entry(nil, "POST /proxy/gw/service/shop", "service/shop is attached to proxy/gw", 1, 201, "attach", "service/shop", "proxy/gw"),
		Entry(nil, "POST /proxy/gw/service/shop", "service/shop was attached to proxy/gw already", 0, 200, "attach", "service/shop", "proxy/gw"),
		Entry(nil, "DELETE /proxy/gw/service/shop", "service/shop is detached from proxy/gw", 1, 200, "detach", "service/shop", "proxy/gw"),
		Entry(nil, "POST /revision/7/rollback", "the configuration is back at revision 7", 3, 200, "rollback", "7"),
	)

	It("works with a document", func() {
		const call = "PUT /config?timeout=30s&wait=applied"
		const counts = `{"data":{"created":1,"updated":0,"deleted":0,"unchanged":0,"changes":[],"warnings":[]`
		revision := map[string]string{"Gatehouse-Revision": "7"}
		f := serving(call, reply{200, counts + `}}`, revision})
		done := "1 created, 0 updated, 0 deleted, 0 unchanged (revision 7)\n"
		Expect(run1("version: 1\n", "apply", "-f", "-", "--wait", "-o", "table")).To(Equal(result{0, done, ""}))
		f.answers[call] = reply{202, counts + `,` + lagging + `}}`, revision}
		Expect(run1("version: 1\n", "apply", "-f", "-", "--wait", "-o", "table")).To(Equal(result{3, done, late}))
	})

	DescribeTable("is refused", func(want string, args ...string) {
		f := &fake{}
		f.serve()
		r := run1("version: 1\n", args...)
		Expect(r.code).To(Equal(2))
		Expect(r.stderr).To(Equal("gatehouse: " + want + "\n"))
		Expect(f.calls).To(BeEmpty())
	},
		Entry(nil, "--wait-timeout requires --wait", "delete", "upstream", "blue", "--wait-timeout", "5s"),
		Entry(nil, "--wait-timeout: 0s is not above 0", "apply", "-f", "-", "--wait", "--wait-timeout", "0s"),
		Entry(nil, "if any flags in the group [wait dry-run] are set none of the others can be; [dry-run wait] were all set", "rollback", "7", "--wait", "--dry-run"),
	)
})
