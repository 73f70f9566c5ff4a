package rest_test

import (
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func consumerJSON(id, name, groups, credentials string) string {
	return `{"consumer_id":` + id + `,"consumer_name":"` + name + `","consumer_groups":` + groups + `,"consumer_credentials":` + credentials +
		`,"tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}`
}

var _ = Describe("A consumer", func() {
	It("has groups, and credentials that need not exist", func() {
		a := startAPI()
		a.post("/consumer", `Consumer_name=acme&Consumer_groups=gold,beta,gold&Consumer_credentials={"keys":["partners/web"],"users":["staff/a%2Bb@c.d"]}`).
			expectJSON(201, `{"data":{"insert_core_db_consumer":{"affected_rows":1}}}`)
		a.get("/consumer/acme").expectJSON(200, `{"data":{"core_db_consumer":[`+
			consumerJSON("1", "acme", `["beta","gold"]`, `{"keys":["partners/web"],"users":["staff/a+b@c.d"]}`)+`]}}`)
		a.do(http.MethodPut, "/consumer/acme", "application/json", strings.NewReader(`{"Consumer_groups":["gold@shop"],"Consumer_credentials":{"tokens":[{"issuer":"https://i.test","subject":"ünï \"'\\ ]]"},`+
			`{"issuer":"x","claim":"app.id","value":"7"}],"certificates":[{"subject":"CN=a,O=b"},{"uri":"spiffe://a/b"},{"dns":"a.b"}]}}`)).
			expectJSON(200, `{"data":{"update_core_db_consumer":{"affected_rows":1}}}`)
		a.get("/consumer").expectJSON(200, `{"data":{"core_db_consumer":[`+consumerJSON("1", "acme", `["gold@shop"]`,
			`{"tokens":[{"issuer":"https://i.test","subject":"ünï \"'\\ ]]"},{"issuer":"x","claim":"app.id","value":"7"}],`+
				`"certificates":[{"subject":"CN=a,O=b"},{"uri":"spiffe://a/b"},{"dns":"a.b"}]}`)+`]}}`)
		a.delete("/consumer/acme").expectJSON(200, `{"data":{"delete_core_db_consumer":{"affected_rows":1}}}`)
	})

	DescribeTable("is refused with what is wrong", func(body string, errs ...string) {
		got := startAPI().post("/consumer", body)
		Expect(got.status).To(Equal(400), got.body)
		for _, e := range errs {
			Expect(got.body).To(ContainSubstring(e))
		}
	},
		Entry("without a name", "Consumer_groups=gold", `"Consumer_name"`),
		Entry("with a name that is none", "Consumer_name=a'b", `"field":"Consumer_name"`),
		Entry("with groups that are none", "Consumer_name=a&Consumer_groups=a+b", `"field":"Consumer_groups"`),
		Entry("with a group of two teams", "Consumer_name=a&Consumer_groups=a@b@c", `"field":"Consumer_groups"`),
		Entry("with too many groups", "Consumer_name=a&Consumer_groups="+strings.Join(names("g", 17), ","), "has 17 groups; at most 16 are allowed"),
		Entry("with too many credentials", `Consumer_name=a&Consumer_credentials={"keys":["`+strings.Join(names("s/k", 51), `","`)+`"]}`,
			"has 51 credentials; at most 50 are allowed"),
		Entry("with what is no list", `Consumer_name=a&Consumer_credentials={"keys":"a/b"}`, `"field":"Consumer_credentials"`),
		Entry("with an unknown kind of credential", `Consumer_name=a&Consumer_credentials={"key":["a/b"]}`, `unknown field \"key\"`),
		Entry("with every bad credential", `Consumer_name=a&Consumer_credentials={"keys":["a"],"users":["a/b/c"],"tokens":[{"subject":"x"},{"issuer":"i","subject":"x","value":"y"},`+
			`{"issuer":"i\u0001","claim":"a..b","value":"v"}],"certificates":[{"uri":"a","dns":"b"},{}]}`,
			`"Consumer_credentials.keys[0]"`, `"Consumer_credentials.users[0]"`, `"Consumer_credentials.tokens[0].issuer"`, `"Consumer_credentials.tokens[1]"`,
			`"Consumer_credentials.tokens[2].issuer"`, `"Consumer_credentials.tokens[2].claim"`, `"Consumer_credentials.certificates[0]"`,
			`"Consumer_credentials.certificates[1]"`),
		Entry("with a long text", `Consumer_name=a&Consumer_credentials={"certificates":[{"subject":"`+strings.Repeat("x", 501)+`"}]}`, "has 501 bytes; at most 500 are allowed"),
	)

	It("has no credential of another one", func() {
		a := startAPI(checked)
		a.given("/consumer", `Consumer_name=ann&Consumer_credentials={"keys":["s/k","s/l"],"tokens":[{"issuer":"i","subject":"x"}]}`)
		a.given("/consumer", `Consumer_name=ben&Consumer_credentials={"keys":["s/m"],"users":["s/k"]}`)
		for _, credentials := range []string{`{"keys":["s/z","s/k"]}`, `{"tokens":[{"issuer":"i","claim":"sub","value":"x"}]}`} {
			for _, try := range []func() answer{
				func() answer { return a.post("/consumer", "Consumer_name=eve&Consumer_credentials="+credentials) },
				func() answer { return a.patch("/consumer/ben", "Consumer_credentials="+credentials) },
			} {
				got := try()
				Expect(got.status).To(Equal(409), got.body)
				Expect(got.body).To(MatchRegexp("of /consumer/(eve|ben) belongs to /consumer/ann"))
			}
		}
		By("its own, and one that is free again")
		Expect(a.patch("/consumer/ann", `Consumer_credentials={"keys":["s/k"]}`).status).To(Equal(200))
		Expect(a.patch("/consumer/ben", `Consumer_credentials={"keys":["s/l"]}`).status).To(Equal(200))
		Expect(a.delete("/consumer/ann").status).To(Equal(200))
		Expect(a.patch("/consumer/ben", `Consumer_credentials={"keys":["s/l","s/k"]}`).status).To(Equal(200))
		By("in one document")
		got := a.do(http.MethodPut, "/config", "application/json", strings.NewReader(`{"version":1,"consumers":[{"consumer_name":"a","consumer_credentials":{"keys":["t/k"]}},{"consumer_name":"b","consumer_credentials":{"keys":["t/k"]}}]}`))
		Expect(got.status).To(Equal(409), got.body)
		Expect(got.body).To(ContainSubstring("key t/k of /consumer/a belongs to /consumer/b"))
		By("moved in one document, in any order")
		for _, order := range []string{"ben", "aaron", "zoe"} {
			got := a.do(http.MethodPut, "/config", "application/json", strings.NewReader(`{"version":1,"consumers":[{"consumer_name":"`+order+
				`","consumer_credentials":{"keys":["s/k"]}}]}`))
			Expect(got.status).To(Equal(map[bool]int{true: 200, false: 409}[order == "ben"]), got.body)
		}
		for _, to := range []string{"aaron", "zoe", "ben"} {
			document := `{"version":1,"consumers":[`
			for _, name := range []string{"aaron", "ben", "zoe"} {
				keys := ""
				if name == to {
					keys = `"s/k"`
				}
				document += `{"consumer_name":"` + name + `","consumer_credentials":{"keys":[` + keys + `]}},`
			}
			got := a.do(http.MethodPut, "/config", "application/json", strings.NewReader(strings.TrimSuffix(document, ",")+"]}"))
			Expect(got.status).To(Equal(200), got.body)
		}
	})

	It("keeps its credentials when a key is deleted", func() {
		a := startAPI()
		a.given("/keyset", "Keyset_name=s")
		a.given("/keyset/s/key", "Key_name=k")
		a.given("/consumer", `Consumer_name=ann&Consumer_credentials={"keys":["s/k"]}`)
		Expect(a.delete("/keyset/s/key/k").status).To(Equal(200))
		Expect(a.delete("/keyset/s").status).To(Equal(200))
		Expect(a.get("/consumer/ann").body).To(ContainSubstring(`{"keys":["s/k"]}`))
	})
})

func names(prefix string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(prefix, i))
	}
	return list
}
