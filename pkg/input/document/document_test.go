package document_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

// everything has every kind of object and link, as Write writes it.
const everything = `version: 1
upstreams:
- upstream_name: blue
  upstream_ip: 10.0.0.1
  upstream_port: 8080
  tags:
  - shop
- upstream_name: green
  upstream_ip: "::1"
  upstream_port: 443
  upstream_weight: 0
  upstream_hc_path: /health
  upstream_protocol: h2
  upstream_validation_cacertificate: ca
  upstream_client_certificate: ca
secrets:
- secret_name: ca
- secret_name: cookie
filters:
- filter_name: limit
  filter_type: route_filter_ratelimit
  filter_config:
    descriptors:
    - remote_address: x
globalconfigs:
- globalconfig_name: oauth
  globalconfig_type: globalconfig_oauth
  config:
    openid_connect:
      provider:
        authorization_endpoint: https://login.example.com/authorize
        token_endpoint: https://login.example.com/token
      client_id: "yes"
      client_secret: cookie
      hmac_secret: cookie
      redirect_url: https://shop.example.com/callback
      redirect_path_matcher: /callback
services:
- service_name: blog
  fqdn: '*'
  filters: []
  secrets: []
  routes: []
- service_name: shop
  fqdn: shop.example.com
  https: redirect
  hsts_seconds: 86400
  public: true
  filters:
  - limit
  secrets:
  - ca
  routes:
  - route_name: "123"
    route_prefix: /
    upstreams: []
    filters: []
  - route_name: root
    route_prefix: /shop
    route_config:
      match: segment
      methods:
      - GET
      - "NO"
      headers:
      - name: x-a
        exact: "null"
      timeouts:
        request: 1.5s
      websocket: false
    tags:
    - a
    - b
    upstreams:
    - blue
    - green
    filters:
    - limit
proxies:
- name: gw
  http_port: 8080
  https_port: 8443
  listen_ip: 0.0.0.0
  trusted_hops: 0
  escaped_slashes: redirect
  underscore_headers: reject
  tls_min_version: "1.2"
  http3: false
  alt_svc_port: 0
  services:
  - blog
  - shop
  filters:
  - limit
  globalconfigs:
  - oauth
`

// odd returns texts that a careless writer or reader changes.
func odd() []string {
	return []string{
		"yes", "No", "on", "y", "null", "~", "true", "1e3", "1e999", "0x1F", "0777", "1_000", "12:30:45", "2026-11-21", "-", "- a", "=", "<<", "!x", "&a", "*a",
		"%", "%YAML 1.1", "---", "...", "--- a", "@a", "`a`", "[a]", "{a: b}", "a: b", "a #b", "#b", ": a", "? a", "|", ">", "'", `"`, `it's "so"`, `\n`, "\\",
		" a", "a ", "\ta", "a\tb", "a\nb", "a\nb\n", "a\nb\n\n", "\na", "a \nb", " a\nb", "a\n  b\nc", "a\r\nb", "\r", "\n", "\n\n", "a\n#b", "---\na\n",
		"ü", "日本語", "😀", "\u0085", "\u00a0", "\u2028", "\ufeff", "\u200b", "\x01", "\x7f", "\u202e", "1.", ".5", "+1", ".inf", ".NaN", "12345678901234567890123",
		"' OR 1=1; --", "../../etc", "<b>&amp;</b>", strings.Repeat("long ", 100) + "end", "\\u0041", "{{x}}", "${x}", "a,b", "-1", "- ",
	}
}

// withOdd returns a document with the odd texts as values and as keys, in YAML's own
// subset.
func withOdd() string {
	var b strings.Builder
	b.WriteString(`{"version": 1, "services": [{"service_name": "s", "fqdn": "*", "routes": [{"route_name": "r", "route_prefix": "/", "route_config": {"headers": [`)
	for i, text := range odd() {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, `{"name": "h%d", "exact": %s}`, i, jsonOf(text))
	}
	b.WriteString(`]}}]}]}`)
	return b.String()
}

var _ = Describe("a document", func() {
	It("reads back as it was applied", func() {
		Expect(configOf(everything).dump(document.WriteOptions{})).To(Equal(everything))
	})

	It("is applied in full", func() {
		c := configOf()
		// 2 upstreams, 2 secrets, 1 filter, 1 global config, 2 services, 2 routes,
		// 1 proxy; 2+1 links of routes, 2 of services, 3 of the proxy
		result := c.applied(everything, document.ApplyOptions{})
		Expect(result.Created).To(Equal(20))
		Expect(result.Updated + result.Deleted + result.Unchanged).To(BeZero())
		Expect(result.Warnings).To(Equal([]string{
			`line 17: secrets["ca"]: nothing is stored for this secret; it was created empty: upload its contents`,
			`line 18: secrets["cookie"]: nothing is stored for this secret; it was created empty: upload its contents`,
		}))
	})

	It("changes nothing when applied again", func() {
		c := configOf(everything)
		before := c.revision()
		for _, opts := range []document.ApplyOptions{{}, {Prune: true}} {
			Expect(c.applied(everything, opts)).To(Equal(document.Result{Unchanged: 20}))
		}
		Expect(c.revision()).To(Equal(before))
	})

	It("is the same in JSON", func() {
		c := configOf(everything)
		asJSON := c.dump(document.WriteOptions{JSON: true})
		Expect(asJSON).To(HavePrefix("{\n  \"version\": 1,\n  \"upstreams\": [\n    {\n      \"upstream_name\": \"blue\",\n"))
		Expect(asJSON).To(HaveSuffix("\n    }\n  ]\n}\n"))
		Expect(configOf(asJSON).dump(document.WriteOptions{})).To(Equal(everything))
		Expect(c.applied(asJSON, document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 20}))
	})

	It("is empty for an empty configuration", func() {
		c := configOf()
		Expect(c.dump(document.WriteOptions{})).To(Equal("version: 1\n"))
		Expect(c.dump(document.WriteOptions{JSON: true})).To(Equal("{\n  \"version\": 1\n}\n"))
		Expect(c.applied("version: 1\n", document.ApplyOptions{Prune: true})).To(Equal(document.Result{}))
	})

	It("keeps unusual texts", func() {
		c := configOf(withOdd())
		var want []string
		for i, text := range odd() {
			want = append(want, fmt.Sprintf("h%d %q", i, text))
		}
		asYAML, asJSON := c.dump(document.WriteOptions{}), c.dump(document.WriteOptions{JSON: true})
		for _, text := range []string{withOdd(), asYAML, asJSON} {
			again := configOf(text)
			Expect(again.headers()).To(Equal(want))
			Expect(again.dump(document.WriteOptions{})).To(Equal(asYAML))
			Expect(again.dump(document.WriteOptions{JSON: true})).To(Equal(asJSON))
		}
		Expect(c.applied(asYAML, document.ApplyOptions{}).Updated).To(BeZero())
	})

	It("is written in pages without gaps or duplicates", func() {
		var b strings.Builder
		b.WriteString("version: 1\nservices:\n")
		for i := range 450 {
			fmt.Fprintf(&b, "- service_name: s%03d\n  fqdn: s%d.example.com\n  filters: []\n  secrets: []\n", i, i)
			b.WriteString("  routes:\n  - route_name: root\n    route_prefix: /\n    upstreams: []\n    filters: []\n")
		}
		Expect(configOf(b.String()).dump(document.WriteOptions{})).To(Equal(b.String()))
	})

	It("can be applied again when a transaction is retried", func() {
		c := configOf()
		doc, err := document.Parse([]byte(everything), "")
		Expect(err).NotTo(HaveOccurred())
		Expect(c.applyDocument(doc)).To(HaveField("Created", 20))
		Expect(configOf().applyDocument(doc)).To(HaveField("Created", 20))
	})

	It("can be encoded independently", func() {
		doc, err := document.Parse([]byte(everything), "")
		Expect(err).NotTo(HaveOccurred())
		var out strings.Builder
		Expect(document.Encode(&out, doc, false)).To(Succeed())
		Expect(out.String()).To(Equal(everything))
	})
})

var _ = Describe("one bad object of 1,000", func() {
	thousand := func(line string) string {
		var b strings.Builder
		b.WriteString("version: 1\nupstreams:\n")
		for i := range 1000 {
			if i == 499 {
				b.WriteString(line)
				continue
			}
			fmt.Fprintf(&b, "- {upstream_name: u%d, upstream_ip: 10.0.0.1, upstream_port: 80}\n", i)
		}
		return b.String()
	}

	It("is named with its line", func() {
		c := configOf(everything)
		before := c.revision()
		_, _, err := c.apply(thousand("- {upstream_name: bad, upstream_ip: 10.0.0.1, upstream_port: 0}\n"), document.ApplyOptions{})
		Expect(messages(err)).To(Equal([]string{`line 502: upstreams["bad"].upstream_port: 0 is not between 1 and 65535`}))
		Expect(c.revision()).To(Equal(before))
		Expect(c.dump(document.WriteOptions{})).To(Equal(everything))
	})

	It("is named when the store refuses it", func() {
		c := configOf(everything)
		before := c.revision()
		_, _, err := c.apply(thousand("- {upstream_name: bad, upstream_ip: a, upstream_port: 1, upstream_protocol: h2, upstream_validation_cacertificate: nix}\n"),
			document.ApplyOptions{Prune: true})
		Expect(model.IsKind(err, model.Unworkable)).To(BeTrue())
		Expect(err).To(MatchError(HavePrefix(`line 502: upstreams["bad"]: /upstream/bad names /secret/nix, which does not exist`)))
		Expect(c.revision()).To(Equal(before))
		Expect(c.dump(document.WriteOptions{})).To(Equal(everything))
	})

	It("is named when a link has no target", func() {
		_, _, err := configOf().apply("version: 1\nproxies:\n- name: gw\n  services:\n  - a/b\n", document.ApplyOptions{})
		Expect(model.IsKind(err, model.NotFound)).To(BeTrue())
		Expect(err).To(MatchError(HavePrefix(`line 5: proxies["gw"].services[0]: service `)))
	})
})
