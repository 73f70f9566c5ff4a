package kubernetes_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// ask sends a request such as "POST shop.example /a?b=c x-a:1 x-b:2", and returns the status, the backend that
// answered, and what it received of these fields: path, host, or the name of a header; or a header of the answer.
func (e edge) ask(request string, fields ...string) string {
	words := strings.Fields(request)
	req, err := http.NewRequest(words[0], fmt.Sprintf("http://127.0.0.1:%d%s", e.port, words[2]), http.NoBody)
	if err != nil {
		return err.Error()
	}
	req.Host = words[1]
	for _, h := range words[3:] {
		name, value, _ := strings.Cut(h, ":")
		req.Header.Add(name, strings.ReplaceAll(value, "%20", " "))
	}
	a, err := testkit.Send(req)
	if err != nil {
		return err.Error()
	}
	var echo testkit.Echo
	_ = json.Unmarshal([]byte(a.Body), &echo) // not each answer is one
	said := []string{fmt.Sprint(a.Status), a.Header.Get(testkit.BackendHeader)}
	for _, f := range fields {
		switch f {
		case "path":
			said = append(said, echo.Path)
		case "host":
			said = append(said, echo.Host)
		case "location":
			said = append(said, a.Header.Get("Location"))
		default:
			said = append(said, f+"="+strings.Join(append(echo.Headers.Values(f), a.Header.Values(f)...), ","))
		}
	}
	return strings.Join(strings.Fields(strings.Join(said, " ")), " ")
}

var _ = Describe("An HTTPRoute", func() {
	It("is matched, changed and answered as the Gateway API says", func() {
		e := newEdge(nil)
		for _, name := range []string{"blue", "green", "red"} {
			e.service(name, backend(name))
		}
		e.listeners(anyHTTP)
		to := func(name string) string { return fmt.Sprintf("backendRefs: [{name: %s, port: 80}]", name) }
		e.route(e.place, "match", `
  hostnames: [match.example]
  rules:
  - {matches: [{headers: [{name: x-a, value: "1"}, {name: x-b, value: "2"}]}], `+to("green")+`}
  - {matches: [{method: POST}], `+to("red")+`}
  - {matches: [{path: {type: Exact, value: /exact}}], `+to("green")+`}
  - {matches: [{path: {value: /exact}, method: POST, headers: [{name: x-a, value: "1"}]}], `+to("red")+`}
  - {matches: [{path: {value: /long/er}}, {queryParams: [{name: q, value: "1"}]}], `+to("red")+`}
  - {matches: [{path: {value: /long}}], `+to("green")+`}
  - {`+to("blue")+`}`)
		e.route(e.place, "change", `
  hostnames: [change.example]
  rules:
  - matches: [{path: {value: /headers}}]
    filters:
    - {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-set, value: s}], add: [{name: x-add, value: a}], remove: [x-gone]}}
    - {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-answer, value: r}]}}
    `+to("blue")+`
  - matches: [{path: {value: /prefix}}]
    filters: [{type: URLRewrite, urlRewrite: {hostname: inner.example, path: {type: ReplacePrefixMatch, replacePrefixMatch: /new}}}]
    `+to("blue")+`
  - matches: [{path: {value: /full}}]
    filters: [{type: URLRewrite, urlRewrite: {path: {type: ReplaceFullPath, replaceFullPath: /all}}}]
    `+to("blue")+`
  - matches: [{path: {value: /redirect}}]
    filters: [{type: RequestRedirect, requestRedirect: {scheme: https, hostname: other.example, statusCode: 301, path: {type: ReplacePrefixMatch, replacePrefixMatch: /r}}}]
  - matches: [{path: {value: /slow}}]
    timeouts: {request: 200ms}
    `+to("blue"))
		Eventually(func() string { return e.ask("GET match.example /") }).Should(Equal("200 blue"), e.Stderr.String)
		Eventually(func() string { return e.ask("GET change.example /full/a", "path") }).Should(Equal("200 blue /all"))
		for request, answer := range map[string]string{
			"GET match.example / x-a:1 x-b:2":         "200 green",
			"GET match.example / x-a:1":               "200 blue",
			"POST match.example / x-a:1 x-b:2":        "200 red", // a method comes before headers
			"GET match.example /exact":                "200 green",
			"POST match.example /exact x-a:1":         "200 green", // an exact path comes before all else
			"POST match.example /exact/a x-a:1":       "200 red",
			"GET match.example /exacts":               "200 blue", // not a whole segment
			"GET match.example /long/er/a":            "200 red",
			"GET match.example /long/erx":             "200 green",
			"GET match.example /?q=1":                 "200 red",
			"GET match.example /?q=12":                "200 blue",
			"GET none.example /":                      "404",
			"GET change.example /nothing":             "404",
			"GET change.example /slow?delay=5s":       "504",
			"GET change.example /headers x-gone:1":    "200 blue",
			"GET change.example /headersx x-gone:1":   "404",
			"GET match.example:80 /long/er":           "200 red",
			"GET MATCH.example /exact":                "200 green",
			"DELETE match.example /exact/../long/er/": "200 red",
		} {
			Expect(e.ask(request)).To(Equal(answer), request)
		}
		Expect(e.ask("GET change.example /headers/a x-gone:1 x-set:old x-add:b", "path", "x-set", "x-add", "x-gone", "x-answer")).To(
			Equal("200 blue /headers/a x-set=s x-add=b,a x-gone= x-answer=r"))
		Expect(e.ask("GET change.example /prefix/a?b=c", "path", "host")).To(Equal("200 blue /new/a?b=c inner.example"))
		Expect(e.ask("GET change.example /redirect/a", "location")).To(Equal("301 https://other.example/r/a"))
	})

	It("takes what an older one does not, and the older one what both match", func() {
		e := newEdge(nil)
		e.service("blue", backend("blue"))
		e.service("green", backend("green"))
		e.listeners(anyHTTP)
		e.route(e.place, "web-2", "  hostnames: [a.example]\n  rules: [{matches: [{path: {value: /both}}], backendRefs: [{name: blue, port: 80}]}]")
		Eventually(func() string { return e.ask("GET a.example /both") }).Should(Equal("200 blue"))
		created := e.jsonPath("httproute", "web-2", "{.metadata.creationTimestamp}")
		Eventually(e.now).ShouldNot(Equal(created), "creation times are in seconds")
		e.route(e.place, "web", "  hostnames: [a.example]\n  rules: [{matches: [{path: {value: /both}}, {path: {value: /both/more}}], backendRefs: [{name: green, port: 80}]}]")
		Eventually(func() string { return e.ask("GET a.example /both/more") }).Should(Equal("200 green"))
		Expect(e.ask("GET a.example /both")).To(Equal("200 blue"))
		e.kubectl("delete", "httproute", "web-2")
		Eventually(func() string { return e.ask("GET a.example /both") }).Should(Equal("200 green"))
	})

	It("closes a rule, or the share, of a backend that cannot be used, and nothing else", func() {
		other := newPlace(cluster)
		e := newEdge([]place{other})
		other.service("web", backend("green"))
		e.service("web", backend("blue"))
		e.listeners(anyHTTP)
		backends := map[string]struct{ ref, reason string }{
			"kind":    {"{kind: Bucket, group: storage.example, name: web}", "InvalidKind"},
			"missing": {"{name: nowhere, port: 80}", "BackendNotFound"},
			"port":    {"{name: web, port: 81}", "BackendNotFound"},
			"foreign": {fmt.Sprintf("{name: web, namespace: %s, port: 80}", other.namespace), "RefNotPermitted"},
		}
		for name, b := range backends {
			e.route(e.place, name, fmt.Sprintf(`
  hostnames: [%s.example]
  rules:
  - {matches: [{path: {value: /bad}}], backendRefs: [%s]}
  - {matches: [{path: {value: /good}}], backendRefs: [{name: web, port: 80}]}
  - {matches: [{path: {value: /half}}], backendRefs: [{name: web, port: 80}, %[2]s]}
  - {matches: [{path: {value: /zero}}], backendRefs: [{name: web, port: 80, weight: 0}]}
  - {matches: [{path: {value: /none}}]}`, name, b.ref))
		}
		for name, b := range backends {
			Eventually(func() string { return e.ask("GET " + name + ".example /good") }).Should(Equal("200 blue"), name)
			Expect(e.ask("GET "+name+".example /bad")).To(Equal("500"), name)
			Expect(e.ask("GET "+name+".example /zero")).To(Equal("500"), name)
			Expect(e.ask("GET "+name+".example /none")).To(Equal("500"), name)
			got := map[string]int{}
			for range 200 {
				got[e.ask("GET "+name+".example /half")]++
			}
			Expect(got).To(HaveLen(2), "%s %v", name, got)
			Expect(got["500"]).To(BeNumerically("~", 100, 40), "%s %v", name, got)
			Eventually(e.parent(name, "ResolvedRefs")).Should(Equal("False "+b.reason), name)
			Eventually(e.parent(name, "Accepted")).Should(Equal("True Accepted"), name)
		}

		By("a ReferenceGrant, as long as it exists")
		other.apply("%s", apiGrant("HTTPRoute", e.place, "Service"))
		Eventually(func() string { return e.ask("GET foreign.example /bad") }).Should(Equal("200 green"))
		Eventually(e.parent("foreign", "ResolvedRefs")).Should(Equal("True ResolvedRefs"))
		other.kubectl("delete", "referencegrants.gateway.networking.k8s.io", "grant")
		Eventually(func() string { return e.ask("GET foreign.example /bad") }).Should(Equal("500"))
		Eventually(e.parent("foreign", "ResolvedRefs")).Should(Equal("False RefNotPermitted"))
	})

	It("changes the headers for one backend, in its share, and copies requests to several", func() {
		e := newEdge(nil)
		green, seen := backend("green"), make(chan *http.Request, 100)
		for name, b := range map[string]*testkit.Backend{"blue": backend("blue"), "green": green, "red": backend("red")} {
			e.service(name, b)
		}
		e.listeners(anyHTTP)
		part := func(name, more string) string {
			return "{name: " + name + ", port: 80, " + more + `filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-part, value: ` + name + `}]}},
      {type: ResponseHeaderModifier, responseHeaderModifier: {set: [{name: x-by, value: ` + name + `}]}}]}`
		}
		const mirror = "{type: RequestMirror, requestMirror: {backendRef: {name: green, port: 80}}}"
		e.route(e.place, "shop", `
  hostnames: [shop.example]
  rules:
  - matches: [{path: {value: /even}}]
    backendRefs: [`+part("blue", "")+`, `+part("red", "")+`, {name: nowhere, port: 80, weight: 0}]
  - matches: [{path: {value: /one}}]
    backendRefs: [`+part("blue", "weight: 1000000, ")+`, `+part("red", "weight: 0, ")+`, {name: green, port: 80, weight: 0}]
  - matches: [{path: {value: /half}}]
    backendRefs: [`+part("blue", "")+`, {name: nowhere, port: 80}]
  - {matches: [{path: {value: /copied}}], filters: [`+mirror+`, `+mirror+`], backendRefs: [{name: blue, port: 80}]}
  - matches: [{path: {value: /pages}}]
    filters: [{type: CORS, cors: {allowOrigins: ["*"], allowMethods: ["*"], allowHeaders: ["*"], exposeHeaders: ["*", x-a], allowCredentials: true}}]
    backendRefs: [{name: blue, port: 80}]`)
		count := func(request string, n int) map[string]int {
			got := map[string]int{}
			for range n {
				got[e.ask(request, "x-part", "x-by")]++
			}
			return got
		}
		Eventually(func() string { return e.ask("GET shop.example /one x-part:forged", "x-part", "x-by") }).Should(Equal("200 blue x-part=blue x-by=blue"), e.Stderr.String)
		Expect(count("GET shop.example /even", 200)).To(And(HaveLen(2), HaveKeyWithValue("200 blue x-part=blue x-by=blue", BeNumerically("~", 100, 40)), HaveKey("200 red x-part=red x-by=red")))
		Expect(count("GET shop.example /one", 20)).To(Equal(map[string]int{"200 blue x-part=blue x-by=blue": 20}))
		Expect(count("GET shop.example /half", 200)).To(And(HaveLen(2), HaveKeyWithValue("500 x-part= x-by=blue", BeNumerically("~", 100, 40))))
		green.Watch(seen)
		Expect(e.ask("GET shop.example /copied")).To(Equal("200 blue"))
		for range 2 {
			Eventually(seen).Should(Receive())
		}
		const page = " origin:https://any.example"
		Expect(e.ask("GET shop.example /pages"+page, "access-control-allow-origin", "access-control-allow-credentials", "access-control-expose-headers")).To(
			Equal("200 blue access-control-allow-origin=https://any.example access-control-allow-credentials=true access-control-expose-headers=x-a"))
		Expect(e.ask("OPTIONS shop.example /pages access-control-request-method:PUT access-control-request-headers:x-b,x-c"+page,
			"access-control-allow-origin", "access-control-allow-methods", "access-control-allow-headers")).To(
			Equal("200 access-control-allow-origin=https://any.example access-control-allow-methods=PUT access-control-allow-headers=x-b,x-c"))
	})

	It("closes a rule with something that is not supported, and says so", func() {
		e := newEdge(nil)
		e.service("web", backend("blue"))
		e.listeners(anyHTTP)
		const good = `{matches: [{path: {value: /good}}], backendRefs: [{name: web, port: 80}]}`
		for name, rule := range map[string]string{
			"extension": `{filters: [{type: ExtensionRef, extensionRef: {group: example.com, kind: Filter, name: x}}], backendRefs: [{name: web, port: 80}]}`,
			"backend":   `{backendRefs: [{name: web, port: 80, filters: [{type: RequestMirror, requestMirror: {backendRef: {name: web, port: 80}}}]}]}`,
			"inner":     `{backendRefs: [{name: web, port: 80, filters: [{type: RequestHeaderModifier, requestHeaderModifier: {remove: [x-forwarded-for]}}]}]}`,
			"header":    `{filters: [{type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-forwarded-for, value: "1.2.3.4"}]}}], backendRefs: [{name: web, port: 80}]}`,
		} {
			e.route(e.place, name, fmt.Sprintf("  hostnames: [%s.example]\n  rules: [%s]", name, rule))
			e.route(e.place, name+"-part", fmt.Sprintf("  hostnames: [%s-part.example]\n  rules: [%s, %s]", name, rule, good))
			Eventually(func() string { return e.ask("GET " + name + "-part.example /good") }).Should(Equal("200 blue"), name)
			Expect(e.ask("GET "+name+"-part.example /")).To(Equal("500"), name)
			Eventually(func() string { return e.ask("GET " + name + ".example /") }).Should(Equal("500"), name)
			Eventually(e.parent(name, "Accepted")).Should(Equal("False UnsupportedValue"), name)
			Eventually(e.parent(name+"-part", "Accepted")).Should(Equal("True Accepted"), name)
			Expect(e.parent(name+"-part", "PartiallyInvalid")()).To(Equal("True UnsupportedValue"), name)
		}
		e.route(e.place, "unreadable", `  hostnames: [unreadable.example]
  rules: [{matches: [{path: {type: RegularExpression, value: "/a("}}], backendRefs: [{name: web, port: 80}]}, `+good+`]`)
		Eventually(e.parent("unreadable", "Accepted")).Should(Equal("False UnsupportedValue"))
		Expect(e.ask("GET unreadable.example /good")).To(Equal("404"), "a request could go to a rule that requires less")
	})
})

// apiGrant is a ReferenceGrant of the Gateway API, from a kind in a namespace.
func apiGrant(kind string, from place, to string) string {
	return fmt.Sprintf(`
apiVersion: gateway.networking.k8s.io/v1
kind: ReferenceGrant
metadata: {name: grant}
spec:
  from: [{group: gateway.networking.k8s.io, kind: %s, namespace: %s}]
  to: [{group: "", kind: %s}]
`, kind, from.namespace, to)
}
