package rest_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

const (
	clusterURL  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listenerURL = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeURL    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// shopKey is the service of shop.
var shopKey = model.ServiceKey("shop")

// snapshots are what the Envoys should have, by hand.
type snapshots struct {
	revision int64
	wanted   map[string]int64
	list     []inspect.Resource
	err      error
}

func (s *snapshots) Revision() int64           { return s.revision }
func (s *snapshots) Wanted(proxy string) int64 { return s.wanted[proxy] }

func (s *snapshots) Resources(_ string, types []string) ([]inspect.Resource, error) {
	return slices.DeleteFunc(slices.Clone(s.list), func(r inspect.Resource) bool {
		return len(types) > 0 && !slices.Contains(types, r.TypeURL)
	}), s.err
}

// cluster is one of upstreams, as an Envoy waits for it.
func cluster(upstreams ...string) status.Awaited {
	c := status.Awaited{Name: strings.Join(upstreams, "+")}
	for _, name := range upstreams {
		c.Objects = append(c.Objects, model.UpstreamKey(name))
	}
	return c
}

// at is a moment of 2026-11-21, such as "08:09:10".
func at(clock string) time.Time {
	GinkgoHelper()
	t, err := time.Parse(time.DateTime, "2026-11-21 "+clock)
	Expect(err).NotTo(HaveOccurred())
	return t
}

// watched is an API whose store is at the revision that was built, and whose
// Envoys are a spec's.
func watched(calls ...string) (*api, *status.Registry, *snapshots) {
	GinkgoHelper()
	registry, built := status.NewRegistry(), &snapshots{wanted: map[string]int64{}}
	a := startAPI(open, func(o *rest.Options) { o.Live.Status, o.Live.Snapshots, o.Live.Replica = registry, built, "one:1323" })
	a.given(calls...)
	built.revision = a.revision()
	return a, registry, built
}

// shop is a service with a route to two upstreams, on the proxy gw: 8 revisions.
func shop() []string {
	return []string{
		"/upstream", "Upstream_name=blue&Upstream_ip=10.0.0.1&Upstream_port=80",
		"/upstream", "Upstream_name=green&Upstream_ip=10.0.0.2&Upstream_port=80",
		"/service", "Service_Name=shop&fqdn=shop.example",
		"/service/shop/route", "Route_Name=root&Route_prefix=/",
		"/service/shop/route/root/upstream/blue", "",
		"/service/shop/route/root/upstream/green", "",
		"/proxy", "Name=gw",
		"/proxy/gw/service/shop", "",
	}
}

// element is an object of a read, with its status.
type element struct {
	raw    json.RawMessage
	Status struct {
		Conditions []struct {
			Code, Message, Path string
			Status              bool
		}
		Lagging []status.Lag
	}
}

func (a answer) elements() (list []element) {
	GinkgoHelper()
	Expect(a.status).To(Equal(200), a.body)
	var body struct{ Data map[string][]json.RawMessage }
	Expect(json.Unmarshal([]byte(a.body), &body)).To(Succeed())
	for _, data := range body.Data {
		for _, raw := range data {
			e := element{raw: raw}
			Expect(json.Unmarshal(raw, &e)).To(Succeed())
			list = append(list, e)
		}
	}
	return list
}

// one is the only element of a read.
func (a answer) one() string {
	GinkgoHelper()
	Expect(a.elements()).To(HaveLen(1))
	return string(a.elements()[0].raw)
}

// conditions returns the conditions of the only object of a read: code, value and message.
func (a answer) conditions() []string {
	GinkgoHelper()
	Expect(a.elements()).To(HaveLen(1))
	object := a.elements()[0]
	var list []string
	for _, c := range object.Status.Conditions {
		list = append(list, strings.TrimSpace(c.Code+map[bool]string{true: "+ ", false: "- "}[c.Status]+c.Message+" "+c.Path))
	}
	for _, l := range object.Status.Lagging {
		list = append(list, strings.TrimSpace("lag "+l.Proxy+" "+l.Envoy+" "+l.Reason))
	}
	return list
}

const accepted = "Accepted+ it is a part of the configuration"

var _ = Describe("GET /status", func() {
	It("shows proxies, their Envoys and what each has applied, refused and waits for", func() {
		a, registry, built := watched(append(shop(), "/proxy", "Name=alone&Http_port=81")...)
		built.wanted["gw"] = 8
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "10.1.0.1:4000", Version: "1.39.3", Connected: at("08:00:00"), Identity: "token laptop", Instance: "host-7"})
		registry.RecordSent(1, clusterURL, status.Answer{Revision: 8, At: at("08:00:01"), Resources: []status.Resource{{Name: "blue+green", Version: "v1"}}})
		registry.RecordAck(1, clusterURL, status.Answer{Revision: 8, At: at("08:00:02"), Resources: []status.Resource{{Name: "blue+green", Version: "v1"}}})
		registry.SetProgress(1, status.Progress{Applied: 8})
		registry.Connect(status.Envoy{ID: 2, Proxy: "gw", Address: "10.1.0.2:4000", Connected: at("08:01:00")})
		registry.RecordNack(2, routeURL, status.Answer{
			Revision: 7, At: at("08:01:02"), Text: "bad regex", Resources: []status.Resource{{Name: "gatehouse", Version: "v7"}},
		})
		registry.SetProgress(2, status.Progress{
			Applied: 5,
			Waiting: []status.Wait{
				{Host: "shop", Object: shopKey, Clusters: []status.Awaited{cluster("blue", "green")}, Since: at("08:01:03"), Until: at("08:01:23")},
				{Host: "late", Object: model.ServiceKey("late"), Since: at("08:01:04")},
			},
			Refused: []status.Refusal{
				{TypeURL: clusterURL, Resource: "blue+green", Objects: cluster("blue", "green").Objects, Version: "v2", Revision: 6, Text: "no such policy", At: at("08:01:01")},
				{TypeURL: "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment", Resource: "blue", Objects: cluster("blue").Objects, Revision: 6, Text: "odd", At: at("08:01:01")},
				{TypeURL: listenerURL, Resource: "http-0.0.0.0:80", Revision: 6, Text: "cannot bind", At: at("08:01:01")},
				{TypeURL: routeURL, Resource: "gatehouse", Version: "v7", Revision: 7, Text: "bad regex", At: at("08:01:02")},
				{TypeURL: routeURL, Resource: "gatehouse", Version: "host", Objects: []model.Key{model.ServiceKey("gatehouse")}, Revision: 7, Text: "bad regex", At: at("08:01:02")},
			},
		})
		registry.Connect(status.Envoy{ID: 3, Proxy: "edge", Address: "10.1.0.3:4000", Version: "1.39.3", Connected: at("08:02:00")})
		registry.Connect(status.Envoy{ID: 4, Proxy: "a b", Address: "10.1.0.4:4000", Connected: at("08:02:00")})
		registry.SetConditions("service shop", []model.Condition{{Key: model.RouteKey("shop", "root"), Code: model.NoUpstream, Message: "none"}})

		envoys := `[{"address":"10.1.0.1:4000","version":"1.39.3","connected_ts":"2026-11-21T08:00:00.000000+00:00","identity":"token laptop","instance":"host-7","applied_revision":9,"state":"current",
			"waiting":[],"refused":[],"types":[{"type":"cluster",
				"sent":{"revision":8,"at":"2026-11-21T08:00:01.000000+00:00","resources":1},
				"acknowledged":{"revision":8,"at":"2026-11-21T08:00:02.000000+00:00","resources":1}}]},
		{"address":"10.1.0.2:4000","version":"","connected_ts":"2026-11-21T08:01:00.000000+00:00","applied_revision":5,"state":"refused",
			"waiting":[
				{"object":"/service/shop","for":[{"cluster":"blue+green","objects":["/upstream/blue","/upstream/green"]}],
					"since":"2026-11-21T08:01:03.000000+00:00","until":"2026-11-21T08:01:23.000000+00:00"},
				{"object":"/service/late","for":[],"since":"2026-11-21T08:01:04.000000+00:00"}],
			"refused":[
				{"objects":["/upstream/blue","/upstream/green"],"message":"no such policy","type":"cluster","resource":"blue+green","revision":6,"at":"2026-11-21T08:01:01.000000+00:00"},
				{"objects":["/upstream/blue"],"message":"odd","type":"endpoint","resource":"blue","revision":6,"at":"2026-11-21T08:01:01.000000+00:00"},
				{"objects":["/proxy/gw"],"message":"cannot bind","type":"listener","resource":"http-0.0.0.0:80","revision":6,"at":"2026-11-21T08:01:01.000000+00:00"},
				{"objects":["/proxy/gw"],"message":"bad regex","type":"route","resource":"gatehouse","revision":7,"at":"2026-11-21T08:01:02.000000+00:00"},
				{"objects":["/service/gatehouse"],"message":"bad regex","type":"route","resource":"gatehouse","revision":7,"at":"2026-11-21T08:01:02.000000+00:00"}],
			"types":[{"type":"route","refused":{"revision":7,"at":"2026-11-21T08:01:02.000000+00:00","resources":1,"message":"bad regex"}}]}]`
		conditions := `[{"path":"/service/shop/route/root","code":"NoUpstream","message":"none"}]`
		Expect(a.get("/status").one()).To(MatchJSON(`{"replica":"one:1323","revision":9,"built_revision":9,"rate_limits":"none",
			"proxies":[{"proxy":"alone","envoys":[]},{"proxy":"gw","envoys":` + envoys + `}],
			"waiting_nodes":[
				{"node":"edge","address":"10.1.0.3:4000","version":"1.39.3","connected_ts":"2026-11-21T08:02:00.000000+00:00","create":"POST /proxy with Name=edge"},
				{"node":"a b","address":"10.1.0.4:4000","version":"","connected_ts":"2026-11-21T08:02:00.000000+00:00",
					"create":"none: no proxy can have this name; set node.id in the Envoy's bootstrap to the name of a proxy"}],
			"conditions":` + conditions + `}`))
		Expect(a.get("/proxy/gw/status").one()).To(MatchJSON(`{"replica":"one:1323","revision":9,"built_revision":9,
			"proxies":[{"proxy":"gw","envoys":` + envoys + `}],"waiting_nodes":[],"conditions":` + conditions + `}`))
		Expect(a.get("/proxy/alone/status").one()).To(MatchJSON(`{"replica":"one:1323","revision":9,"built_revision":9,
			"proxies":[{"proxy":"alone","envoys":[]}],"waiting_nodes":[],"conditions":[]}`))
	})

	It("shows rate-limit engines separately from Envoys, each with its last answer", func() {
		a, registry, _ := watched()
		const typeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"
		answer := func(revision int64, clock, text string) status.Answer {
			return status.Answer{Revision: revision, At: at(clock), Text: text}
		}
		for id := range int64(3) {
			registry.ConnectEngine(status.Envoy{ID: id, Address: "10.1.0.9:400" + strconv.FormatInt(id, 10), Connected: at("08:00:00")})
		}
		registry.RecordSent(1, typeURL, answer(4, "08:00:01", ""))
		registry.RecordAck(1, typeURL, answer(4, "08:00:02", ""))
		registry.RecordSent(2, typeURL, answer(5, "08:00:03", ""))
		registry.RecordNack(2, typeURL, answer(5, "08:00:04", "duplicate domain"))
		Expect(a.get("/status").one()).To(MatchJSON(`{"replica":"one:1323","revision":0,"built_revision":0,"proxies":[],"waiting_nodes":[],"rate_limits":"none",
			"ratelimit_engines":[
				{"address":"10.1.0.9:4000","connected_ts":"2026-11-21T08:00:00.000000+00:00","state":"slow"},
				{"address":"10.1.0.9:4001","connected_ts":"2026-11-21T08:00:00.000000+00:00","state":"current",
					"acknowledged":{"revision":4,"at":"2026-11-21T08:00:02.000000+00:00","resources":0}},
				{"address":"10.1.0.9:4002","connected_ts":"2026-11-21T08:00:00.000000+00:00","state":"refused",
					"refused":{"revision":5,"at":"2026-11-21T08:00:04.000000+00:00","resources":0,"message":"duplicate domain"}}],
			"conditions":[]}`))
	})

	It("distinguishes slow from waiting, and new from old", func() {
		a, registry, built := watched("/proxy", "Name=gw")
		state := func() string {
			GinkgoHelper()
			var view struct {
				Proxies []struct{ Envoys []struct{ State string } }
			}
			Expect(json.Unmarshal([]byte(a.get("/proxy/gw/status").one()), &view)).To(Succeed())
			return view.Proxies[0].Envoys[0].State
		}
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw"})
		Expect(state()).To(Equal("slow"), "nothing was built yet")
		built.wanted["gw"] = 1
		Expect(state()).To(Equal("slow"))
		registry.SetProgress(1, status.Progress{Waiting: []status.Wait{{Host: "shop"}}})
		Expect(state()).To(Equal("waiting"))
		registry.SetProgress(1, status.Progress{Applied: 1})
		Expect(state()).To(Equal("current"))
	})

	It("shows, for a proxy, only what concerns it", func() {
		a, registry, _ := watched(append(shop(),
			"/service", "Service_Name=other&fqdn=other.example",
			"/proxy", "Name=two&Http_port=81",
			"/proxy/two/service/other", "",
			"/globalconfig", `globalconfig_name=mine&globalconfig_type=globalconfig_ratelimit&config={"domain":"a","descriptors":[{"key":"remote_address","rate_limit":{"unit":"second","requests_per_unit":5}}]}`,
			"/globalconfig", `globalconfig_name=all&globalconfig_type=globalconfig_ratelimit&config={"domain":"b","descriptors":[{"key":"remote_address","rate_limit":{"unit":"second","requests_per_unit":5}}]}`,
			"/proxy/two/globalconfig/mine", "")...)
		for i, k := range []model.Key{
			model.ProxyServiceKey("gw", "shop"), model.ProxyServiceKey("two", "shop"), model.ServiceFilterKey("shop", "login"),
			model.RouteKey("other", "root"), model.GlobalConfigKey("mine"), model.GlobalConfigKey("all"), model.RouteUpstreamKey("shop", "root", "blue"),
		} {
			registry.SetConditions(string(rune('a'+i)), []model.Condition{{Key: k, Code: "X"}})
		}
		shown := func(path string) (list []string) {
			GinkgoHelper()
			var view struct{ Conditions []struct{ Path string } }
			Expect(json.Unmarshal([]byte(a.get(path).one()), &view)).To(Succeed())
			for _, c := range view.Conditions {
				list = append(list, c.Path)
			}
			return list
		}
		Expect(shown("/proxy/gw/status")).To(ConsistOf(
			"/proxy/gw/service/shop", "/service/shop/filter/login", "/globalconfig/all", "/service/shop/route/root/upstream/blue"))
		Expect(shown("/proxy/two/status")).To(ConsistOf(
			"/proxy/two/service/shop", "/service/other/route/root", "/globalconfig/mine", "/globalconfig/all"))
		Expect(shown("/status")).To(HaveLen(7))
	})

	It("names a proxy that does not exist", func() {
		a, _, _ := watched()
		Expect(a.get("/proxy/gw/status").body).To(ContainSubstring(`"code":"unknown_name"`))
		Expect(a.get("/proxy/gw/xds").body).To(ContainSubstring(`"code":"unknown_name"`))
	})

	It("is empty without Envoys", func() {
		a := startAPI(open)
		a.get("/status").expectJSON(200, `{"data":{"core_db_status":[{"replica":"","revision":0,"built_revision":0,"proxies":[],"waiting_nodes":[],"rate_limits":"none","conditions":[]}]}}`)
	})
})

var _ = Describe("GET /proxy/{proxy}/xds", func() {
	It("shows the resources, or those of one type", func() {
		a, _, built := watched("/proxy", "Name=gw")
		built.list = []inspect.Resource{
			{TypeURL: clusterURL, Name: "blue", Version: "5b1f", JSON: json.RawMessage(`{"name": "blue"}`)},
			{TypeURL: routeURL, Name: "gatehouse", Version: "77aa", JSON: json.RawMessage(`{}`)},
		}
		const cluster = `{"type":"cluster","name":"blue","version":"5b1f","resource":{"name":"blue"}}`
		a.get("/proxy/gw/xds").expectJSON(200, `{"data":{"core_db_xds":[`+cluster+`,{"type":"route","name":"gatehouse","version":"77aa","resource":{}}]}}`)
		for _, name := range []string{"cluster", "clusters", clusterURL} {
			a.get("/proxy/gw/xds?type="+name).expectJSON(200, `{"data":{"core_db_xds":[`+cluster+`]}}`)
		}
		a.get("/proxy/gw/xds?type=listeners").expectJSON(200, `{"data":{"core_db_xds":[]}}`)
		a.get("/proxy/gw/xds?type=x").expectProblem(400, invalid("/proxy/gw/xds", "type",
			`\"x\" is not a resource type; known types are cluster, endpoint, listener, route, secret, extension, and their type URLs`))
	})

	It("does not reveal why a resource cannot be shown", func() {
		built := &snapshots{err: errors.New("s3cret")}
		a := startAPIThatFails(open, func(o *rest.Options) { o.Live.Snapshots = built })
		a.given("/proxy", "Name=gw")
		got := a.get("/proxy/gw/xds")
		Expect(got.status).To(Equal(500))
		Expect(got.body).NotTo(ContainSubstring("s3cret"))
	})
})
