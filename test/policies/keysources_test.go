package policies_test

import (
	"encoding/json"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// forwarded is what a backend receives of a request: its path with the query, its cookies and its client.
type forwarded struct{ path, cookie, client, key string }

func seenBy(a answer) forwarded {
	GinkgoHelper()
	Expect(a.status).To(Equal(200), a.body)
	var echo testkit.Echo
	Expect(json.Unmarshal([]byte(a.body), &echo)).To(Succeed())
	return forwarded{echo.Path, strings.Join(a.seen["Cookie"], "|"), a.seen.Get("X-Client"), a.seen.Get("X-Api-Key")}
}

// keyTry is a request with keys, with the status, and what the backend receives of it.
type keyTry struct {
	what, path, header string
	status             int
	seen               forwarded
}

func (w *world) keys(tries []keyTry) {
	GinkgoHelper()
	for _, t := range tries {
		r := request{what: t.what, path: t.path}
		if t.header != "" {
			r.header = strings.Split(t.header, "\n")
		}
		a := w.send(r)
		Expect(a.status).To(Equal(t.status), t.what)
		status, body, _ := w.explained(r)
		Expect(status).To(Equal(t.status), "explain of: "+t.what)
		if body != "" {
			Expect(body).To(Equal(a.body), "explain of: "+t.what)
		}
		for _, inner := range []string{"X-Gatehouse-Key", "X-Gatehouse-Any-Key"} {
			Expect(a.seen).NotTo(HaveKey(inner), t.what)
		}
		if t.status == 200 {
			Expect(seenBy(a)).To(Equal(t.seen), t.what)
		}
	}
}

var _ = Describe("An API key from one of several places", func() {
	web, _ := keyOf("partners", "web")
	mobile, _ := keyOf("partners", "mobile")
	escaped := url.QueryEscape(web)
	const places = `"from":[{"header":"X-Api-Key"},{"query":"apikey"},{"cookie":"key"}]`
	found := []keyTry{
		{"in the header", "/shop?a=1", "X-Api-Key: " + web, 200, forwarded{"/shop?a=1", "", "partners/web", ""}},
		{"in the query", "/shop?apikey=" + web, "", 200, forwarded{"/shop", "", "partners/web", ""}},
		{"escaped in the query", "/shop?apikey=" + escaped, "", 200, forwarded{"/shop", "", "partners/web", ""}},
		{"under an escaped name", "/shop?%61pi%6bey=" + escaped, "", 200, forwarded{"/shop", "", "partners/web", ""}},
		{"in a cookie", "/shop", "Cookie: key=" + web, 200, forwarded{"/shop", "", "partners/web", ""}},
		{"in a cookie among others", "/shop", "Cookie: akey=1; key=" + web + "; b=2", 200, forwarded{"/shop", "akey=1; b=2", "partners/web", ""}},
		{"in a quoted cookie", "/shop", `Cookie: a=1;key="` + web + `"`, 200, forwarded{"/shop", "a=1", "partners/web", ""}},
		{"in a cookie that is there twice", "/shop", "Cookie: key=" + web + "; b=2; key=" + mobile, 200, forwarded{"/shop", "b=2", "partners/web", ""}},
		{"in the query twice", "/shop?apikey=" + web + "&b=2&apikey=" + mobile, "", 200, forwarded{"/shop?b=2", "", "partners/web", ""}},
		{"in all places, of which the first counts", "/shop?apikey=x", "X-Api-Key: " + mobile + "\nCookie: key=y", 200, forwarded{"/shop", "", "partners/mobile", ""}},
		{"in the query before a cookie", "/shop?apikey=" + web, "Cookie: key=" + mobile, 200, forwarded{"/shop", "", "partners/web", ""}},
		{"behind an empty header and an empty parameter", "/shop?apikey=", "X-Api-Key: \nCookie: key=" + web, 200, forwarded{"/shop", "", "partners/web", ""}},
		{"with other parameters, which stay as they are", "/shop?x=1%26admin%3D1&apikey=" + escaped + "&b=a%20c&&a&B=+%zz&xapikey=1", "", 200, forwarded{"/shop?x=1%26admin%3D1&b=a%20c&&a&B=+%zz&xapikey=1", "", "partners/web", ""}},
	}
	lost := []keyTry{
		{"a wrong one in front of a good one", "/shop?apikey=" + web, "X-Api-Key: x", 401, forwarded{}},
		{"a wrong parameter in front of a good cookie", "/shop?apikey=x", "Cookie: key=" + web, 401, forwarded{}},
		{"a wrong parameter in front of a good one", "/shop?apikey=x&apikey=" + web, "", 401, forwarded{}},
		{"of another set", "/shop?apikey=" + url.QueryEscape(strings.TrimPrefix(withKey("staff", "web"), "X-Api-Key: ")), "", 401, forwarded{}},
		{"under another name", "/shop?APIKEY=" + web, "Cookie: KEY=" + web, 401, forwarded{}},
		{"in the path", "/shop/apikey=" + web, "", 401, forwarded{}},
		{"with a line break", "/shop?apikey=x%0d%0aX-Client:%20boss", "", 401, forwarded{}},
		{"with a zero byte", "/shop?apikey=" + escaped + "%00", "", 401, forwarded{}},
		{"that is a command", "/shop?apikey=%25REQ(x-other)%25", "X-Other: " + web, 401, forwarded{}},
		{"that is long", "/shop?apikey=" + strings.Repeat("x", 20000), "", 401, forwarded{}},
	}

	It("is found in their order, and kept from the backend with nothing else changed", func() {
		w := newWorld(apiKey())
		before := w.listeners()
		w.configure(`{"keys":"partners",` + places + `}`)
		w.attach(onShop)
		w.keys(found)
		w.keys(lost)
		w.keys([]keyTry{{"nothing", "/shop?a=1", "", 401, forwarded{}}})

		By("passed on")
		w.configure(`{"keys":"partners","forward":true,` + places + `}`)
		for _, t := range []keyTry{
			{"a header", "/shop", "X-Api-Key: " + web, 200, forwarded{"/shop", "", "partners/web", web}},
			{"a parameter", "/shop?b=%20&apikey=" + escaped, "", 200, forwarded{"/shop?b=%20&apikey=" + escaped, "", "partners/web", ""}},
			{"a cookie", "/shop", "Cookie: a=1; key=" + web, 200, forwarded{"/shop", "a=1; key=" + web, "partners/web", ""}},
		} {
			w.keys([]keyTry{t})
		}

		By("passed on by a route, and hidden elsewhere")
		w.configure(`{"keys":"partners",` + places + `}`)
		w.post("/filter", "Filter_name=on", "Filter_type=http_filter_apikey", `Filter_config={"keys":"partners","forward":true,`+places+`}`)
		w.post("/service/shop/route", "Route_Name=on", "Route_prefix=/on")
		w.attach("/service/shop/route/on/upstream/blue", "/service/shop/route/on/filter/on")
		w.keys([]keyTry{
			{"a header", "/on", "X-Api-Key: " + web, 200, forwarded{"/on", "", "partners/web", web}},
			{"a parameter", "/on?apikey=" + escaped, "Cookie: key=1", 200, forwarded{"/on?apikey=" + escaped, "key=1", "partners/web", ""}},
			{"a hidden parameter", "/shop?apikey=" + escaped, "Cookie: key=1", 200, forwarded{"/shop", "", "partners/web", ""}},
		})
		Expect(w.listeners()).To(Equal(before))
	})

	It("is one of several credentials, too", func() {
		w := newWorld(anyOf())
		w.configure(`{"apikey":{"keys":"partners",` + places + `},"basicauth":{"users":[{"name":"ann","password":"correct-horse-battery"}]}}`)
		w.attach(onShop)
		w.keys(found)
		w.keys(lost)
		w.keys([]keyTry{
			{"a password, and an empty parameter", "/shop?apikey=&a=1", basic("ann", "correct-horse-battery"), 200, forwarded{"/shop?a=1", "", "ann", ""}},
			{"a password, and a wrong key", "/shop?apikey=x", basic("ann", "correct-horse-battery"), 401, forwarded{}},
			{"nothing", "/shop?a=1", "", 401, forwarded{}},
		})
	})
})

var _ = Describe("A token in the query", func() {
	It("is kept from the backend, and nothing else of the query is changed", func() {
		p := jwt()
		w := newWorld(p)
		w.configure(`{"issuer":"https://issuer.test","jwks":` + tokenIssuer().JWKS() + `,"from":{"query":"token"}}`)
		w.attach(onShop)
		token := tokenIssuer().Token(object{"sub": "ann"})
		w.keys([]keyTry{
			{"alone", "/shop?token=" + token, "", 200, forwarded{path: "/shop"}},
			{"escaped", "/shop?%74oken=" + token, "", 200, forwarded{path: "/shop"}},
			{"among others", "/shop?x=1%26admin%3D1&token=" + token + "&b=a%20c&a", "", 200, forwarded{path: "/shop?x=1%26admin%3D1&b=a%20c&a"}},
			{"a wrong one", "/shop?token=x", "", 401, forwarded{}},
		})
	})
})
