package rest_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/tlsdir"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// shopState is what an Envoy of proxy gw has: service shop with one route
// without an upstream.
func shopState() explain.State {
	GinkgoHelper()
	build, err := pipeline.NewBuild(compile.Settings{})
	Expect(err).NotTo(HaveOccurred())
	proxy := model.NewProxy()
	proxy.Name = "gw"
	change := model.Change{Revision: 1, Full: true}
	for _, o := range []model.Object{
		proxy, &model.Service{ID: 1, Name: "shop", FQDN: "shop.test", HTTPS: model.HTTPSBoth}, &model.Route{ID: 1, Service: "shop", Name: "cart", Prefix: "/cart"},
		&model.ProxyService{Proxy: "gw", Service: "shop"},
	} {
		change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	s := build.Apply(change).Snapshots["gw"]
	return explain.State{
		Listeners: s.Listeners, Clusters: s.Clusters, Secrets: s.Secrets, Certificates: s.Candidates, Routes: s.RouteConfiguration(), Hosts: s.Hosts,
	}
}

var _ = Describe("Explain", func() {
	// explaining is an API with an Envoy that has shop, and one that has nothing.
	explaining := func() *api {
		GinkgoHelper()
		a := startAPI(open, func(o *rest.Options) {
			o.Live.Explain = func(_ context.Context, proxy string, r explain.Request) ([]inspect.Explained, error) {
				Expect(proxy).To(Equal("gw"))
				first, err := explain.Explain(shopState(), r)
				if err != nil {
					return nil, err
				}
				second, err := explain.Explain(explain.State{}, r)
				return []inspect.Explained{{Envoys: []string{"127.0.0.1:40001", "127.0.0.1:40002"}, Answer: first}, {Answer: second}}, err
			}
		})
		a.given("/proxy", "Name=gw")
		return a
	}
	at := func(query string) string { return "/proxy/gw/explain?" + query }
	shopURL := "url=" + url.QueryEscape("http://shop.test/a/../cart?b=c")

	It("answers for each state of the Envoys", func() {
		explaining().get(at(shopURL)).expectJSON(200, `{"data":{"core_db_explain":[`+
			`{"basis":"envoys","envoys":["127.0.0.1:40001","127.0.0.1:40002"],"code":"direct_response",`+
			`"message":"the route answers 503 by itself: this service is not available","status":503,"body":"this service is not available\n",`+
			`"request":{"method":"GET","host":"shop.test","path":"/cart","query":"b=c"},"service":"shop","route":"cart","steps":[`+
			`{"code":"listener","message":"listener http-0.0.0.0:8080 accepts the connection"},`+
			`{"code":"path","message":"path \"/a/../cart\" is read as \"/cart\""},`+
			`{"code":"host","message":"host \"shop.test\" belongs to service shop (exact shop.test)"},`+
			`{"code":"route","message":"route cart is the first that matches"},`+
			`{"code":"answer","message":"the route answers 503 by itself: this service is not available"}],`+
			`"hosts":[{"service":"shop","domain":"shop.test","kind":"exact","chosen":true,"message":"is the best match and takes the request"}],`+
			`"routes":[{"route":"cart","matches":true,"checks":[{"code":"path_prefix","holds":true,"message":"path \"/cart\" begins with \"/cart\""}]}],`+
			`"filters":[{"name":"envoy.filters.http.router","message":"forwards the request, or answers as the route says"}],`+
			`"envoy":{"listener":"http-0.0.0.0:8080","route_configuration":"gatehouse","virtual_host":"shop","route":"cart"}},`+
			`{"basis":"wanted","envoys":[],"code":"no_listener","message":"the proxy has no listener for http, so the connection is refused",`+
			`"request":{"method":"GET","host":"shop.test","path":"/a/../cart","query":"b=c"},`+
			`"steps":[{"code":"listener","message":"the proxy has no listener for http, so the connection is refused"}],`+
			`"hosts":[],"routes":[],"filters":[],"envoy":{}}]}}`)
	})

	DescribeTable("names the filters that answer, as they are stored", func(filterType, message, want string, refusedBy string) {
		a := startAPI(open, func(o *rest.Options) {
			o.Live.Explain = func(context.Context, string, explain.Request) ([]inspect.Explained, error) {
				return []inspect.Explained{{Answer: explain.Answer{
					Code: "access_refused", Status: 403, Service: "shop", Route: "root", FilterType: filterType, Message: message,
					Steps: []explain.Step{{Code: "refused", Message: message}}, Hosts: []explain.Host{}, Routes: []explain.Route{}, Filters: []explain.Filter{},
				}}}, nil
			}
		})
		a.given("/proxy", "Name=gw", "/service", "Service_Name=shop&fqdn=shop.test", "/service/shop/route", "Route_Name=root&Route_prefix=/",
			"/filter", `Filter_name=wide&Filter_type=vh_filter_rbac&Filter_config={"allow":[{}]}`, "/filter", `Filter_name=own&Filter_type=vh_filter_rbac&Filter_config={"allow":[{}]}`,
			"/filter", `Filter_name=slow&Filter_type=route_filter_fault&Filter_config={"abort":503,"percent":100}`,
			"/filter", `Filter_name=slower&Filter_type=route_filter_fault&Filter_config={"abort":503,"percent":100}`,
			"/service/shop/filter/wide", "", "/service/shop/route/root/filter/own", "", "/service/shop/filter/slow", "", "/service/shop/route/root/filter/slower", "")
		got := a.get(at(shopURL))
		Expect(got.status).To(Equal(200), got.body)
		Expect(got.body).To(ContainSubstring(`"message":"` + want + `"`))
		Expect(got.body).To(ContainSubstring(`"steps":[{"code":"refused","message":"` + want + `"}]`))
		Expect(got.body).To(ContainSubstring(refusedBy))
	},
		Entry("those of the route and of the service", model.FilterRBAC, "a vh_filter_rbac does not allow it", "vh_filter_rbac own or wide does not allow it", `"refused_by":["/filter/own","/filter/wide"]`),
		Entry("that of the route alone, if it replaces the others", model.FilterFault, "a route_filter_fault fails it", "route_filter_fault slower fails it", `"refused_by":["/filter/slower"],`),
		Entry("none, if none is stored", model.FilterCSRF, "an http_filter_csrf refuses it", "an http_filter_csrf refuses it", `"status":403,"request"`),
	)

	It("says where each certificate comes from, and why there is no newer one", func() {
		names := []string{"mine", "file", "taken", "automatic:a.test", "automatic:b.test"}
		a := startAPI(open, func(o *rest.Options) {
			o.Certificates = ordered{{Host: "a.test"}, {Host: "b.test", Placeholder: true, Reason: "dns: none", Advice: "check A"}}
			o.Live.Explain = func(context.Context, string, explain.Request) ([]inspect.Explained, error) {
				tls := &explain.TLS{MinVersion: "1.2", MaxVersion: "1.3", ALPN: []string{}}
				for _, name := range names {
					tls.Others = append(tls.Others, explain.Certificate{Secret: name, Kind: "exact", Names: []string{}, KeyType: "RSA", Fingerprint: strings.Repeat("0", 64), NotAfter: time.Now().Add(36 * time.Hour)})
				}
				tls.Certificates = slices.Clone(tls.Others[:1])
				return []inspect.Explained{{Answer: explain.Answer{Code: "no_host", Hosts: []explain.Host{}, Routes: []explain.Route{}, Filters: []explain.Filter{}, Steps: []explain.Step{}, TLS: tls}}}, nil
			}
		})
		_, err := a.store.Write(context.Background(), store.Origin{Actor: tlsdir.Actor}, func(w store.Writer) error {
			return errors.Join(w.Insert(&model.Secret{Name: "file", Type: model.SecretGeneric, Value: "v"}), w.Insert(&model.Secret{Name: "taken", Type: model.SecretGeneric, Value: "v"}))
		})
		Expect(err).NotTo(HaveOccurred())
		a.given("/proxy", "Name=gw", "/secret", "Secret_name=mine&Secret_value=v")
		Expect(a.put("/secret/taken", "Secret_value=w").status).To(Equal(200))
		got := a.get(at(shopURL))
		Expect(got.status).To(Equal(200), got.body)
		var answer struct {
			Data struct {
				List []explain.Answer `json:"core_db_explain"`
			}
		}
		Expect(json.Unmarshal([]byte(got.body), &answer)).To(Succeed())
		var sources []string
		for _, c := range answer.Data.List[0].TLS.Others {
			sources = append(sources, strings.Join([]string{c.Secret, c.Source, c.Host, c.Error, c.Advice, strconv.Itoa(c.DaysLeft)}, " "))
		}
		Expect(sources).To(Equal([]string{
			"mine secret    1", "file file    1", "taken secret    1", "automatic:a.test automatic a.test   1",
			"automatic:b.test placeholder b.test dns: none check A 1",
		}))
		Expect(answer.Data.List[0].TLS.Certificates[0].Source).To(Equal("secret"))
	})

	It("accepts the client's address", func() {
		var client netip.Addr
		a := startAPI(open, func(o *rest.Options) {
			o.Live.Explain = func(_ context.Context, _ string, r explain.Request) ([]inspect.Explained, error) {
				client = r.Client
				answer, err := explain.Explain(explain.State{}, r)
				return []inspect.Explained{{Answer: answer}}, err
			}
		})
		a.given("/proxy", "Name=gw")
		Expect(a.get(at(shopURL + "&address=2001:db8::1")).status).To(Equal(200))
		Expect(client).To(Equal(netip.MustParseAddr("2001:db8::1")))
	})

	It("accepts a method and headers, which may repeat", func() {
		got := explaining().get(at(shopURL + "&method=POST&header=x-a%3A+1&header=Host%3A+other.test"))
		Expect(got.status).To(Equal(200))
		Expect(got.body).To(ContainSubstring(`"request":{"method":"POST","host":"other.test","path":"/cart","query":"b=c"}`))
		Expect(got.body).To(ContainSubstring(`no service of the proxy has host \"other.test\"; the nearest is shop.test`))
	})

	DescribeTable("refuses what no client can send",
		func(query string, errs ...string) {
			explaining().get(at(query)).expectProblem(400, invalid("/proxy/gw/explain", errs...))
		},
		Entry("no url", "", "url", "is missing: give the URL that a client would request, such as http://shop.example.com/cart"),
		Entry("no scheme", "url=shop.test", "url", `\"shop.test\" does not begin with http:// or https://, or tcp://, tls:// or udp:// for a connection`),
		Entry("no host", "url=http:///cart", "url", `\"http:///cart\" has no host`),
		Entry("a space", "url=http://shop.test/a%20b", "url", `\"http://shop.test/a b\" contains a character that clients percent-encode, such as a space as %20`),
		Entry("method and header", "url=http://a&method=G%20T&header=x", "method", `\"G T\" is not a method`, "header", `\"x\" is not of the form \"name: value\"`),
		Entry("an empty method", "url=http://a&method=", "method", `is empty; omit it for GET`),
		Entry("no address", "url=http://a&address=a", "address", `\"a\" is not an IPv4 or IPv6 address`),
		Entry("a link-local address", "url=http://a&address=fe80::1%25eth0", "address", `\"fe80::1%eth0\" is not an IPv4 or IPv6 address`),
		Entry("two URLs", "url=http://a&url=http://b", "url", "is sent more than once"),
		Entry("an unknown parameter", "url=http://a&headers=x", "headers", "unknown query parameter; did you mean header?"),
	)

	It("requires a proxy that exists", func() {
		a := explaining()
		got, _ := a.call("GET", "/proxy/nobody/explain?"+shopURL, "", nil)
		Expect(got.status).To(Equal(404))
		Expect(got.body).To(ContainSubstring(`"code":"unknown_name"`))
	})

	It("explains that nothing listens if there are no Envoys", func() {
		a := startAPI(open)
		a.given("/proxy", "Name=gw")
		Expect(a.get(at(shopURL)).body).To(ContainSubstring(`"basis":"wanted","envoys":[],"code":"no_listener"`))
	})

	It("does not guess", func() {
		vh := &routev3.VirtualHost{Name: "shop", Domains: []string{"*"}}
		r, err := snapshot.NewRoute(&routev3.Route{
			Name:   "odd",
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_FilterAction{FilterAction: &routev3.FilterAction{}},
		})
		Expect(err).NotTo(HaveOccurred())
		h, err := snapshot.NewHost(vh, []*snapshot.Route{r}, snapshot.ObjectRef{})
		Expect(err).NotTo(HaveOccurred())
		state := shopState()
		state.Hosts = []*snapshot.Host{h}
		a := startAPIThatFails(open, func(o *rest.Options) {
			o.Live.Explain = func(_ context.Context, _ string, r explain.Request) ([]inspect.Explained, error) {
				_, err := explain.Explain(state, r)
				return nil, err
			}
		})
		a.given("/proxy", "Name=gw")
		Expect(a.get(at(shopURL)).status).To(Equal(500))
		Expect(a.log.String()).To(ContainSubstring("explaining route \\\"odd\\\": action *routev3.Route_FilterAction is not known"))
	})
})
