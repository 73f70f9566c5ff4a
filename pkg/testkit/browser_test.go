package testkit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func port(b *testkit.Backend) string { return strconv.Itoa(b.Port) }

// site runs a server for all hosts, and returns a browser and a function that returns
// its URL for a host.
func site(handler http.HandlerFunc) (*testkit.Browser, func(host string) string) {
	GinkgoHelper()
	server := httptest.NewServer(handler)
	DeferCleanup(server.Close)
	b := testkit.NewBrowser()
	DeferCleanup(b.Close)
	return b, func(host string) string { return strings.Replace(server.URL, "127.0.0.1", host, 1) }
}

var _ = Describe("A browser", func() {
	DescribeTable("sends a cookie only where it belongs", func(ctx SpecContext, set, method, target, initiator, want string) {
		var got string
		b, at := site(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/set/it" {
				w.Header().Set("Set-Cookie", set)
			}
			got = r.Header.Get("Cookie")
		})
		_, err := b.Open(ctx, at("a.test")+"/set/it")
		Expect(err).NotTo(HaveOccurred())
		host, path, _ := strings.Cut(target, "/")
		_, err = b.Do(ctx, testkit.Request{Method: method, URL: at(host) + "/" + path, Initiator: initiator})
		Expect(err).NotTo(HaveOccurred())
		Expect(got).To(Equal(want))
	},
		Entry("to the host that set it", "c=1; Path=/", "GET", "a.test/", "", "c=1", SpecTimeout(time.Minute)),
		Entry("to no other host", "c=1; Path=/", "GET", "b.test/", "", "", SpecTimeout(time.Minute)),
		Entry("to no host below it", "c=1; Path=/", "GET", "x.a.test/", "", "", SpecTimeout(time.Minute)),
		Entry("to hosts of its domain", "c=1; Path=/; Domain=a.test", "GET", "x.a.test/", "", "c=1", SpecTimeout(time.Minute)),
		Entry("to no foreign domain", "c=1; Path=/; Domain=b.test", "GET", "b.test/", "", "", SpecTimeout(time.Minute)),
		Entry("on its path", "c=1; Path=/callback", "GET", "a.test/callback", "", "c=1", SpecTimeout(time.Minute)),
		Entry("below its path", "c=1; Path=/callback", "GET", "a.test/callback/x", "", "c=1", SpecTimeout(time.Minute)),
		Entry("on no other path", "c=1; Path=/callback", "GET", "a.test/callbacks", "", "", SpecTimeout(time.Minute)),
		Entry("in the directory, without a path", "c=1", "GET", "a.test/set", "", "c=1", SpecTimeout(time.Minute)),
		Entry("not after Max-Age", "c=1; Path=/; Max-Age=0", "GET", "a.test/", "", "", SpecTimeout(time.Minute)),
		Entry("not after Expires", "c=1; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "GET", "a.test/", "", "", SpecTimeout(time.Minute)),
		Entry("not if plain HTTP set it as Secure", "c=1; Path=/; Secure", "GET", "a.test/", "", "", SpecTimeout(time.Minute)),
		Entry("not if it has 4097 bytes", "c="+strings.Repeat("x", 4096)+"; Path=/", "GET", "a.test/", "", "", SpecTimeout(time.Minute)),
		Entry("if it is Lax, from another site", "c=1; Path=/; SameSite=Lax", "GET", "a.test/", "idp.example", "c=1", SpecTimeout(time.Minute)),
		Entry("not if it is Lax, for a form of another site", "c=1; Path=/; SameSite=Lax", "POST", "a.test/", "idp.example", "", SpecTimeout(time.Minute)),
		Entry("not if it is Strict, from another site", "c=1; Path=/; SameSite=Strict", "GET", "a.test/", "idp.example", "", SpecTimeout(time.Minute)),
		Entry("if it is Strict, from a host of the site", "c=1; Path=/; SameSite=Strict", "POST", "a.test/", "x.a.test", "c=1", SpecTimeout(time.Minute)),
	)

	It("replaces and removes cookies, and fills in a form", func(ctx SpecContext) {
		b, at := site(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/":
				w.Header().Add("Set-Cookie", "old=1; Path=/")
				w.Header().Add("Set-Cookie", "old=2; Path=/; HttpOnly; SameSite=Lax")
				w.Header().Add("Set-Cookie", "gone=1; Path=/")
				http.Redirect(w, r, "/form?q=1", http.StatusFound)
			case "/form":
				w.Header().Set("Set-Cookie", "gone=deleted; Path=/; expires=Thu, 01 Jan 1970 00:00:00 GMT")
				_, _ = fmt.Fprint(w, `<form method=post action="done?x=1"><input type=hidden name=csrf value="a&amp;b">`+
					`<input name=user><input type=password name=pw><button name=go value=yes>Go</button><button name=no>No</button></form>`)
			case "/done":
				Expect(r.ParseForm()).To(Succeed())
				_, _ = fmt.Fprint(w, r.PostForm.Encode(), " ", r.Header.Get("Cookie"))
			}
		})
		page, err := b.Open(ctx, at("a.test")+"/")
		Expect(err).NotTo(HaveOccurred())
		Expect(page.URL.RequestURI()).To(Equal("/form?q=1"))
		Expect(b.Cookies).To(HaveLen(1))
		Expect(b.Cookies[0].HttpOnly).To(BeTrue())
		page, err = b.Submit(ctx, page, map[string]string{"user": "anna", "pw": "x"})
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Body).To(Equal("csrf=a%26b&go=yes&pw=x&user=anna old=2"))
		Expect(b.Visits).To(HaveLen(3))
		Expect(b.Visits[2].Form).To(Equal(url.Values{"csrf": {"a&b"}, "go": {"yes"}, "pw": {"x"}, "user": {"anna"}}))
	}, SpecTimeout(time.Minute))

	It("gives up on an endless redirect", func(ctx SpecContext) {
		b, at := site(func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })
		_, err := b.Open(ctx, at("a.test")+"/")
		Expect(err).To(MatchError(testkit.ErrTooManyRedirects))
		Expect(b.Visits).To(HaveLen(20))
	}, SpecTimeout(time.Minute))
})
