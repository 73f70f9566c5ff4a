package rest_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

var _ = Describe("A configuration that comes from elsewhere", func() {
	elsewhere := func(o *rest.Options) {
		o.Elsewhere = func(k model.Key) string { return "edit " + string(k.Kind) + " <" + k.Name() + ">" }
	}

	DescribeTable("cannot be changed by calls", func(method, path, allow, about string) {
		a := startAPI()
		a.given(everything()...)
		before := a.get("/config").body
		b := serve("sqlite://"+a.file, elsewhere)
		got := b.do(method, path, form, nil)
		got.expectProblem(405, `{"type":"urn:gatehouse:problem:configured_by_kubernetes","title":"The configuration comes from Kubernetes","status":405,`+
			`"detail":"edit `+about+`","instance":"`+path+`","code":"configured_by_kubernetes"}`)
		Expect(got.header["Allow"]).To(Equal([]string{allow}))
		Expect(b.get("/config").body).To(Equal(before))
	},
		Entry("a new object", http.MethodPost, "/upstream", "GET, HEAD", "upstream <>"),
		Entry("an object in place of another", http.MethodPut, "/upstream/blue", "GET, HEAD", "upstream <blue>"),
		Entry("a field", http.MethodPatch, "/service/shop", "GET, HEAD", "service <shop>"),
		Entry("a route", http.MethodDelete, "/service/shop/route/root", "GET, HEAD", "service <shop>"),
		Entry("a link", http.MethodPost, "/service/shop/route/root/upstream/blue", "GET, HEAD", "service <shop>"),
		Entry("an upload", http.MethodPost, "/secret/key/cert", "", "secret <key>"),
		Entry("a copy", http.MethodPost, "/service/copy/shop/store", "", "service <shop>"),
		Entry("a document", http.MethodPut, "/config", "GET, HEAD", "config <>"),
		Entry("a rollback", http.MethodPost, "/revision/1/rollback", "", "revision <>"),
	)

	It("refers to where tokens come from", func() {
		a := startAPI(elsewhere)
		Expect(a.do(http.MethodPost, "/token", form, nil).body).To(ContainSubstring(`"detail":"edit token <>"`))
		Expect(a.do(http.MethodDelete, "/proxy/gw/token/ci", form, nil).body).To(ContainSubstring(`"detail":"edit token <>"`))
	})

	It("can still be read, and tried in a dry run", func() {
		a := startAPI()
		a.given(everything()...)
		b := serve("sqlite://"+a.file, elsewhere)
		Expect(b.get("/service/dump/shop").status).To(Equal(200))
		Expect(b.do(http.MethodDelete, "/service/shop/route/root?dry_run=true", "", nil).status).To(Equal(200))
		Expect(b.get("/service/shop/route/root").status).To(Equal(200))
		Expect(b.do(http.MethodPost, "/nowhere", form, nil).status).To(Equal(404))
		Expect(b.do(http.MethodPost, "/health", form, nil).body).To(ContainSubstring(`"code":"method_not_allowed"`))
	})
})

var _ = Describe("GET /ready", func() {
	It("reports what does not work while the process serves", func() {
		a := startAPI(func(o *rest.Options) { o.Degraded = func() []string { return []string{"Secrets cannot be read"} } })
		a.get("/ready").expectJSON(200, `{"status":"ok","degraded":["Secrets cannot be read"]}`)
	})
})
