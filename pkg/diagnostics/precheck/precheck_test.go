package precheck_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/precheck"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

func TestPrecheck(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "precheck")
}

// db is the database of the suite; no spec stores anything in it.
var db store.Store

// authority is a certificate in PEM. valid is its placeholder.
var authority string

const valid = "valid"

var _ = BeforeSuite(func(ctx SpecContext) {
	dir := GinkgoT().TempDir()
	sealer, _, err := seal.OpenOrCreate(filepath.Join(dir, "seal.key"))
	Expect(err).NotTo(HaveOccurred())
	db, err = sqlstore.Open(ctx, sqlstore.Options{URL: "sqlite://" + filepath.Join(dir, "gatehouse.db"), Sealer: sealer})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() error { return db.Close() })

	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	Expect(err).NotTo(HaveOccurred())
	authority = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
})

// try stores objects and then runs a change, in one transaction that is rolled
// back, and checks what the change wrote. reads is how often the check read from
// the store.
func try(stored []model.Object, c func(store.Writer) error) (reads int, err error) {
	GinkgoHelper()
	givenUp := errors.New("given up")
	_, failed := db.Write(context.Background(), store.Origin{Actor: "test"}, func(w store.Writer) error {
		if err := insert(stored...)(w); err != nil {
			return err
		}
		before := w.Count().Total()
		if err := c(w); err != nil {
			return err
		}
		counted := &counter{Reader: w}
		err = precheck.Rules{}.Check(counted, behind(w, before))
		reads = counted.reads
		return givenUp
	})
	Expect(failed).To(BeIdenticalTo(givenUp))
	return reads, err
}

// behind returns what a transaction has written after the first n objects.
func behind(w store.Writer, n int) store.Changes {
	GinkgoHelper()
	var list []store.Written
	for c, err := range w.Written()() {
		Expect(err).NotTo(HaveOccurred())
		list = append(list, c)
	}
	return store.ChangesOf(list[n:])
}

// counter counts the reads, and the lists among them.
type counter struct {
	store.Reader
	reads, lists int
}

func (c *counter) Get(key model.Key) (model.Object, error) {
	c.reads++
	return c.Reader.Get(key)
}

func (c *counter) List(q store.Query) ([]model.Object, error) {
	c.reads++
	c.lists++
	return c.Reader.List(q)
}

// insert stores copies, because the store modifies what it receives.
func insert(objs ...model.Object) func(store.Writer) error {
	return func(w store.Writer) error {
		for _, obj := range objs {
			if err := w.Insert(fresh(obj)); err != nil {
				return err
			}
		}
		return nil
	}
}

func replace(obj model.Object) func(store.Writer) error {
	return func(w store.Writer) error { return w.Replace(fresh(obj)) }
}

// fresh returns a copy in which a real certificate replaces valid.
func fresh(obj model.Object) model.Object {
	c := reflect.New(reflect.TypeOf(obj).Elem())
	c.Elem().Set(reflect.ValueOf(obj).Elem())
	obj = c.Interface().(model.Object)
	if s, ok := obj.(*model.Secret); ok && s.Cert == valid {
		s.Cert = authority
	}
	return obj
}

func remove(keys ...model.Key) func(store.Writer) error {
	return func(w store.Writer) error {
		for _, key := range keys {
			if err := w.Remove(key); err != nil {
				return err
			}
		}
		return nil
	}
}

func upstream(name, ca string) *model.Upstream {
	u := model.NewUpstream()
	u.Name, u.IP, u.Port = name, "192.0.2.1", 443
	if ca != "" {
		u.Protocol, u.ValidationCACertificate = "tls", ca
	}
	return u
}

func service(name, fqdn string) *model.Service {
	return &model.Service{Name: name, FQDN: fqdn, HTTPS: model.HTTPSBoth}
}

func route(name, prefix string) *model.Route {
	return &model.Route{Service: "shop", Name: name, Prefix: prefix}
}

// badRoute has a header name that Envoy does not accept.
func badRoute() *model.Route {
	r := route("bad", "/")
	r.Config.Headers = []model.ValueMatch{{Name: "a\nb"}}
	return r
}

func uses(route, upstream string) *model.RouteUpstream {
	return &model.RouteUpstream{Service: "shop", Route: route, Upstream: upstream}
}

// copied is said of the set of bigSet.
const copied = "the service has filter json, whose descriptor set is copied into every route: at most 69 routes may have one of this size"

// setOf is a filter with a descriptor set of one service and of messages.
func setOf(messages int) *model.Filter {
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("shop.proto"), Package: proto.String("shop"), Syntax: proto.String("proto3"),
		Service: []*descriptorpb.ServiceDescriptorProto{{Name: proto.String("Books"), Method: []*descriptorpb.MethodDescriptorProto{{
			Name: proto.String("Ping"), InputType: proto.String(".shop.Message00000"), OutputType: proto.String(".shop.Message00000"),
		}}}},
	}
	for n := range messages {
		file.MessageType = append(file.MessageType, &descriptorpb.DescriptorProto{Name: proto.String(fmt.Sprintf("Message%05d", n))})
	}
	set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	Expect(err).NotTo(HaveOccurred())
	return &model.Filter{
		Name: "json", Type: model.FilterGRPCJSON,
		Config: model.JSON(`{"services":["shop.Books"],"auto_mapping":true,"descriptor_set":"` + base64.StdEncoding.EncodeToString(set) + `"}`),
	}
}

// bigSet has some 240,000 bytes.
func bigSet() *model.Filter   { return setOf(15000) }
func smallSet() *model.Filter { return setOf(1) }

func onShop() *model.ServiceFilter { return &model.ServiceFilter{Service: "shop", Filter: "json"} }

// manyRoutes are a service with routes that use an upstream.
func manyRoutes(n int) []model.Object {
	objs := []model.Object{service("shop", "shop.example.com"), upstream("plain", "")}
	for i := range n {
		objs = append(objs, route(fmt.Sprint("r", i), "/"))
	}
	for i := range n {
		objs = append(objs, uses(fmt.Sprint("r", i), "plain"))
	}
	return objs
}

func proxy(ip string, port int) *model.Proxy {
	p := model.NewProxy()
	p.Name, p.ListenIP, p.HTTPPort = "gw", ip, port
	return p
}

// filter is unreadable. No API would store it.
func filter() *model.Filter {
	return &model.Filter{Name: "odd", Type: model.FilterRateLimit, Config: `{"descriptors":[{"what":"ever"}]}`}
}

// login names secrets that do not exist. Browsers return to a path.
func login(path string) *model.Filter {
	return &model.Filter{Name: "staff", Type: model.FilterOIDC, Config: model.JSON(
		`{"client_id":"a","client_secret":{"secret":"nowhere"},"cookie_secret":"nowhere","issuer":"https://idp.test","redirect_uri":"` + path + `"}`)}
}

func filtered(route string) *model.RouteFilter {
	return &model.RouteFilter{Service: "shop", Route: route, Filter: "odd"}
}

const noFilter = "the route has filter odd, which cannot be read ("

func ca(cert string) *model.Secret { return &model.Secret{Name: "ca", Cert: cert} }

// namesEmpty is the message about the upstream itself, noAuthority about a route
// that uses it.
const namesEmpty = `Upstream_validation_cacertificate of /upstream/t names secret "ca", which has no certificate`

const noAuthority = "the route has upstream t, whose certificate authority has no certificate, and answers 503"

// refusal returns the Unworkable error of a check.
func refusal(err error) *model.Error {
	GinkgoHelper()
	e, ok := errors.AsType[*model.Error](err)
	Expect(ok).To(BeTrue(), "%v", err)
	Expect(e.Kind).To(Equal(model.Unworkable))
	return e
}

type change = func(store.Writer) error

func websocket(name string) *model.Route {
	r, on := route(name, "/ws"), true
	r.Config.Websocket = &on
	return r
}

var _ = Describe("Check", func() {
	shop := func(more ...model.Object) []model.Object {
		return append([]model.Object{service("shop", "shop.example.com"), route("root", "/")}, more...)
	}

	DescribeTable("refuses what cannot work, and states the object and the reason", func(stored []model.Object, c change, path, why string) {
		_, err := try(stored, c)
		Expect(refusal(err).Path).To(Equal(path))
		Expect(refusal(err).Message).To(HavePrefix(path + " cannot become a working configuration: " + why))
	},
		Entry("an upstream whose authority has no certificate",
			[]model.Object{ca("")}, insert(upstream("t", "ca")), "/upstream/t", namesEmpty),
		Entry("a link to such an upstream",
			shop(ca(""), upstream("t", "ca")), insert(uses("root", "t")), "/service/shop/route/root", noAuthority),
		Entry("a route with such an upstream",
			shop(ca(""), upstream("t", "ca"), uses("root", "t")), replace(route("root", "/new")), "/service/shop/route/root", noAuthority),
		Entry("an authority that loses its certificate",
			[]model.Object{ca(valid), upstream("t", "ca")}, replace(ca("")), "/secret/ca", namesEmpty),
		Entry("a route that Envoy refuses", shop(), insert(badRoute(), upstream("u", ""), uses("bad", "u")), "/service/shop/route/bad", ""),
		Entry("a host that Envoy refuses", nil, insert(service("bad", "a\nb")), "/service/bad", ""),
		Entry("a proxy with an invalid port", nil, insert(proxy("0.0.0.0", 70000)), "/proxy/gw", ""),
		Entry("an upstream with an invalid port", nil, insert(func() *model.Upstream { u := upstream("u", ""); u.Port = 70000; return u }()), "/upstream/u", ""),
		Entry("rates that an engine refuses", nil, insert(&model.GlobalConfig{
			Name: "rates", Type: model.GlobalConfigRateLimit, Config: `{"domain":"d","descriptors":[{"key":"a"},{"key":"a"}]}`,
		}), "/globalconfig/rates", "the rate-limit engine refuses this configuration"),
		Entry("a login that cannot be read", nil, insert(login("/one,two")), "/filter/staff", "the service has filter staff, which cannot be read ("),
		Entry("a login of proxies that cannot be read", nil, insert(&model.GlobalConfig{
			Name: "login", Type: model.GlobalConfigOAuth, Config: `{"colour":"red"}`,
		}), "/globalconfig/login", "globalconfig login cannot be enforced: it cannot be read ("),
		Entry("the last of more objects than fit on a page", []model.Object{ca("")},
			insert(append(manyRoutes(1100), upstream("t", "ca"))...), "/upstream/t", namesEmpty),
		Entry("an upstream of a route that was created in the same transaction, pages earlier", []model.Object{ca(""), upstream("t", "ca")},
			insert(append(manyRoutes(1100), uses("r1099", "t"))...), "/service/shop/route/r1099", noAuthority),
		Entry("a filter", nil, insert(filter()), "/filter/odd", noFilter),
		Entry("a filter that is changed", []model.Object{filter()}, replace(func() *model.Filter { f := filter(); f.Tags = model.Tags{"x"}; return f }()), "/filter/odd", noFilter),
		Entry("a link to a filter", shop(filter()), insert(filtered("root")), "/service/shop/route/root", noFilter),
		Entry("a link of a service to a filter", shop(filter()), insert(&model.ServiceFilter{Service: "shop", Filter: "odd"}), "/service/shop",
			"the service has filter odd, which cannot be read ("),
		Entry("a route with a filter", shop(filter(), filtered("root")), replace(route("root", "/new")), "/service/shop/route/root", noFilter),
		Entry("a new route with a filter", shop(filter()), insert(route("new", "/"), filtered("new")), "/service/shop/route/new", noFilter),
		Entry("a descriptor set that Envoy would refuse", nil, insert(&model.Filter{Name: "json", Type: model.FilterGRPCJSON, Config: `{"descriptor_set":"CgA=","services":["shop.Books"]}`}), "/filter/json",
			"the route has filter json, which cannot be enforced (descriptor_set is not valid: "),
		Entry("calls on a route that rewrites paths", shop(), insert(&model.Route{Service: "shop", Name: "old", Prefix: "/old", Config: model.RouteConfig{Rewrite: &model.Rewrite{Prefix: "/new"}}},
			&model.Filter{Name: "json", Type: model.FilterGRPCJSON, Config: `{"services":["shop.Books"],"auto_mapping":true,
			"descriptor_set":"CksKCnNob3AucHJvdG8SBHNob3AiBgoEQm9vazInCgVCb29rcxIeCgRQaW5nEgouc2hvcC5Cb29rGgouc2hvcC5Cb29rYgZwcm90bzM="}`},
			&model.RouteFilter{Service: "shop", Route: "old", Filter: "json"}), "/service/shop/route/old",
			"the route has filter json, a http_filter_grpcjson, and rewrites paths in its Route_config"),
		Entry("a descriptor set for more routes than may have a copy", append(manyRoutes(70), bigSet()), insert(onShop()), "/service/shop", copied),
		Entry("a route more than may have a copy of a descriptor set", append(manyRoutes(69), bigSet(), onShop()), insert(route("new", "/")), "/service/shop/route/new", copied),
		Entry("a descriptor set that grows", append(manyRoutes(70), smallSet(), onShop()), replace(bigSet()), "/filter/json", copied),
		Entry("a limit of bodies on a websocket route", shop(&model.Filter{Name: "small", Type: model.FilterBodyLimit, Config: `{"bytes":1}`}),
			insert(websocket("ws"), &model.RouteFilter{Service: "shop", Route: "ws", Filter: "small"}), "/service/shop/route/ws",
			"the route has filter small, a body limit, and websocket in its Route_config, whose requests would wait forever for the end of a body,"),
		Entry("the first bad object of many",
			shop(ca(""), upstream("u", "")), insert(uses("root", "u"), upstream("s", ""), upstream("t", "ca")), "/upstream/t", namesEmpty),
	)

	DescribeTable("accepts", func(stored []model.Object, c change) {
		_, err := try(stored, c)
		Expect(err).NotTo(HaveOccurred())
	},
		Entry("no change", nil, insert()),
		Entry("a descriptor set for as many routes as may have a copy", manyRoutes(69), insert(bigSet(), onShop())),
		Entry("a descriptor set that shrinks", append(manyRoutes(70), bigSet(), onShop()), replace(smallSet())),
		Entry("a whole gateway in one transaction", nil, insert(shop(ca(valid), upstream("t", "ca"), uses("root", "t"), proxy("::", 80))...)),
		Entry("more routes than fit on a page", []model.Object{ca(valid), upstream("t", "ca")}, insert(append(manyRoutes(600), uses("r0", "t"), uses("r599", "t"))...)),
		Entry("a route without an upstream", shop(), insert(route("new", "/new"))),
		Entry("an upstream of weight 0", nil, insert(func() *model.Upstream { u := upstream("u", ""); u.Weight = 0; return u }())),
		Entry("a secret that no upstream needs", nil, insert(ca(""))),
		Entry("an authority that gets its certificate", []model.Object{ca(""), upstream("t", "ca")}, replace(ca(valid))),
		Entry("the removal of a link to what cannot work",
			shop(ca(""), upstream("t", "ca"), uses("root", "t")), remove(uses("root", "t").Key())),
		Entry("the deletion of what cannot work", []model.Object{ca(""), upstream("t", "ca")}, remove(model.UpstreamKey("t"))),
		Entry("a route that is created and deleted again", shop(ca(""), upstream("t", "ca")), func(w store.Writer) error {
			return errors.Join(insert(route("new", "/"), uses("new", "t"))(w), remove(uses("new", "t").Key(), model.RouteKey("shop", "new"))(w))
		}),
		Entry("a login whose secrets are created later", nil, insert(login("/one"))),
		Entry("a different object from the one that cannot work", shop(ca(""), upstream("t", "ca"), uses("root", "t")), insert(route("new", "/new"))),
	)

	It("reads no links of what the transaction has created, on however many pages", func(ctx SpecContext) {
		givenUp := errors.New("given up")
		_, err := db.Write(ctx, store.Origin{Actor: "test"}, func(w store.Writer) error {
			Expect(insert(manyRoutes(1100)...)(w)).To(Succeed())
			counted := &counter{Reader: w}
			Expect(precheck.Rules{}.Check(counted, w.Written())).To(Succeed())
			Expect(counted.lists).To(BeZero())
			return givenUp
		})
		Expect(err).To(BeIdenticalTo(givenUp))
	})

	It("reads what the change needs, and nothing else", func() {
		small, large := shop(ca(valid), upstream("t", "ca"), uses("root", "t")), shop(ca(valid), upstream("t", "ca"), uses("root", "t"))
		for i := range 50 {
			name := fmt.Sprintf("r%d", i)
			large = append(large, route(name, "/"), uses(name, "t"))
		}
		for what, c := range map[string]change{
			"an upstream": replace(func() *model.Upstream { u := upstream("t", "ca"); u.Port = 1; return u }()),
			"a route":     replace(route("root", "/new")),
			"a secret":    replace(&model.Secret{Name: "ca", Cert: valid, SNI: "new.example.com"}),
		} {
			few, err := try(small, c)
			Expect(err).NotTo(HaveOccurred(), what)
			many, err := try(large, c)
			Expect(err).NotTo(HaveOccurred(), what)
			Expect(many).To(And(Equal(few), BeNumerically(">", 0)), what)
		}
	})

	It("compiles a route once, however many of its links are new", func() {
		one, err := try(shop(upstream("a", "")), insert(uses("root", "a")))
		Expect(err).NotTo(HaveOccurred())
		stored, links := shop(), []model.Object{}
		for i := range 5 {
			name := fmt.Sprintf("u%d", i)
			stored, links = append(stored, upstream(name, "")), append(links, uses("root", name))
		}
		five, err := try(stored, insert(links...))
		Expect(err).NotTo(HaveOccurred())
		Expect(five - one).To(Equal(4)) // the other upstreams
	})

	It("passes on that the database is unavailable", func() {
		away := &model.Error{Kind: model.Unavailable, Message: "the database is away"}
		written := []store.Written{{Key: model.RouteKey("shop", "root"), After: route("root", "/")}}
		Expect(precheck.Rules{}.Check(failing{away}, store.ChangesOf(written))).To(BeIdenticalTo(away))
	})
})

// failing is a reader whose reads fail.
type failing struct{ err error }

func (f failing) Revision() (int64, error)                       { return 0, f.err }
func (f failing) Mark() (model.Mark, error)                      { return model.Mark{}, f.err }
func (f failing) Get(model.Key) (model.Object, error)            { return nil, f.err }
func (f failing) List(store.Query) ([]model.Object, error)       { return nil, f.err }
func (f failing) Revisions(int64, int) ([]store.Revision, error) { return nil, f.err }

func (f failing) RevisionsOf(store.RevisionQuery, int64, int) ([]store.Revision, error) {
	return nil, f.err
}
func (f failing) Entries(int64) store.Changes                 { return store.ChangesOf(nil) }
func (f failing) Prefetch([]model.Key) error                  { return f.err }
func (f failing) ServicesOf(string) ([]*model.Service, error) { return nil, f.err }
func (f failing) PortedServices() ([]*model.Service, error)   { return nil, f.err }
func (f failing) PrefetchHosts([]string) error                { return f.err }
