package app_test

import (
	"fmt"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
)

const validatedShop = `version: 1
upstreams:
- {upstream_name: blue, upstream_ip: 10.0.0.1, upstream_port: 8080}
secrets:
- secret_name: tls
- secret_name: client
services:
- service_name: shop
  fqdn: shop.example.com
  secrets: [tls]
  routes:
  - route_name: root
    route_prefix: /
    upstreams: [blue]
`

var _ = Describe("Validate", func() {
	validate := func(text string) app.Validation {
		GinkgoHelper()
		dir := GinkgoT().TempDir()
		GinkgoT().Setenv("TMPDIR", dir)
		v, err := app.Validate(GinkgoT().Context(), []byte(text), "", false)
		Expect(err).NotTo(HaveOccurred())
		Expect(os.ReadDir(dir)).To(BeEmpty(), "files are left")
		return v
	}

	It("accepts what a server accepts, with references to secrets", func() {
		Expect(validate(validatedShop)).To(Equal(app.Validation{Objects: 5, Assumed: 2}))
	})

	It("takes sealed texts for good, wherever they are", func() {
		v := validate(`version: 1
upstreams:
- {upstream_name: blue, upstream_ip: 10.0.0.1, upstream_port: 8443, upstream_protocol: tls, upstream_client_certificate: client}
secrets:
- {secret_name: client, secret_value: "sealed:v1:AAAA"}
filters:
- filter_name: users
  filter_type: http_filter_basicauth
  filter_config: {users: [{name: ann, password: "sealed:v1:AAAA"}]}
`)
		Expect(v.Errors).To(BeEmpty())
		Expect(v.Assumed).To(Equal(2))
	})

	It("takes what a partial document does not have for good, and checks the rest", func() {
		v, err := app.Validate(GinkgoT().Context(), []byte(`version: 1
upstreams:
- {upstream_name: blue, upstream_ip: 10.0.0.1, upstream_port: 8443, upstream_protocol: tls, upstream_client_certificate: theirs}
filters:
- {filter_name: keys, filter_type: http_filter_apikey, filter_config: {keys: partners}}
services:
- service_name: shop
  fqdn: shop.example.com
  proxies: [gw]
  filters: [keys, login]
  secrets: [tls]
  routes:
  - {route_name: root, route_prefix: /, upstreams: [blue, green]}
  - {route_name: lua, route_prefix: /lua, filters: [script]}
`), "", true)
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Errors).To(BeEmpty())
		Expect(v.Objects).To(Equal(5))
		var missing []string
		for _, w := range v.Warnings {
			missing = append(missing, fmt.Sprint(w.Line, " ", w.Message))
		}
		const good = " is not in the document: taken for good"
		Expect(missing).To(ConsistOf(`3 secret "theirs"`+good, `5 keyset "partners"`+good, `9 proxy "gw"`+good, `10 filter "login"`+good,
			`11 secret "tls"`+good, `13 upstream "green"`+good, `14 filter "script"`+good))

		v, err = app.Validate(GinkgoT().Context(), []byte("version: 1\nproxies: [{name: gw, services: [a, b]}]\n"), "", true)
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Errors).To(BeEmpty())

		v, err = app.Validate(GinkgoT().Context(), []byte("version: 1\nfilters:\n- {filter_name: lua, filter_type: http_filter_lua, filter_config: {script: \"x(\"}}\n"), "", true)
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Errors).To(HaveLen(1))
	})

	DescribeTable("finds all errors with their lines", func(edit func(string) string, want ...app.Finding) {
		Expect(validate(edit(validatedShop)).Errors).To(ConsistOf(want))
	},
		Entry("of fields", func(s string) string {
			return strings.NewReplacer("8080", "70000", "route_prefix: /", "route_prefx: /").Replace(s)
		},
			app.Finding{Line: 3, Field: `upstreams["blue"].upstream_port`, Message: "70000 is not between 1 and 65535"},
			app.Finding{Line: 12, Field: `services["shop"].routes["root"].route_prefix`, Message: "is required"},
			app.Finding{Line: 13, Field: `services["shop"].routes["root"].route_prefx`, Message: "is unknown; did you mean route_prefix?"}),
		Entry("of names that do not exist", func(s string) string {
			return strings.NewReplacer("[blue]", "[red, blue]\n    filters:\n    - f\n    - g").Replace(s)
		},
			app.Finding{Line: 14, Field: `services["shop"].routes["root"].upstreams`, Message: `upstream "red" does not exist`},
			app.Finding{Line: 16, Field: `services["shop"].routes["root"].filters`, Message: `filter "f" does not exist`},
			app.Finding{Line: 17, Field: `services["shop"].routes["root"].filters`, Message: `filter "g" does not exist`}),
		Entry("of what cannot work", func(s string) string {
			return s + `  - {route_name: a, route_prefix: "/a(", route_config: {match: regex}}
filters:
- {filter_name: lua, filter_type: http_filter_lua, filter_config: {script: "x("}}
- {filter_name: lua2, filter_type: http_filter_lua, filter_config: {script: "y("}}
`
		},
			app.Finding{Line: 15, Field: `services["shop"].routes["a"].route_prefix`, Message: "\"/a(\" is not a regular expression in RE2 syntax: missing closing ): `/a(`"}),
		Entry("that only a compiler finds", func(s string) string {
			return s + `filters:
- {filter_name: lua, filter_type: http_filter_lua, filter_config: {script: "x("}}
- {filter_name: lua2, filter_type: http_filter_lua, filter_config: {script: "y("}}
`
		},
			app.Finding{Line: 16, Message: `/filter/lua cannot work: its script ends too early, after "("`},
			app.Finding{Line: 17, Message: `/filter/lua2 cannot work: its script ends too early, after "("`}),
		Entry("of YAML", func(string) string { return "version: 1\n  x: [" },
			app.Finding{Line: 2, Message: "the document cannot be read as YAML: line 2: mapping values are not allowed in this context"}),
	)
})
