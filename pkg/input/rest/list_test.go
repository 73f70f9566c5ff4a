package rest_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// fill makes n services (s000, s001, ...) with a host each, all attached to
// proxy gw, and n routes and n upstreams with one link each to u000 or r000.
func fill(a *api, n int) {
	GinkgoHelper()
	_, err := a.store.Write(context.Background(), store.Origin{Actor: "spec", Request: "fill"}, func(w store.Writer) error {
		objs := []model.Object{&model.Proxy{Name: "gw", HTTPPort: 1, HTTPSPort: 2, ListenIP: "::"}}
		for i := range n {
			u := model.NewUpstream()
			u.Name, u.IP, u.Port = fmt.Sprintf("u%03d", i), "10.0.0.1", 80
			objs = append(objs, u, &model.Service{Name: fmt.Sprintf("s%03d", i), FQDN: fmt.Sprintf("s%03d.example.com", i), HTTPS: model.HTTPSBoth, Mode: model.ModeHTTP},
				&model.Route{Service: "s000", Name: fmt.Sprintf("r%03d", i), Prefix: "/"})
		}
		for i := range n {
			objs = append(objs, &model.ProxyService{Proxy: "gw", Service: fmt.Sprintf("s%03d", i)},
				&model.RouteUpstream{Service: "s000", Route: fmt.Sprintf("r%03d", i), Upstream: "u000"})
			if i > 0 {
				objs = append(objs, &model.RouteUpstream{Service: "s000", Route: "r000", Upstream: fmt.Sprintf("u%03d", i)})
			}
		}
		for _, o := range objs {
			if err := store.Create(w, o); err != nil {
				return err
			}
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
}

// walk follows the next links from path and returns the names of each page.
func (a *api) walk(path, nameKey string) (pages [][]string) {
	GinkgoHelper()
	name := regexp.MustCompile(`"` + nameKey + `":"([^"]*)"`)
	next := regexp.MustCompile(`^<([^>]*)>; rel="next"$`)
	for {
		got := a.get(path)
		Expect(got.status).To(Equal(200), got.body)
		page := []string{}
		for _, m := range name.FindAllStringSubmatch(got.body, -1) {
			page = append(page, m[1])
		}
		pages = append(pages, page)
		if got.header.Get("Link") == "" {
			return pages
		}
		path = next.FindStringSubmatch(got.header.Get("Link"))[1]
	}
}

func numbered(letter string, from, to int) (names []string) {
	for i := from; i < to; i++ {
		names = append(names, fmt.Sprintf("%s%03d", letter, i))
	}
	return names
}

var _ = Describe("Lists", func() {
	It("come in pages that follow each other", func() {
		a := startAPI()
		fill(a, 250)
		for _, list := range []struct{ path, key, letter string }{
			{"/upstream", "upstream_name", "u"},
			{"/service", "service_name", "s"},
			{"/service/s000/route", "route_name", "r"},
			{"/proxy/gw/service", "service_name", "s"},
			{"/upstream/u000/route", "route_name", "r"},
			{"/service/s000/route/r000/upstream", "upstream_name", "u"},
		} {
			By(list.path)
			Expect(a.walk(list.path, list.key)).To(Equal([][]string{
				numbered(list.letter, 0, 100), numbered(list.letter, 100, 200), numbered(list.letter, 200, 250),
			}))
			Expect(a.walk(list.path+"?limit=250", list.key)).To(Equal([][]string{numbered(list.letter, 0, 250)}))
			Expect(a.walk(list.path+"?limit=1000", list.key)).To(Equal([][]string{numbered(list.letter, 0, 250)}))
			Expect(a.walk(list.path+"?name="+list.letter+"11&limit=6", list.key)).To(Equal([][]string{
				numbered(list.letter, 110, 116), numbered(list.letter, 116, 120),
			}))
			Expect(a.walk(list.path+"?name="+list.letter+"11&limit=10", list.key)).To(Equal([][]string{numbered(list.letter, 110, 120)}))
			Expect(a.walk(list.path+"?name=%25", list.key)).To(Equal([][]string{{}}))
		}
	})

	It("keep the other parameters in the link to the next page", func() {
		a := startAPI()
		fill(a, 3)
		cursor := base64.RawURLEncoding.EncodeToString([]byte("v1 service 2"))
		Expect(a.get("/service?name=s&limit=2").header.Values("Link")).To(Equal([]string{
			"</service?after=" + cursor + "&limit=2&name=s>; rel=\"next\"",
		}))
		Expect(a.get("/service?after=" + cursor).header).NotTo(HaveKey("Link"))
	})

	It("continue after a deleted object", func() {
		a := startAPI()
		a.given("/service", "Service_Name=a&fqdn=*", "/service", "Service_Name=b&fqdn=*", "/service", "Service_Name=c&fqdn=*")
		link := a.get("/service?limit=2").header.Get("Link")
		Expect(a.delete("/service/b").status).To(Equal(200))
		Expect(a.walk(link[1:strings.Index(link, ">")], "service_name")).To(Equal([][]string{{"c"}}))
	})

	garbage := func(s string) string {
		return `\"` + s + `\" is not a cursor of this list; use the cursor of a Link header`
	}
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	limit := func(s string) string { return `\"` + s + `\" is not a whole number between 1 and 1000` }
	DescribeTable("refuse bad parameters", func(query string, errs ...string) {
		a := startAPI()
		a.get("/upstream?"+query).expectProblem(400, invalid("/upstream", errs...))
	},
		Entry(nil, "limit=0", "limit", limit("0")),
		Entry(nil, "limit=1001", "limit", limit("1001")),
		Entry(nil, "limit=-1", "limit", limit("-1")),
		Entry(nil, "limit=all", "limit", limit("all")),
		Entry(nil, "limit=", "limit", limit("")),
		Entry(nil, "limit=99999999999999999999", "limit", limit("99999999999999999999")),
		Entry(nil, "limit=1&limit=2", "limit", "is sent more than once"),
		Entry(nil, "after=garbage", "after", garbage("garbage")),
		Entry(nil, "after=", "after", garbage("")),
		Entry(nil, "after=12", "after", garbage("12")),
		Entry("of another list", "after="+encode("v1 service 1"), "after", garbage(encode("v1 service 1"))),
		Entry("of another version", "after="+encode("v2 upstream 1"), "after", garbage(encode("v2 upstream 1"))),
		Entry("with another spelling", "after="+encode("v1 upstream 01"), "after", garbage(encode("v1 upstream 01"))),
		Entry(nil, "after=x&limit=y", "limit", limit("y"), "after", garbage("x")),
		Entry(nil, "name=%00", "name", "contains a NUL character"),
		Entry(nil, "name=%FF", "name", "contains text that is not valid UTF-8"),
		Entry(nil, "limi=1", "limi", "unknown query parameter; did you mean limit?"),
		Entry(nil, "tag=%FF", "tag", "contains text that is not valid UTF-8"),
		Entry(nil, "Limit=1", "Limit", "unknown query parameter; did you mean limit?"),
		Entry(nil, "x=1&nam=2", "nam", "unknown query parameter; did you mean name?", "x", "unknown query parameter; known parameters are limit, after, name, tag, status"),
	)

	It("refuse a query that cannot be read", func() {
		a := startAPI()
		got := a.get("/upstream?limit=%zz")
		got.expectProblem(400, `{"type":"urn:gatehouse:problem:invalid_fields","title":"Fields are missing or wrong","status":400,`+
			`"detail":"the query cannot be read: invalid URL escape \"%zz\"","instance":"/upstream","code":"invalid_fields"}`)
	})

	It("have parameters that other calls refuse", func() {
		a := startAPI()
		a.given(everything()...)
		const read, write = "unknown query parameter; this call takes none", "unknown query parameter; known parameters are dry_run, wait, timeout, message"
		for _, call := range [][3]string{
			{"POST", "/service", write}, {"DELETE", "/service/shop", write}, {"PUT", "/service/shop", write}, {"PATCH", "/service/shop", write},
			{"POST", "/proxy/gw/service/shop", write}, {"DELETE", "/proxy/gw/service/shop", write}, {"POST", "/service/copy/shop/b", write},
			{"POST", "/filter/f/config", write}, {"POST", "/revision/1/rollback", write},
			{"GET", "/service/shop", read}, {"GET", "/service/dump/shop", read}, {"GET", "/revision/1", read},
		} {
			a.do(call[0], call[1]+"?limit=1", form, strings.NewReader("")).expectProblem(400, invalid(call[1], "limit", call[2]))
		}
		Expect(a.revision()).To(Equal(int64(6)))
	})
})
