package pipeline_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("services of mode tcp, tls and udp", func() {
	var (
		b        *pipeline.Build
		revision int64
	)
	BeforeEach(func() {
		var err error
		b, err = pipeline.NewBuild(compile.Settings{})
		Expect(err).NotTo(HaveOccurred())
		revision = 0
	})
	apply := func(objects ...model.Object) pipeline.Result {
		revision++
		change := model.Change{Revision: revision, ID: "x"}
		for _, o := range objects {
			change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
		}
		return b.Apply(change)
	}
	service := func(id int64, name, mode, fqdn string, port int) model.Object {
		s := model.NewService()
		s.ID, s.Name, s.Mode, s.FQDN, s.Port = id, name, mode, fqdn, port
		return s
	}
	attach := func(id int64, name string) model.Object {
		return &model.ProxyService{ID: id, Proxy: "gw", Service: name}
	}
	listener := func(r pipeline.Result, name string) *snapshot.Resource {
		for _, l := range r.Snapshots["gw"].Listeners {
			if l.Name == name {
				return l
			}
		}
		return nil
	}

	It("follow what the proxy and its other services have, whatever comes first", func() {
		proxy := model.NewProxy()
		proxy.ID, proxy.Name = 1, "gw"
		r := apply(proxy, service(1, "pass", model.ModeTLS, "a.example", 0), service(2, "db", model.ModeTCP, "*", 5432),
			&model.Route{ID: 1, Service: "db", Name: "root", Prefix: "/"}, attach(1, "pass"), attach(2, "db"))
		Expect(listener(r, "https-0.0.0.0:8443")).NotTo(BeNil(), "without a certificate")
		Expect(listener(r, "tcp-0.0.0.0:5432")).NotTo(BeNil())
		first := listener(r, "https-0.0.0.0:8443").Version

		r = apply(service(3, "web", model.ModeHTTP, "b.example", 0), attach(3, "web"))
		Expect(listener(r, "https-0.0.0.0:8443").Version).To(Equal(first), "nothing of it is below a wildcard")
		r = apply(service(3, "web", model.ModeHTTP, "A.example", 0))
		Expect(r.Conditions["proxy gw"]).To(ContainElement(HaveField("Key", model.ProxyServiceKey("gw", "web"))), "the younger one")
		r = apply(service(1, "pass", model.ModeTLS, "*.example", 0))
		Expect(r.Conditions["proxy gw"]).To(BeEmpty())
		second := listener(r, "https-0.0.0.0:8443").Version
		r = apply(service(3, "web", model.ModeHTTP, "c.example", 0))
		Expect(listener(r, "https-0.0.0.0:8443").Version).NotTo(Equal(second), "the name below the wildcard is another one")

		moved := *proxy
		moved.HTTPSPort = 5432
		r = apply(&moved)
		Expect(r.Conditions["proxy gw"]).To(ContainElement(HaveField("Key", model.ProxyServiceKey("gw", "db"))))
		Expect(listener(r, "https-0.0.0.0:5432")).NotTo(BeNil())
		Expect(listener(r, "tcp-0.0.0.0:5432")).To(BeNil())
		apply(proxy)
		revision++
		r = b.Apply(model.Change{Revision: revision, ID: "x", Entries: []model.Entry{{Key: model.ProxyServiceKey("gw", "pass")}}})
		Expect(listener(r, "https-0.0.0.0:8443")).To(BeNil())
		Expect(listener(r, "tcp-0.0.0.0:5432")).NotTo(BeNil())
		r = apply(service(2, "db", model.ModeHTTP, "db.example", 0))
		Expect(r.Conditions["proxy gw"]).To(BeEmpty())
		Expect(listener(r, "tcp-0.0.0.0:5432")).To(BeNil(), "it is a service for requests now")
		r = apply(service(2, "db", model.ModeUDP, "*", 5432))
		Expect(listener(r, "udp-0.0.0.0:5432")).To(BeNil(), "it has no upstream, so that nothing would answer")
	})
})
