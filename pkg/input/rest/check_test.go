package rest_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// checked compiles writes before they are stored, as the program does.
func checked(o *rest.Options) { o.Check = precheck.Rules{}.Check }

var _ = Describe("A configuration that cannot work", func() {
	const verified = "Upstream_ip=192.0.2.1&Upstream_port=443&Upstream_protocol=tls&Upstream_validation_cacertificate=ca"
	const hint = `; upload certificates of authorities to the secret`
	why := func(upstream string) string {
		return "/upstream/" + upstream + ` cannot become a working configuration: Upstream_validation_cacertificate of /upstream/` + upstream +
			` names secret \"ca\", which has no certificate` + hint
	}
	field := func(name, message string) string {
		return `,"errors":[{"field":"` + name + `","message":"` + message + `"}]}`
	}
	problem := func(path, detail, field string) string {
		return strings.TrimSuffix(cannotWork(path, detail), "}") + field
	}

	DescribeTable("is refused with the reason, also in a dry run", func(method, path, contentType, body, detail string) {
		a := startAPI(checked)
		a.given(everything()...)
		a.given("/secret", "Secret_name=ca")
		before := a.everyList()
		for _, query := range []string{"?dry_run=true", "?dry_run=false", ""} {
			a.do(method, path+query, contentType, strings.NewReader(body)).expectProblem(422, problem(path, detail, field("Upstream_validation_cacertificate", `names secret \"ca\", which has no certificate`)))
			a.expectNothingStored(7, before)
		}
	},
		Entry(nil, "POST", "/upstream", form, "Upstream_name=t&"+verified, why("t")),
		Entry(nil, "PUT", "/upstream/t", form, verified, why("t")),
		Entry(nil, "PUT", "/upstream/blue", form, verified, why("blue")),
		Entry(nil, "PATCH", "/upstream/blue", form, "Upstream_protocol=tls&Upstream_validation_cacertificate=ca", why("blue")),
		Entry(nil, "PUT", "/config", "application/yaml", "version: 1\nupstreams:\n- upstream_name: t\n  upstream_ip: 192.0.2.1\n  upstream_port: 443\n"+
			"  upstream_protocol: tls\n  upstream_validation_cacertificate: ca\n", why("t")),
	)

	It("cannot result from a change of what it depends on", func() {
		a := startAPI(checked)
		a.given(everything()...)
		a.given("/secret", url.Values{"Secret_name": {"ca"}, "Secret_cert": {authority("ca").PEM}}.Encode(), "/upstream", "Upstream_name=t&"+verified) // 8
		for _, query := range []string{"?dry_run=true", ""} {
			empty := `Upstream_validation_cacertificate of /upstream/t names secret \"ca\", which has no certificate`
			refused := problem("/secret/ca", "/secret/ca cannot become a working configuration: "+empty+hint, field("Secret_cert", empty))
			a.patch("/secret/ca"+query, "Secret_cert=").expectProblem(422, refused)
			a.put("/secret/ca"+query, "").expectProblem(422, refused)
		}
		Expect(a.revision()).To(Equal(int64(8)))
		By("others may change")
		Expect(a.patch("/secret/ca", "tags=x").status).To(Equal(200))
		Expect(a.do(http.MethodPost, "/secret/ca/cert", form, strings.NewReader(url.Values{"Secret_cert": {authority("new").PEM}}.Encode())).status).To(Equal(200))
	})

	It("may be deleted, and a working one is stored", func() {
		// As it was before somebody checked.
		a := startAPI()
		a.given(everything()...)
		a.given("/secret", "Secret_name=ca", "/upstream", "Upstream_name=t&"+verified, "/service/shop/route/root/upstream/t", "")
		b := serve("sqlite://"+a.file, checked)
		Expect(b.patch("/service/shop", "tags=x").status).To(Equal(200))
		b.patch("/service/shop/route/root", "tags=x").expectProblem(422, cannotWork("/service/shop/route/root",
			"/service/shop/route/root cannot become a working configuration: the route has upstream t, whose certificate authority has no certificate, and answers 503"))
		Expect(b.delete("/service/shop/route/root/upstream/t").status).To(Equal(200))
		Expect(b.delete("/upstream/t").status).To(Equal(200))
		Expect(b.patch("/service/shop/route/root", "tags=x").status).To(Equal(200))
	})

	It("is not stored if a filter causes it", func() {
		a := startAPI(checked)
		a.given(everything()...)
		// As another version stored it, which took more.
		_, err := a.store.Write(context.Background(), store.Origin{Actor: "test"}, func(w store.Writer) error {
			return w.Insert(&model.Filter{Name: "odd", Type: model.FilterRateLimit, Config: `{"descriptors":[{"what":"ever"}]}`})
		})
		Expect(err).NotTo(HaveOccurred())
		revision := a.revision()
		const why = "/service/shop/route/root cannot become a working configuration: the route has filter odd, which cannot be read (Filter_config"
		for _, query := range []string{"?dry_run=true", ""} {
			got := a.post("/service/shop/route/root/filter/odd"+query, "")
			Expect(got.status).To(Equal(422))
			Expect(got.body).To(ContainSubstring(why))
		}
		Expect(a.revision()).To(Equal(revision))
	})
})
