package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// makeProxyToken makes a token at a path of tokens. who is the field of the answer
// that says whose it is.
func (a *api) makeProxyToken(as, path, name, who string) string {
	GinkgoHelper()
	got := a.send("POST", path, as, "Token_name="+name)
	Expect(got.status).To(Equal(201), got.body)
	var made struct{ Token string }
	Expect(json.Unmarshal([]byte(got.body), &made)).To(Succeed())
	Expect(got.body).To(Equal(`{"name":"` + name + `",` + who + `"token":"` + made.Token + `"}`))
	Expect(made.Token).To(MatchRegexp(`^ghx_[A-Za-z0-9_-]{43}$`))
	Expect(got.header.Get("Cache-Control")).To(Equal("no-store"))
	Expect(got.header.Get("Location")).To(Equal(path + "/" + name))
	return made.Token
}

// shown is how a token of the xDS port reads.
func shown(name, who string) string {
	return `{"name":"` + name + `",` + who + `"create_ts":"` + timestamp + `","last_used_ts":null}`
}

var _ = Describe("A token of the xDS port", func() {
	whose := []TableEntry{
		Entry("of a proxy", "/proxy/edge/token", `"proxy":"edge",`, `of proxy \"edge\"`),
		Entry("of the rate-limit engine", "/ratelimit/token", "", `of the rate-limit engine`),
	}

	DescribeTable("is created, read and revoked", func(path, who, of string) {
		var changes atomic.Int64
		a := startAPIThatFails(guarded, fixedClock, func(o *rest.Options) { o.ProxyTokensChanged = func(context.Context) { changes.Add(1) } })
		a.send("POST", "/proxy", adminToken, "Name=edge")
		revision := a.revision()
		a.send("GET", path, adminToken, "").expectJSON(200, `{"data":{"core_db_token":[]}}`)
		text := a.makeProxyToken(adminToken, path, "b", who)
		Expect(a.makeProxyToken(adminToken, path, "A", who)).NotTo(Equal(text))
		Expect(changes.Load()).To(Equal(int64(2)))
		a.send("GET", path, adminToken, "").expectJSON(200, `{"data":{"core_db_token":[`+shown("A", who)+`,`+shown("b", who)+`]}}`)
		a.send("GET", path+"/b", adminToken, "").expectJSON(200, `{"data":{"core_db_token":[`+shown("b", who)+`]}}`)
		a.send("POST", path, adminToken, "Token_name=b").expectProblem(409, refused(409, "already_exists",
			"The name is taken", `token \"b\" `+of+` already exists; choose another name, or delete the existing one first`, path))
		a.send("DELETE", path+"/b", adminToken, "").expectJSON(200, `{"data":{"delete_core_db_token":{"affected_rows":1}}}`)
		Expect(changes.Load()).To(Equal(int64(3)))
		for _, method := range []string{"GET", "DELETE"} {
			a.send(method, path+"/b", adminToken, "").expectProblem(404, refused(404, "unknown_name", "A name does not exist",
				`token \"b\" `+of+` does not exist`, path+"/b"))
		}
		Expect(changes.Load()).To(Equal(int64(3)))
		Expect(a.revision()).To(Equal(revision), "they are no part of the configuration")
	}, whose)

	DescribeTable("can only be created by admins, gives no access to the API, and is shown once", func(path, who, _ string) {
		a := startAPIThatFails(guarded)
		a.send("POST", "/proxy", adminToken, "Name=edge")
		viewer := a.makeToken(adminToken, "ci", "viewer")
		text := a.makeProxyToken(adminToken, path, "b", who)
		list := a.send("GET", path, viewer, "")
		Expect(list.status).To(Equal(200))
		Expect(a.send("POST", path, viewer, "Token_name=c").status).To(Equal(403))
		Expect(a.send("DELETE", path+"/b", viewer, "").status).To(Equal(403))
		a.send("GET", "/proxy", text, "").expectProblem(401, refused(401, "unauthorized", needs, wrong, "/proxy"))
		Expect(a.log.String()).To(MatchRegexp(`level=INFO msg=write actor=admin role=admin method=POST path=` + path + ` status=201 rev="" took=`))
		for _, place := range []string{a.log.String(), list.body} {
			Expect(place).NotTo(Or(ContainSubstring(text), ContainSubstring(text[4:]), ContainSubstring(fmt.Sprintf("%x", store.HashToken(text)))))
		}
	}, whose)

	DescribeTable("has one field", func(fields string, errs ...string) {
		a := startAPI(guarded)
		a.send("POST", "/proxy", adminToken, "Name=edge")
		for _, path := range []string{"/proxy/edge/token", "/ratelimit/token"} {
			a.send("POST", path, adminToken, fields).expectProblem(400, invalid(path, errs...))
		}
	},
		Entry(nil, "", "Token_name", "is required"),
		Entry(nil, "Token_name=a%2Fb&Token_role=admin", "Token_name", `\"a/b\" may contain only the characters A-Z a-z 0-9 . _ -`,
			"Token_role", "unknown field; this call takes Token_name"),
		Entry(nil, "Token_name=a&token_name=b", "Token_name", "is sent more than once"),
	)

	It("requires its proxy to exist when it is created, and outlives it", func() {
		a := startAPIThatFails(guarded, fixedClock)
		for _, call := range [][3]string{{"GET", "/proxy/edge/token", ""}, {"GET", "/proxy/edge/token/b", ""}, {"DELETE", "/proxy/edge/token/b", ""}, {"POST", "/proxy/edge/token", "Token_name=b"}} {
			a.send(call[0], call[1], adminToken, call[2]).expectProblem(404,
				refused(404, "unknown_name", "A name does not exist", `proxy \"edge\" does not exist`, call[1]))
		}
		a.send("POST", "/proxy", adminToken, "Name=edge")
		a.makeProxyToken(adminToken, "/proxy/edge/token", "b", `"proxy":"edge",`)
		Expect(a.send("DELETE", "/proxy/edge", adminToken, "").status).To(Equal(200))
		a.send("GET", "/proxy/edge/token", adminToken, "").expectJSON(200, `{"data":{"core_db_token":[`+shown("b", `"proxy":"edge",`)+`]}}`)
		Expect(a.send("POST", "/proxy/edge/token", adminToken, "Token_name=c").status).To(Equal(404))
		a.send("GET", "/proxy/edge/token/c", adminToken, "").expectProblem(404,
			refused(404, "unknown_name", "A name does not exist", `token \"c\" of proxy \"edge\" does not exist`, "/proxy/edge/token/c"))
		a.send("DELETE", "/proxy/edge/token/b", adminToken, "").expectJSON(200, `{"data":{"delete_core_db_token":{"affected_rows":1}}}`)
		Expect(a.send("GET", "/proxy/edge/token", adminToken, "").status).To(Equal(404))
	})

	It("can be created while the API is open", func() {
		a := startAPI(open)
		a.given("/proxy", "Name=edge")
		a.makeProxyToken("", "/proxy/edge/token", "b", `"proxy":"edge",`)
		Expect(a.send("GET", "/proxy", "", "").status).To(Equal(200), "it does not close the API")
	})
})
