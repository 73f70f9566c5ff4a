package ingress_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/ingress"
)

// object is an Ingress of a host with one path, and annotations of ingress-nginx; the first one is at line 6.
func object(name, host, path string, annotations ...string) string {
	text := fmt.Sprintf("apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: %s\n  annotations:\n", name)
	for _, a := range annotations {
		if name, _, _ := strings.Cut(a, ":"); !strings.Contains(name, "/") {
			a = "nginx.ingress.kubernetes.io/" + a
		}
		text += "    " + a + "\n"
	}
	return text + fmt.Sprintf("spec:\n  rules:\n  - host: %q\n    http: {paths: [{path: %q, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}\n", host, path)
}

func imported(text string, o ingress.Options) *ingress.Result {
	GinkgoHelper()
	r, err := ingress.Import(strings.NewReader(text), o)
	Expect(err).NotTo(HaveOccurred())
	return r
}

// notes returns the notes without the names of the annotation's group.
func notes(r *ingress.Result) (list []string) {
	for _, n := range r.Notes {
		list = append(list, strings.ReplaceAll(n.String(), "nginx.ingress.kubernetes.io/", ""))
	}
	return list
}

// open reports whether the first route of the first host has a Service.
func open(r *ingress.Result) bool { return len(r.Hosts[0].Spec.Routes[0].Services) > 0 }

var _ = Describe("An Ingress", func() {
	DescribeTable("is closed where what restricts requests cannot be translated", func(annotation, says string) {
		r := imported(object("web", "shop.example", "/", annotation), ingress.Options{})
		Expect(notes(r)).To(Equal([]string{"line 6: Ingress default/web: " + says + "; its routes are closed (503)"}))
		Expect(open(r)).To(BeFalse())
		Expect(r.Hosts[0].Spec.Routes[0].Filters).To(BeEmpty())
	},
		Entry(nil, "auth-type: digest", "auth-type: the hashes of digest authentication cannot be used: write an http_filter_basicauth with the passwords, for its routes"),
		Entry(nil, "auth-snippet: deny all", "auth-snippet: code of nginx cannot be translated"),
		Entry(nil, "satisfy: any", `satisfy: "any" has no equivalent`),
		Entry(nil, "auth-url: https://login.example/check", "auth-url: only a URL http://SERVICE.NAMESPACE.svc.cluster.local without variables is translated: write an http_filter_extauthz"),
		Entry(nil, "auth-url: http://checker.other.svc.cluster.local/", "auth-url: the server must be a Service of namespace default: write an http_filter_extauthz for an ExternalName Service"),
		Entry(nil, "auth-url: http://login.example/", "auth-url: the server must be a Service of namespace default: write an http_filter_extauthz for an ExternalName Service"),
		Entry(nil, "whitelist-source-range: office", `whitelist-source-range: "office" is no address or range`),
		Entry(nil, "denylist-source-range: 10.0.0.0/33", `denylist-source-range: "10.0.0.0/33" is no address or range`),
		Entry(nil, "configuration-snippet: deny 10.0.0.0/8;", "configuration-snippet: code of nginx that decides about requests cannot be translated"),
		Entry(nil, "server-snippet: return 403;", "server-snippet: code of nginx that decides about requests cannot be translated"),
		Entry(nil, "backend-protocol: FCGI", "backend-protocol: FCGI has no equivalent"),
		Entry(nil, "permanent-redirect: https://$host/", `permanent-redirect: "https://$host/" is no URL, or has variables: write the redirect by hand`),
		Entry(nil, "rewrite-target: /$host", `rewrite-target: "/$host" has a variable of nginx: write the rewrite by hand`),
	)

	DescribeTable("is open, and says what has no equivalent", func(annotation, says string) {
		r := imported(object("web", "shop.example", "/", annotation), ingress.Options{})
		var want []string
		if says != "" {
			want = []string{"line 6: Ingress default/web: " + says}
		}
		Expect(notes(r)).To(Equal(want))
		Expect(open(r)).To(BeTrue())
	},
		Entry(nil, "mirror-target: https://copy.example", "mirror-target: has no equivalent"),
		Entry(nil, "proxy-body-size: 2g", "proxy-body-size: a limit may be 100m: this one is left out"),
		Entry(nil, "proxy-body-size: much", `proxy-body-size: "much" is no size`),
		Entry(nil, `proxy-body-size: "0"`, ""),
		Entry(nil, `proxy-read-timeout: "0"`, `proxy-read-timeout: "0" is no number of seconds`),
		Entry(nil, `limit-rps: "-1"`, `limit-rps: "-1" is no number of requests`),
		Entry(nil, "load-balance: ip_hash", `load-balance: "ip_hash" has no equivalent`),
		Entry(nil, "upstream-hash-by: $request_uri", "upstream-hash-by: only $remote_addr and $http_NAME have an equivalent"),
		Entry(nil, "upstream-hash-by: $http_x_user", ""),
		Entry(nil, "configuration-snippet: gzip on;", `configuration-snippet: "gzip on" has no equivalent`),
		Entry(nil, "configuration-snippet: proxy_set_header X-A $host;", `configuration-snippet: "proxy_set_header X-A $host" has no equivalent`),
		Entry(nil, "ssl-ciphers: HIGH", "ssl-ciphers: not needed: the gateway has its own, current ones"),
		Entry(nil, "external-dns.alpha.kubernetes.io/hostname: shop.example", "external-dns.alpha.kubernetes.io/hostname: ExternalDNS does not read GatewayHosts: keep the name in another way"),
		Entry(nil, "example.com/owner: ann", ""),
	)

	It("is one of its class", func() {
		text := object("a", "a.example", "/", "kubernetes.io/ingress.class: nginx") + "---\n" + object("b", "b.example", "/", "kubernetes.io/ingress.class: other")
		r := imported(text, ingress.Options{Class: "nginx", Proxy: "edge"})
		Expect(r.Hosts).To(HaveLen(1))
		Expect(r.Hosts[0].Name).To(Equal("a.example"))
		Expect(string(r.Hosts[0].Spec.Proxy)).To(Equal("edge"))
	})

	It("shares a host in its namespace, and leaves it to another namespace that has it", func() {
		text := object("a", "shop.example", "/a", "x/y: z") + "---\n" + object("b", "shop.example", "/b", "x/y: z") + "---\n" +
			object("c", "shop.example", "/b", "x/y: z") + "---\n" + strings.Replace(object("d", "SHOP.example", "/d", "x/y: z"), "  name:", "  namespace: other\n  name:", 1)
		r := imported(text, ingress.Options{})
		Expect(r.Hosts).To(HaveLen(1))
		Expect(r.Hosts[0].Spec.Routes).To(HaveLen(2))
		Expect(notes(r)).To(Equal([]string{
			"line 23: Ingress default/c: the path /b of host shop.example is left out: an older Ingress has it",
			"line 34: Ingress other/d: the host shop.example is left out: a GatewayHost has one owner, and namespace default has it already; put these paths into that one, with a ReferenceGrant for their Services",
		}))
	})

	It("keeps an expression that only nginx understands closed", func() {
		r := imported(object("web", "shop.example", "/a(?!b)", `use-regex: "true"`), ingress.Options{})
		Expect(notes(r)).To(Equal([]string{"line 1: Ingress default/web: the path /a(?!b) is no RE2 expression (nginx has PCRE): write the route by hand"}))
		Expect(open(r)).To(BeFalse())
	})

	DescribeTable("cannot be read", func(text, says string) {
		_, err := ingress.Import(strings.NewReader(text), ingress.Options{})
		Expect(err).To(MatchError(ContainSubstring(says)))
	},
		Entry(nil, "apiVersion: extensions/v1beta1\nkind: Ingress\n", `line 1: an Ingress of apiVersion "extensions/v1beta1" cannot be read`),
		Entry(nil, "apiVersion: networking.k8s.io/v1\nkind: Ingress\nspec: {rules: 1}\n", "the Ingress at line 1: "),
		Entry(nil, "a: [", "did not find expected node content"),
	)
})
