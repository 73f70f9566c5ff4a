package pipeline_test

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	basicauthv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/basic_auth/v3"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// keysIn returns the clients of the keys that a proxy receives.
func keysIn(s *snapshot.Snapshot) (clients []string) {
	GinkgoHelper()
	return keysFor(seam.KeyFilter, s)
}

// keysFor returns the clients of the keys that one of the filters receives.
func keysFor(filter string, s *snapshot.Snapshot) (clients []string) {
	GinkgoHelper()
	for _, r := range s.Extensions {
		if r.Name != filter {
			continue
		}
		var e corev3.TypedExtensionConfig
		var list basicauthv3.BasicAuth
		Expect(r.Body.UnmarshalTo(&e)).To(Succeed())
		Expect(e.GetTypedConfig().UnmarshalTo(&list)).To(Succeed())
		for line := range strings.SplitSeq(list.GetUsers().GetInlineString(), "\n") {
			client, _, _ := strings.Cut(line, ":")
			clients = append(clients, client)
		}
	}
	return clients
}

var _ = Describe("A change of a key", func() {
	const hash = "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="
	key := func(set, name string) *model.APIKey { return &model.APIKey{KeySet: set, Name: name, Hash: hash} }
	keyed := func(name, config string) *model.Filter {
		return &model.Filter{Name: name, Type: model.FilterAPIKey, Config: model.JSON(config)}
	}
	// with returns two sets; the guarded route requires the first.
	with := func(more ...model.Object) model.Change {
		return filtered(append([]model.Object{
			&model.KeySet{Name: "a"}, &model.KeySet{Name: "b"}, key("a", "x"), key("b", "x"),
			keyed("f", `{"keys":"a"}`), &model.RouteFilter{Service: "shop", Route: "guarded", Filter: "f"},
		}, more...)...)
	}
	next := func(b *pipeline.Build, objects ...model.Object) pipeline.Result {
		c := model.Change{Revision: b.Revision() + 1}
		for i, o := range objects {
			*o.Meta().ID = int64(100 + i)
			c.Entries = append(c.Entries, model.Entry{Key: o.Key(), Object: o})
		}
		return b.Apply(c)
	}

	It("whose time has passed removes it, and a later time brings it back", func() {
		b := newBuild()
		Expect(keysIn(b.Apply(with()).Snapshots["gw"])).To(Equal([]string{"-", "a/x"}))
		at := b.Revision()
		apply := func(k *model.APIKey) *snapshot.Snapshot {
			return b.Apply(model.Change{Revision: at, Entries: []model.Entry{{Key: k.Key(), Object: k}}}).Snapshots["gw"]
		}
		Expect(keysIn(apply(key("a", "x").Expired()))).To(Equal([]string{"-"}))
		Expect(keysIn(apply(key("a", "x")))).To(Equal([]string{"-", "a/x"}))
		Expect(b.Revision()).To(Equal(at))
	})

	It("changes only the list of keys", func() {
		b := newBuild()
		first := b.Apply(with()).Snapshots["gw"]
		Expect(keysIn(first)).To(Equal([]string{"-", "a/x"}))
		second := next(b, key("a", "new")).Snapshots["gw"]
		Expect(keysIn(second)).To(Equal([]string{"-", "a/new", "a/x"}))
		Expect(second.Listeners[0].Version).To(Equal(first.Listeners[0].Version))
		Expect(second.Hosts[0]).To(BeIdenticalTo(first.Hosts[0]))
		revoked := b.Apply(model.Change{Revision: 3, Entries: []model.Entry{{Key: model.APIKeyKey("a", "x")}}}).Snapshots["gw"]
		Expect(keysIn(revoked)).To(Equal([]string{"-", "a/new"}))
		Expect(next(b, key("b", "new")).Snapshots).To(BeEmpty(), "nothing names the set")
	})

	It("reaches the proxies with routes that require keys of the set, and their listeners", func() {
		b := newBuild()
		b.Apply(with())
		next(b, key("b", "later")) // its revision made no listener
		Expect(b.Reach([]model.Key{model.APIKeyKey("a", "x")})).To(Equal(map[string]pipeline.Reach{"gw": {Services: []string{"shop"}, Listeners: true}}))
		Expect(b.Reach([]model.Key{model.APIKeyKey("b", "x")})).To(BeEmpty())
	})

	It("takes effect once a filter names the set, and only as long as it does", func() {
		b := newBuild()
		b.Apply(with())
		other := next(b, keyed("f", `{"keys":"b"}`)).Snapshots["gw"]
		Expect(keysIn(other)).To(Equal([]string{"-", "b/x"}))
		gone := b.Apply(model.Change{Revision: 3, Entries: []model.Entry{{Key: model.NewKey(model.KindRouteFilter, "shop", "guarded", "f")}}})
		Expect(keysIn(gone.Snapshots["gw"])).To(Equal([]string{"-"}))
	})

	It("changes the list of optional keys, if the key is one of several credentials", func() {
		either := &model.Filter{Name: "f", Type: model.FilterAnyOf, Config: `{"apikey":{"keys":"b"},"basicauth":{"users":[{"name":"ann","password":"correct-horse-battery"}]}}`}
		b := newBuild()
		b.Apply(with())
		s := next(b, either, key("b", "new")).Snapshots["gw"]
		Expect(keysFor(credential.AnyKeyFilter, s)).To(Equal([]string{"-", "b/new", "b/x"}))
		Expect(keysIn(s)).To(Equal([]string{"-"}))
	})

	It("is sent at once if the key is only one of several credentials", func() {
		either := &model.Filter{Name: "f", Type: model.FilterAnyOf, Config: `{"apikey":{"keys":"b"},"basicauth":{"users":[{"name":"ann","password":"correct-horse-battery"}]}}`}
		b := newBuild()
		b.Apply(with())
		next(b, either)
		revoked := b.Apply(model.Change{Revision: 3, Entries: []model.Entry{{Key: model.APIKeyKey("b", "x")}}})
		Expect(revoked.Snapshots).To(HaveKey("gw"))
		Expect(keysFor(credential.AnyKeyFilter, revoked.Snapshots["gw"])).To(Equal([]string{"-"}))
	})

	It("is known for the sets that hosts of Envoys may still name, with the keys that are valid now", func() {
		// lists returns the sets of the lists, and the clients with all of them.
		lists := func(s *snapshot.Snapshot, others ...string) (sets []string) {
			GinkgoHelper()
			for _, l := range s.Lists[:2] { // the others have consumers and addresses
				sets = append(sets, l.Name+" "+strings.Join(l.Parts, ",")+" and "+strings.Join(l.Others, ","))
				if r := l.With(others); r != nil {
					sets = append(sets, strings.Join(keysFor(l.Name, &snapshot.Snapshot{Extensions: []*snapshot.Resource{r}}), ","))
				}
			}
			return sets
		}
		b := newBuild()
		first := b.Apply(with()).Snapshots["gw"]
		Expect(first.Hosts[0].Parts).To(Equal([]snapshot.Part{{Extension: "envoy.filters.http.basic_auth/key", Name: "a"}}))
		Expect(lists(first, "a", "b")).To(Equal([]string{"envoy.filters.http.basic_auth/any_key  and ", "envoy.filters.http.basic_auth/key a and "}))
		By("another set")
		second := next(b, keyed("f", `{"keys":"b"}`)).Snapshots["gw"]
		Expect(lists(second, "a", "c")).To(Equal([]string{"envoy.filters.http.basic_auth/any_key  and ", "envoy.filters.http.basic_auth/key b and a", "-,a/x,b/x"}))
		By("a key of the first")
		third := next(b, key("a", "new")).Snapshots["gw"]
		Expect(third.Extensions).To(Equal(second.Extensions))
		Expect(lists(third, "a")).To(HaveExactElements(Not(BeEmpty()), Not(BeEmpty()), "-,a/new,a/x,b/x"))
		By("a revoked key of the first")
		fourth := b.Apply(model.Change{Revision: 4, Entries: []model.Entry{{Key: model.APIKeyKey("a", "x")}}}).Snapshots["gw"]
		Expect(lists(fourth, "a")).To(HaveExactElements(Not(BeEmpty()), Not(BeEmpty()), "-,a/new,b/x"))
		By("no more keys of the first")
		fifth := b.Apply(model.Change{Revision: 5, Entries: []model.Entry{{Key: model.APIKeyKey("a", "new")}}}).Snapshots["gw"]
		Expect(lists(fifth, "a")).To(Equal([]string{"envoy.filters.http.basic_auth/any_key  and ", "envoy.filters.http.basic_auth/key b and "}))
		By("one of several credentials")
		either := &model.Filter{Name: "f", Type: model.FilterAnyOf, Config: `{"apikey":{"keys":"a"},"basicauth":{"users":[{"name":"ann","password":"correct-horse-battery"}]}}`}
		sixth := next(b, either).Snapshots["gw"]
		Expect(sixth.Hosts[0].Parts).To(Equal([]snapshot.Part{{Extension: "envoy.filters.http.basic_auth/any_key", Name: "a"}}))
		Expect(lists(sixth, "b")).To(Equal([]string{"envoy.filters.http.basic_auth/any_key a and ", "envoy.filters.http.basic_auth/key  and b", "-,b/x"}))
	})

	It("is not sent if Envoy would then refuse all keys", func() {
		bad := key("a", "bad")
		bad.Hash = "{SHA}x"
		Expect(keysIn(newBuild().Apply(with(bad, key("a", "y:z"))).Snapshots["gw"])).To(Equal([]string{"-", "a/x"}))
	})

	It("leaves a route closed that has two API key filters", func() {
		found, conditions := statuses(with(keyed("g", `{"keys":"b"}`), &model.RouteFilter{Service: "shop", Route: "guarded", Filter: "g"}))
		Expect(found).To(Equal(map[string]uint32{"open": 0, "guarded": 503}))
		Expect(conditions["service shop"]).To(HaveLen(1))
		Expect(conditions["service shop"][0].Message).To(ContainSubstring("has filters f and g, of which only one can say which API keys are accepted"))
		found, _ = statuses(with(keyed("g", `{"keys":"b"}`), &model.ServiceFilter{Service: "shop", Filter: "f"}, &model.ServiceFilter{Service: "shop", Filter: "g"}))
		Expect(found).To(Equal(map[string]uint32{"unavailable": 503}))
	})
})
