package rest_test

import (
	"context"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
)

var _ = Describe("Revisions", func() {
	rolledBack := func(rows string) string {
		return `{"data":{"rollback_core_db_revision":{"affected_rows":` + rows + `}}}`
	}
	rows := func(numbers ...int) string {
		requests := []string{"", "POST /service", "PATCH /service/a", "DELETE /service/a"}
		var list []string
		for _, n := range numbers {
			list = append(list, `{"revision":`+strconv.Itoa(n)+`,"at":"`+timestamp+`","actor":"api","request":"`+requests[n]+`","changes":1}`)
		}
		return `{"data":{"core_db_revision":[` + strings.Join(list, ",") + `]}}`
	}

	It("are listed, the newest first, in pages", func() {
		a := startAPI()
		a.get("/revision").expectJSON(200, rows())
		a.given("/service", "Service_Name=a&fqdn=a.example.com")
		a.patch("/service/a", "fqdn=b.example.com")
		a.delete("/service/a")
		a.get("/revision").expectJSON(200, rows(3, 2, 1))
		got := a.get("/revision?limit=2")
		got.expectJSON(200, rows(3, 2))
		next := got.header.Get("Link")
		last := a.get(next[1:strings.Index(next, ">")])
		last.expectJSON(200, rows(1))
		Expect(last.header).NotTo(HaveKey("Link"))
		a.get("/revision?name=x").expectProblem(400, invalid("/revision", "name", "unknown query parameter; known parameters are limit, after, object, by, kind, since"))
		a.get("/revision?after=x").expectProblem(400, invalid("/revision", "after", `\"x\" is not a cursor of this list; use the cursor of a Link header`))
	})

	It("say why they were made", func() {
		a := startAPI()
		a.given("/service?message=for+the+sale", "Service_Name=a&fqdn=a.example.com")
		Expect(a.get("/revision").body).To(ContainSubstring(`"request":"POST /service","message":"for the sale","changes":1}`))
		Expect(a.get("/revision/1").body).To(ContainSubstring(`"request":"POST /service","message":"for the sale","changes":[`))
		Expect(a.log.String()).To(MatchRegexp(`msg=write actor=api .* path=/service .* message="for the sale"`))
		Expect(a.patch("/service/a?message="+strings.Repeat("%C3%A4", 500), "tags=x").status).To(Equal(200))
		Expect(a.get("/revision?limit=1").body).To(ContainSubstring(`"message":"` + strings.Repeat("ä", 500) + `"`))
		Expect(a.patch("/service/a", "tags=y").status).To(Equal(200))
		Expect(a.get("/revision?limit=1").body).NotTo(ContainSubstring("message"))
		for message, want := range map[string]string{
			strings.Repeat("a", 501): "has more than 500 characters",
			"a%0Ab":                  "contains a control character, such as a line break; write one line",
			"a%1B[2J":                "contains a control character, such as a line break; write one line",
			"a%FFb":                  "contains text that is not valid UTF-8",
		} {
			a.patch("/service/a?message="+message, "tags=z").expectProblem(400, invalid("/service/a", "message", want))
		}
		Expect(a.get("/revision?limit=1").body).To(ContainSubstring(`"revision":3,`))
	})

	It("are listed for one object, with its parts and what is attached to it", func() {
		a := startAPI()
		a.given("/service", "Service_Name=a&fqdn=a.example.com", "/service", "Service_Name=a.b&fqdn=b.example.com",
			"/service/a/route", "Route_Name=r&Route_prefix=/", "/service/a/route", "Route_Name=r2&Route_prefix=/2",
			"/upstream", "Upstream_name=u&Upstream_ip=10.0.0.1&Upstream_port=1", "/service/a/route/r/upstream/u", "")
		a.delete("/service/a/route/r2")
		numbers := func(path string) (list []string) {
			for _, part := range strings.Split(a.get(path).body, `"revision":`)[1:] {
				number, _, _ := strings.Cut(part, ",")
				list = append(list, number)
			}
			return list
		}
		Expect(numbers("/revision?object=/service/a")).To(Equal([]string{"7", "6", "4", "3", "1"}))
		Expect(numbers("/revision?object=/service/a&limit=2")).To(Equal([]string{"7", "6"}))
		Expect(numbers("/revision?object=/service/a/route/r")).To(Equal([]string{"6", "3"}))
		Expect(numbers("/revision?object=/service/a/route/r2")).To(Equal([]string{"7", "4"}))
		Expect(numbers("/revision?object=/upstream/u")).To(Equal([]string{"5"}))
		Expect(numbers("/revision?object=/upstream/none")).To(BeEmpty())
		Expect(numbers("/revision?kind=upstream")).To(Equal([]string{"5"}))
		Expect(numbers("/revision?kind=route&object=/service/a&limit=1")).To(HaveLen(1))
		Expect(numbers("/revision?by=nobody")).To(BeEmpty())
		Expect(numbers("/revision?by=api&kind=upstream&since=2026-11-21")).To(Equal([]string{"5"}))
		Expect(numbers("/revision?since=24h&kind=upstream")).To(BeEmpty(), "the clock of the store is in the past")
		for _, since := range []string{"x", "-1h", "99999999d", "2026-13-01"} {
			a.get("/revision?since="+since+"&kind=x").expectProblem(400, invalid("/revision", "kind", `\"x\" is not a kind of object or link, such as service or route_upstream`,
				"since", `\"`+since+`\" is not a date such as 2026-12-24, a time such as 2026-12-24T00:00:00Z, or how long ago, such as 24h or 7d`))
		}
		for _, path := range []string{"upstream", "/upstream", "/upstream/", "/elephant/x", "/upstream/a/route/b", "/upstream/a/b/c/d/e/f/g/h"} {
			a.get("/revision?object="+path).expectProblem(400, invalid("/revision", "object", "must be the path of an object, such as /upstream/blue or /service/shop/route/root"))
		}
	})

	It("show what they changed", func() {
		a := startAPI()
		a.given("/service", "Service_Name=a&fqdn=a.example.com")
		a.patch("/service/a", "fqdn=b.example.com&tags=x")
		a.delete("/service/a")
		for n, change := range map[string]string{
			`1,"at":"` + timestamp + `","actor":"api","request":"POST /service"`: `"action":"create","path":"/service/a","kind":"service",` +
				`"fields":[{"field":"service_name","after":"a"},{"field":"fqdn","after":"a.example.com"},{"field":"https","after":"both","default":true},{"field":"hsts_seconds","after":0,"default":true},{"field":"hsts_subdomains","after":false,"default":true},{"field":"client_validation_cacertificate","after":"","default":true},{"field":"certificate","after":"","default":true},{"field":"public","after":false,"default":true},{"field":"mode","after":"http","default":true},{"field":"port","after":0,"default":true},{"field":"exempt_filters","after":[],"default":true},{"field":"tags","after":[],"default":true}]`,
			`2,"at":"` + timestamp + `","actor":"api","request":"PATCH /service/a"`: `"action":"update","path":"/service/a","kind":"service",` +
				`"fields":[{"field":"fqdn","before":"a.example.com","after":"b.example.com"},{"field":"tags","before":[],"after":["x"]}]`,
			`3,"at":"` + timestamp + `","actor":"api","request":"DELETE /service/a"`: `"action":"delete","path":"/service/a","kind":"service",` +
				`"fields":[{"field":"service_name","before":"a"},{"field":"fqdn","before":"b.example.com"},{"field":"https","before":"both","default":true},{"field":"hsts_seconds","before":0,"default":true},{"field":"hsts_subdomains","before":false,"default":true},{"field":"client_validation_cacertificate","before":"","default":true},{"field":"certificate","before":"","default":true},{"field":"public","before":false,"default":true},{"field":"mode","before":"http","default":true},{"field":"port","before":0,"default":true},{"field":"exempt_filters","before":[],"default":true},{"field":"tags","before":["x"]}]`,
		} {
			a.get("/revision/"+n[:1]).expectJSON(200, `{"data":{"core_db_revision":[{"revision":`+n+`,"changes":[{`+change+`}]}]}}`)
		}
	})

	It("can be restored as a new one, with everything that was deleted since", func() {
		a := startAPI()
		a.given(filters()...)
		a.given("/service/shop/route/root/filter/limit", "", "/service/shop/filter/login", "", "/service/shop/secret/hmac", "") // 12
		was, dump := a.everyList(), a.get("/proxy/dump").body
		a.given("/service", "Service_Name=later&fqdn=later.example.com", "/service/later/route", "Route_Name=r&Route_prefix=/")
		a.put("/upstream/blue", "Upstream_ip=10.9.9.9&Upstream_port=9")
		for _, path := range []string{"/proxy/gw?force=true", "/service/shop", "/upstream/blue", "/filter/limit", "/filter/login", "/secret/hmac"} {
			Expect(a.delete(path).status).To(Equal(200), path)
		}
		got := a.post("/revision/12/rollback", "")
		got.expectWrite(200, rolledBack("14"), "22")
		Expect(a.everyList()).To(Equal(was))
		Expect(a.get("/proxy/dump").body).To(Equal(dump))
		a.post("/revision/12/rollback", "").expectWrite(200, rolledBack("0"), "22")
		a.post("/revision/22/rollback", "").expectWrite(200, rolledBack("0"), "22")
		Expect(a.get("/revision?limit=1").body).To(ContainSubstring(`"request":"POST /revision/12/rollback","changes":14`))
		// And forth again.
		Expect(a.post("/revision/21/rollback", "").status).To(Equal(200))
		Expect(a.get("/service").body).To(ContainSubstring(`"service_name":"later"`))
		Expect(a.get("/upstream").body).To(HaveSuffix(":[]}}"))
	})

	It("restore a deleted object even if another one has its name now", func() {
		a := startAPI()
		a.given("/service", "Service_Name=a&fqdn=a.example.com", "/service", "Service_Name=b&fqdn=b.example.com")
		was := a.get("/service").body
		a.delete("/service/a")
		a.given("/service", "Service_Name=a&fqdn=other.example.com")
		a.post("/revision/2/rollback", "").expectWrite(200, rolledBack("2"), "5")
		Expect(a.get("/service").body).To(Equal(was))
	})

	It("restore a secret", func() {
		a, p := startAPI(), newPair("shop.example.com")
		contentType, body := multipartOf("Secret_name", "shop", "@Secret_cert", p.cert, "@Secret_key", p.key)
		Expect(a.do("POST", "/secret", contentType, strings.NewReader(body)).status).To(Equal(201))
		a.delete("/secret/shop")
		a.post("/revision/1/rollback", "").expectWrite(200, rolledBack("1"), "3")
		a.get("/secret/shop").expectJSON(200, p.json(""))
		// The key is there: that of another certificate does not fit.
		contentType, body = multipartOf("@Secret_cert", newPair("x").cert)
		Expect(a.do("POST", "/secret/shop/cert", contentType, strings.NewReader(body)).status).To(Equal(400))
	})

	DescribeTable("that never existed are answered with 404", func(n, detail string) {
		a := startAPI()
		a.given("/service", "Service_Name=a&fqdn=a.example.com")
		a.get("/revision/"+n).expectProblem(404, unknown("/revision/"+n, detail))
		a.post("/revision/"+n+"/rollback", "").expectProblem(404, unknown("/revision/"+n+"/rollback", detail))
	},
		Entry(nil, "2", "revision 2 does not exist; the newest is 1"),
		Entry(nil, "0", `revision \"0\" does not exist; a revision is a number, 1 or higher`),
		Entry(nil, "-1", `revision \"-1\" does not exist; a revision is a number, 1 or higher`),
		Entry(nil, "x", `revision \"x\" does not exist; a revision is a number, 1 or higher`),
		Entry(nil, "99999999999999999999", `revision \"99999999999999999999\" does not exist; a revision is a number, 1 or higher`),
	)

	It("that are no longer in the history are answered with 410", func(ctx SpecContext) {
		a := startAPI()
		a.given("/service", "Service_Name=a&fqdn=a.example.com")
		a.patch("/service/a", "fqdn=b.example.com")
		a.patch("/service/a", "fqdn=c.example.com")
		a.compact(ctx)
		gone := func(path string) string {
			return `{"type":"urn:gatehouse:problem:compacted","title":"The history does not go back that far","status":410,` +
				`"detail":"the history no longer reaches back to revision 1; GET /revision lists what is kept; --revision-keep-age and --revision-keep-entries say how long",` +
				`"instance":"` + path + `","code":"compacted"}`
		}
		a.get("/revision/1").expectProblem(410, gone("/revision/1"))
		a.post("/revision/1/rollback", "").expectProblem(410, gone("/revision/1/rollback"))
		Expect(a.get("/revision").body).To(MatchRegexp(`^{"data":{"core_db_revision":\[{"revision":3,[^{]*]}}$`))
		Expect(a.get("/service/a").body).To(ContainSubstring("c.example.com"))
	})

	It("have the schema word", func() {
		a := startAPI(func(o *rest.Options) { o.SchemaWord = "acme" })
		a.get("/revision").expectJSON(200, `{"data":{"acme_revision":[]}}`)
	})
})

// compact leaves only the newest revision in the change log.
func (a *api) compact(ctx context.Context) {
	GinkgoHelper()
	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: "sqlite://" + a.file, Sealer: sealer, KeepEntries: 1})
	Expect(err).NotTo(HaveOccurred())
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- db.Run(ctx) }()
	Eventually(func() string { return a.get("/revision").body }).WithTimeout(10 * time.Second).ShouldNot(ContainSubstring(`"revision":1,`))
	cancel()
	Eventually(done).WithTimeout(10 * time.Second).Should(Receive(BeNil()))
	Expect(db.Close()).To(Succeed())
}
