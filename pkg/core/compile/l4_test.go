package compile_test

import (
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// l4Tree is a service of a mode in front of an upstream, with filters.
func l4Tree(mode string, id int64, port int, fqdn string, filters ...*model.Filter) *model.ServiceTree {
	svc := model.NewService()
	svc.Name, svc.Mode, svc.ID, svc.Port, svc.FQDN = fmt.Sprint("s", id), mode, id, port, fqdn
	u := model.NewUpstream()
	u.Name, u.IP, u.Port = "u", "192.0.2.1", 1
	tree := &model.ServiceTree{Service: svc, Routes: []*model.RouteTree{{
		Route: &model.Route{Service: svc.Name, Name: "root", Prefix: "/"}, Upstreams: []*model.Upstream{u},
	}}}
	for _, f := range filters {
		tree.Filters = append(tree.Filters, f.Parse())
	}
	return tree
}

var _ = Describe("a service of mode tcp, tls or udp", func() {
	It("lets nobody in if something of it cannot be enforced", func() {
		addresses := &model.Filter{Name: "ip", Type: model.FilterIPAccess, Config: `{"deny":["192.0.2.7"]}`}
		s, conditions := compile.L4Service(l4Tree(model.ModeTCP, 1, 1, "*", addresses), nil, compile.Settings{})
		Expect(conditions).To(BeEmpty())
		Expect(s.Clusters).To(HaveLen(1))
		Expect(s.Deny).To(HaveLen(1))

		sealed := l4Tree(model.ModeTCP, 1, 1, "*")
		sealed.Secrets = []*model.Secret{{Name: "pair", Cert: "c", PrivateKey: "k"}}
		two := l4Tree(model.ModeUDP, 1, 1, "*")
		other := model.NewUpstream()
		other.Name, other.IP, other.Port, other.ConnectTimeoutSeconds = "v", "192.0.2.2", 1, 9
		two.Routes[0].Upstreams = append(two.Routes[0].Upstreams, other)
		path := l4Tree(model.ModeTLS, 1, 1, "a.example")
		path.Routes[0].Route.Prefix = "/a"
		ports := l4Tree(model.ModeTCP, 1, 1, "*")
		ports.Routes[0].Route.Config.Ports = []int{81}
		hidden := l4Tree(model.ModeTLS, 1, 1, "a.example")
		hidden.Routes[0].Upstreams[0].Protocol = "tls"
		routes := l4Tree(model.ModeTCP, 1, 1, "*")
		routes.Routes = append(routes.Routes, routes.Routes[0])
		for what, tree := range map[string]*model.ServiceTree{
			"has filter f of type vh_filter_maintenance": l4Tree(model.ModeTCP, 1, 1, "*", &model.Filter{Name: "f", Type: model.FilterMaintenance, Config: `{}`}),
			"has filter f of type vh_filter_ipaccess":    l4Tree(model.ModeTCP, 1, 1, "*", &model.Filter{Name: "f", Type: model.FilterIPAccess, Config: `{"deny":["nobody"]}`}),
			"has filter where of type vh_filter_ipaccess": l4Tree(model.ModeTCP, 1, 1, "*", &model.Filter{
				Name: "where", Type: model.FilterIPAccess, Config: `{"deny_countries":["DE"]}`,
			}),
			"whose key cannot be opened": sealed, "only their weights may differ": two, "Route_prefix must be": path, "may have timeouts.idle": ports,
			"which has Upstream_protocol tls": hidden, "has 2 routes": routes,
		} {
			open := func(string, string) (string, error) { return "", errors.New("another key") }
			s, conditions := compile.L4Service(tree, compile.Pairs(tree, open), compile.Settings{Open: open})
			Expect(s.Clusters).To(BeEmpty(), what)
			Expect(conditions).To(HaveLen(1), what)
			Expect(conditions[0].Message).To(And(ContainSubstring(what), HaveSuffix("and lets nobody in")))
		}
	})

	It("verifies clients, or lets nobody in", func() {
		verifies := func(pairs []*ir.Pair, ca *model.Secret) (*compile.L4, []model.Condition) {
			tree := l4Tree(model.ModeTCP, 1, 5432, "*")
			tree.Service.ClientCACertificate, tree.ClientCA = "staff", ca
			if pairs != nil {
				tree.Secrets = []*model.Secret{{Name: "pair"}}
			}
			s, conditions := compile.L4Service(tree, pairs, compile.Settings{})
			proxy := model.NewProxy()
			proxy.Name = "gw"
			out := compile.L4Of(&model.ProxyTree{Proxy: proxy}, compile.Settings{}, []*model.ServiceTree{tree}, map[string]*ir.L4Service{s.Name: s})
			return &out, conditions
		}
		pairs, staff := []*ir.Pair{{Secret: "pair"}}, &model.Secret{Name: "staff", Cert: "pem"}
		out, conditions := verifies(pairs, staff)
		Expect(conditions).To(BeEmpty())
		Expect(out.Listeners[0].Services[0].TLS).To(Equal(&ir.L4TLS{MinVersion: "1.2", Pairs: pairs, ClientCA: &ir.Authorities{Secret: "staff", PEM: "pem"}}))

		for what, wrong := range map[string]struct {
			pairs []*ir.Pair
			ca    *model.Secret
		}{
			"has no certificate itself":                      {nil, staff},
			"secret staff has no certificate authority, and": {pairs, &model.Secret{Name: "staff"}},
			"secret staff has no certificate authority":      {pairs, nil},
		} {
			out, conditions := verifies(wrong.pairs, wrong.ca)
			Expect(conditions).To(HaveLen(1), what)
			Expect(conditions[0].Message).To(And(ContainSubstring(what), HaveSuffix("and lets nobody in")))
			Expect(out.Listeners[0].Services[0].Clusters).To(BeEmpty(), what)
		}
	})

	It("has its port if no older service wants it, and no port of its proxy", func() {
		proxy := model.NewProxy()
		proxy.Name = "gw"
		var trees []*model.ServiceTree
		compiled := map[string]*ir.L4Service{}
		add := func(tree *model.ServiceTree) {
			trees = append(trees, tree)
			compiled[tree.Service.Name], _ = compile.L4Service(tree, nil, compile.Settings{})
		}
		add(l4Tree(model.ModeTCP, 9, 5432, "*"))
		add(l4Tree(model.ModeTCP, 2, 5432, "*"))
		add(l4Tree(model.ModeUDP, 3, 5432, "*"))
		add(l4Tree(model.ModeTLS, 4, 5432, "a.example"))
		add(l4Tree(model.ModeTLS, 5, 993, "A.example"))
		add(l4Tree(model.ModeTLS, 6, 993, "a.Example"))
		add(l4Tree(model.ModeTLS, 7, 993, "b.example"))
		add(l4Tree(model.ModeTCP, 8, 8080, "*"))
		add(l4Tree(model.ModeUDP, 10, 8443, "*"))
		add(l4Tree(model.ModeTLS, 11, 8443, "c.example"))
		out := compile.L4Of(&model.ProxyTree{Proxy: proxy}, compile.Settings{}, trees, compiled)
		got := map[string][]string{}
		for _, l := range out.Listeners {
			for _, s := range l.Services {
				at := fmt.Sprint(l.Port, l.UDP)
				got[at] = append(got[at], s.Name)
			}
		}
		Expect(got).To(Equal(map[string][]string{"993 false": {"s5", "s7"}, "5432 false": {"s2"}, "5432 true": {"s3"}}))
		Expect(out.Passthrough).To(HaveLen(1))
		lost := map[string]string{}
		for _, c := range out.Conditions {
			lost[c.Key.Attached().Name()] = c.Message
		}
		Expect(lost).To(And(HaveLen(5),
			HaveKeyWithValue("s9", ContainSubstring("wants TCP port 5432, which service s2 has")),
			HaveKeyWithValue("s4", ContainSubstring("wants TCP port 5432, which service s2 has")),
			HaveKeyWithValue("s6", ContainSubstring("wants the host a.Example, which service s5 of mode tls has")),
			HaveKeyWithValue("s8", ContainSubstring("the Http_port of proxy gw")),
			HaveKeyWithValue("s10", ContainSubstring("kept for HTTP/3")),
		))
	})

	It("has no port of a proxy that has a hundred", func() {
		proxy := model.NewProxy()
		var trees []*model.ServiceTree
		compiled := map[string]*ir.L4Service{}
		for i := range int64(101) {
			tree := l4Tree(model.ModeTCP, i+1, 20000+int(i), "*")
			trees = append(trees, tree)
			compiled[tree.Service.Name], _ = compile.L4Service(tree, nil, compile.Settings{})
		}
		out := compile.L4Of(&model.ProxyTree{Proxy: proxy}, compile.Settings{}, trees, compiled)
		Expect(out.Listeners).To(HaveLen(100))
		Expect(out.Conditions).To(HaveLen(1))
		Expect(out.Conditions[0].Message).To(ContainSubstring("100 is the most that a proxy has"))
	})
})
