package policies_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Rules about the clients of API keys", func() {
	DescribeTable("allow the keys that they name, and no others", func(kind, config string) {
		p := rbac()
		p.config = `{"allow":[{"clients":["partners"],"methods":["GET"]},{"clients":["staff/web"]}],"deny":[{"clients":["partners/mobile"],"paths":[{"segment":"/shop/secret"}]}]}`
		w := newWorld(p)
		givenKeys(w)
		w.attach(onShop)
		Expect(w.send(request{}).status).To(Equal(403), "no filter reads keys")
		for _, set := range []string{"partners", "partners.old", "staff"} {
			w.post("/filter", "Filter_name="+set, "Filter_type="+kind, "Filter_config="+fmt.Sprintf(config, set))
			w.attach("/service/shop/filter/" + set)
			for _, r := range []struct {
				method, path, set, name string
				want                    int
			}{
				{"GET", "/shop", "partners", "web", 200},
				{"POST", "/shop", "partners", "web", 403},
				{"GET", "/shop", "partners", "mobile", 200},
				{"GET", "/shop/secret", "partners", "mobile", 403},
				{"GET", "/shop/secret", "partners", "web", 200},
				{"GET", "/shop", "partners.old", "web", 403},
				{"POST", "/shop", "staff", "web", 200},
				{"GET", "/shop", "staff", "mobile", 403},
			} {
				if r.set == set {
					a := w.send(request{method: r.method, path: r.path, header: []string{withKey(r.set, r.name)}})
					Expect(a.status).To(Equal(r.want), "%+v", r)
				}
			}
			w.detach("/service/shop/filter/" + set)
		}
	},
		Entry("where a key is required", "http_filter_apikey", `{"keys":%q}`),
		Entry("where a key is accepted", "http_filter_anyof", `{"apikey":{"keys":%q},"basicauth":{"users":[{"name":"ann","password":"a password of ann"}]}}`),
	)
})
