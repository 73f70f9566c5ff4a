package translate_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

// universe makes objects with few names, so that they collide.
type universe struct {
	*rand.Rand
	clock int
}

func one[T any](u *universe, list ...T) T { return list[u.IntN(len(list))] }

func (u *universe) chance(percent int) bool { return u.IntN(100) < percent }

func (u *universe) meta(names ...string) metav1.ObjectMeta {
	u.clock++
	return metav1.ObjectMeta{
		Namespace: one(u, "shop", "team-b"), Name: one(u, names...), Generation: int64(u.clock),
		CreationTimestamp: metav1.NewTime(time.Unix(int64(u.IntN(5)), 0)),
	}
}

func (u *universe) namespace() gatewayv1.Namespace {
	return one[gatewayv1.Namespace](u, "", "", "", "shop", "team-b")
}

func (u *universe) secretName() gatewayv1.ObjectName {
	return one[gatewayv1.ObjectName](u, "pair", "ca", "value", "none")
}

func (u *universe) object() metav1.Object {
	switch u.IntN(13) {
	case 12:
		c := &gatewayv1.Consumer{ObjectMeta: u.meta("ann", "bob")}
		for range u.IntN(3) {
			c.Spec.Keys = append(c.Spec.Keys, gatewayv1.ConsumerKey{SecretName: "value", Key: one(u, "a", "b")})
			c.Spec.Groups = append(c.Spec.Groups, one[gatewayv1.GroupName](u, "gold", "x@y"))
		}
		return c
	case 0, 1, 2, 3:
		return u.host()
	case 4, 5:
		return &gatewayv1.RouteFilter{ObjectMeta: u.meta("limit", "headers", "login"), Spec: u.filter()}
	case 6:
		return &gatewayv1.GlobalConfig{ObjectMeta: u.meta("oauth", "limits"), Spec: u.globalConfig()}
	case 7:
		return u.grant()
	case 8, 9:
		return u.service()
	case 10:
		return u.slice()
	}
	return u.secret()
}

func (u *universe) host() *gatewayv1.GatewayHost {
	h := &gatewayv1.GatewayHost{ObjectMeta: u.meta("a", "b", "c", "d")}
	h.Spec.Proxy = one[gatewayv1.ProxyName](u, "", "", "gatehouse", "edge", "elsewhere")
	h.Spec.VirtualHost.FQDN = one(u, "a.example", "A.example", "b.example", "*.example", "*", "-bad-")
	h.Spec.Public = u.chance(20)
	if u.chance(40) {
		t := &gatewayv1.TLS{SecretName: u.secretName(), SecretNamespace: u.namespace(), HTTPS: one(u, "", "both", "redirect", "only", "never")}
		if u.chance(30) {
			t.ClientCASecret = &gatewayv1.SecretReference{Name: u.secretName(), Namespace: u.namespace()}
		}
		h.Spec.VirtualHost.TLS = t
	}
	h.Spec.Filters = u.filters()
	for range u.IntN(4) {
		r := gatewayv1.Route{Name: one(u, "", "", "", "r1", "r2"), Filters: u.filters()}
		if u.chance(80) {
			r.Conditions = []gatewayv1.Condition{one(u,
				gatewayv1.Condition{Prefix: new(gatewayv1.URLPath("/"))}, gatewayv1.Condition{Prefix: new(gatewayv1.URLPath("/a"))},
				gatewayv1.Condition{Exact: new(gatewayv1.URLPath("/a")), Methods: []gatewayv1.Method{"GET"}},
				gatewayv1.Condition{Regex: new("/[")}, gatewayv1.Condition{Headers: []gatewayv1.HeaderMatch{{Name: "x", Exact: new("1")}}})}
		}
		if u.chance(10) {
			r.Timeouts = &gatewayv1.Timeouts{Request: one[gatewayv1.Duration](u, "1s", "25h", "soon")}
		}
		for range u.IntN(3) {
			b := gatewayv1.Backend{Name: one[gatewayv1.ObjectName](u, "web", "api"), Namespace: u.namespace(), Port: one(u, intstr.FromInt32(80), intstr.FromString("http"), intstr.FromInt32(9))}
			if u.chance(30) {
				b.Weight = new(int32(one(u, 0, 10, 100)))
			}
			if u.chance(20) {
				b.Protocol = one(u, "h2c", "tls")
				b.TLS = &gatewayv1.BackendTLS{CASecret: &gatewayv1.SecretReference{Name: u.secretName(), Namespace: u.namespace()}}
			}
			r.Services = append(r.Services, b)
		}
		h.Spec.Routes = append(h.Spec.Routes, r)
	}
	return h
}

func (u *universe) filters() (list []gatewayv1.FilterReference) {
	for _, name := range []gatewayv1.ObjectName{"limit", "headers", "login", "none"} {
		if u.chance(8) {
			list = append(list, gatewayv1.FilterReference{Name: name})
		}
	}
	return list
}

func (u *universe) filter() gatewayv1.RouteFilterSpec {
	s := one(u,
		gatewayv1.RouteFilterSpec{Type: "route_filter_ratelimit", RouteFilterConfig: gatewayv1.RouteFilterConfig{Config: `{"descriptors":[{"remote_address":"x"}]}`}},
		gatewayv1.RouteFilterSpec{Type: "route_filter_headers", RouteFilterConfig: gatewayv1.RouteFilterConfig{Config: `{"request":{"set":{"x-a":"1"}}}`}},
		gatewayv1.RouteFilterSpec{Type: "route_filter_headers", RouteFilterConfig: gatewayv1.RouteFilterConfig{Config: `{"request":{"set":{"x-a":"2"}}}`}},
		gatewayv1.RouteFilterSpec{Type: "route_filter_headers", RouteFilterConfig: gatewayv1.RouteFilterConfig{Config: `{`}},
		gatewayv1.RouteFilterSpec{Type: "route_filter_headers", RouteFilterConfig: gatewayv1.RouteFilterConfig{Config: `{"lists":["limit"]}`}},
		gatewayv1.RouteFilterSpec{Type: "vh_filter_ipaccess", RouteFilterConfig: gatewayv1.RouteFilterConfig{Config: `{"deny_lists":["headers"]}`}},
		gatewayv1.RouteFilterSpec{Type: "list_headers", RouteFilterConfig: gatewayv1.RouteFilterConfig{Config: `{"request":{"set":{"x-a":"3"}}}`}},
		gatewayv1.RouteFilterSpec{Type: "list_addresses", RouteFilterConfig: gatewayv1.RouteFilterConfig{Config: `{"addresses":[]}`}},
		gatewayv1.RouteFilterSpec{Type: "http_filter_oidc"}, gatewayv1.RouteFilterSpec{Type: "http_filter_oidc"}, gatewayv1.RouteFilterSpec{Type: "oidc"},
	)
	if s.Type == "http_filter_oidc" || s.Type == "oidc" {
		s.RouteFilterConfig.Config = fmt.Sprintf(`{"client_id":"x","client_secret":%s,"authorization_endpoint":"https://idp.example/a","token_endpoint":"https://idp.example/t",`+
			`"redirect_uri":"/cb","cookie_secret":%q%s}`, one(u, `"text"`, `"value"`, `{"secret":"value"}`, `{"secret":"none"}`), u.secretName(), one(u, "", `,"upstream":"web"`, `,"upstream":"api.80"`))
	}
	return s
}

func (u *universe) globalConfig() gatewayv1.GlobalConfigSpec {
	s := gatewayv1.GlobalConfigSpec{Type: one[gatewayv1.GlobalConfigType](u, "globalconfig_ratelimit", "globalconfig_oauth", "oauth"), Proxy: one[gatewayv1.ProxyName](u, "", "", "edge", "elsewhere")}
	s.Config = `{"domain":"d","descriptors":[{"key":"remote_address","rate_limit":{"unit":"second","requests_per_unit":1}}]}`
	if s.Type != "globalconfig_ratelimit" {
		s.Config = fmt.Sprintf(`{"openid_connect":{"provider":{"authorization_endpoint":"https://idp.example/a","token_endpoint":"https://idp.example/t"},"client_id":"x",`+
			`"client_secret":"value","client_secret_namespace":%q,"hmac_secret":%q,"redirect_url":"/cb","redirect_path_matcher":"/cb"}%s}`,
			u.namespace(), u.secretName(), one(u, "", fmt.Sprintf(`,"external_oauth_service":{"name":"web","namespace":%q,"port":80,"protocol":"tls"}`, u.namespace())))
	}
	if u.chance(40) {
		s.Type, s.Config = "vh_filter_ipaccess", one(u, `{"allow":["192.0.2.1"]}`, `{"allow_lists":["headers"]}`)
		for range u.IntN(3) {
			s.Exempt = append(s.Exempt, gatewayv1.ExemptHost{Namespace: one[gatewayv1.Namespace](u, "shop", "team-b"), Name: one[gatewayv1.ObjectName](u, "a", "b"), Routes: one(u, nil, []string{"r1"})})
		}
	}
	if u.chance(15) {
		s.Config = one(u, "{", "[]", "{}", `{"domain":""}`)
	}
	return s
}

func (u *universe) grant() *gatewayv1.ReferenceGrant {
	return &gatewayv1.ReferenceGrant{ObjectMeta: u.meta("g1", "g2"), Spec: gatewayv1.ReferenceGrantSpec{
		From: []gatewayv1.ReferenceGrantFrom{{Kind: one(u, "GatewayHost", "RouteFilter", "GlobalConfig"), Namespace: one[gatewayv1.Namespace](u, "shop", "team-b")}},
		To:   []gatewayv1.ReferenceGrantTo{{Kind: one(u, "Secret", "Service"), Name: one(u, "", "web", "value", "ca")}},
	}}
}

func (u *universe) service() *corev1.Service {
	s := &corev1.Service{ObjectMeta: u.meta("web", "api"), Spec: corev1.ServiceSpec{
		Ports: []corev1.ServicePort{{Name: "http", Port: one[int32](u, 80, 80, 81), AppProtocol: one(u, nil, nil, new("https"), new("kubernetes.io/h2c"))}},
	}}
	if u.chance(20) {
		s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, one(u, "backend.example", "10.0.0.1", "not a name")
	}
	if u.chance(20) {
		s.Annotations = map[string]string{gatewayv1.AnnotationUpstream: one(u, `{"strategy":"random"}`, `{"tls":{"caSecret":{"name":"ca"}}}`, `{`)}
	}
	return s
}

func (u *universe) slice() *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{ObjectMeta: u.meta("s1", "s2", "s3"), AddressType: one(u, discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6)}
	s.Labels = map[string]string{discoveryv1.LabelServiceName: one(u, "web", "api", "")}
	s.Ports = []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080))}}
	for range u.IntN(3) {
		address := fmt.Sprintf("10.0.0.%d", u.IntN(5))
		if s.AddressType == discoveryv1.AddressTypeIPv6 {
			address = fmt.Sprintf("fd00::%d", u.IntN(5))
		}
		s.Endpoints = append(s.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: one(u, nil, new(true), new(false))}})
	}
	return s
}

func (u *universe) secret() *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: u.meta("pair", "ca", "value")}
	s.Data = one(u,
		map[string][]byte{"tls.crt": []byte(pems.cert), "tls.key": []byte(pems.key)},
		map[string][]byte{"tls.crt": []byte(pems.cert), "tls.key": []byte(pems.otherKey)},
		map[string][]byte{"ca.crt": []byte(pems.authority)},
		map[string][]byte{"value": []byte("secret value " + one(u, "1", "2"))}, map[string][]byte{"value": []byte("<redacted>")},
		map[string][]byte{"a": nil, "b": nil}, nil,
	)
	return s
}

// database returns a store to which steps are applied.
func database(ctx context.Context) *sqlstore.Store {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	ring, _, err := seal.OpenOrCreate(filepath.Join(dir, "keys.json"))
	Expect(err).NotTo(HaveOccurred())
	db, err := sqlstore.Open(ctx, sqlstore.Options{URL: "sqlite://" + filepath.Join(dir, "mirror.db"), Sealer: ring})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(db.Close()).To(Succeed()) })
	return db
}

// applyTo applies operations under the rules of the store.
func applyTo(ctx context.Context, db store.Store, ops []translate.Op) {
	GinkgoHelper()
	_, err := db.Write(ctx, store.Origin{Actor: "spec"}, func(w store.Writer) error {
		for _, op := range ops {
			if err := applyOne(w, op); err != nil {
				return fmt.Errorf("%s: %w", op.Key.Path(), err)
			}
		}
		Expect(w.Warnings()).To(BeEmpty())
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
}

func applyOne(w store.Writer, op translate.Op) error {
	if op.Object == nil {
		return store.Delete(w, op.Key)
	}
	_, err := w.Get(op.Key)
	if g, ok := op.Object.(*model.GlobalConfig); ok && model.IsKind(err, model.NotFound) {
		return w.Restore(g)
	}
	_, err = store.Put(w, op.Object)
	return err
}

// state is the sum of steps.
type state struct {
	objects   map[model.Key]model.Object
	endpoints map[model.Key]*model.Endpoints
	said      map[translate.Ref]*translate.Object
}

func newState() state {
	return state{map[model.Key]model.Object{}, map[model.Key]*model.Endpoints{}, map[translate.Ref]*translate.Object{}}
}

// add adds a step, in which every object must be valid.
func (s state) add(step translate.Step) {
	GinkgoHelper()
	for _, op := range step.Ops {
		if op.Object == nil {
			Expect(s.objects).To(HaveKey(op.Key), "what is deleted")
			delete(s.objects, op.Key)
			continue
		}
		Expect(op.Object.Validate()).To(BeEmpty(), op.Key.Path())
		Expect(op.Object.Key()).To(Equal(op.Key))
		s.objects[op.Key] = op.Object
	}
	for key, endpoints := range step.Endpoints {
		if s.endpoints[key] = endpoints; endpoints == nil {
			delete(s.endpoints, key)
		}
	}
	for ref, o := range step.Objects {
		if s.said[ref] = o; o == nil {
			delete(s.said, ref)
		}
	}
}

var _ = Describe("A sequence of changes", func() {
	It("ends with the same result as a translation of the final objects, and a store accepts each step", func(ctx SpecContext) {
		for seed := range uint64(25) {
			u := &universe{Rand: rand.New(rand.NewPCG(seed, 1))}
			c, s, db := newCluster(), newState(), database(ctx)
			live := map[translate.Ref]metav1.Object{}
			for range 60 {
				for range 1 + u.IntN(6) {
					object := u.object()
					ref := refOf(object)
					if _, there := live[ref]; there && u.chance(40) {
						c.remove(ref.String())
						delete(live, ref)
					} else {
						c.put(object)
						live[ref] = object
					}
				}
				step := c.step()
				for _, op := range step.Ops {
					_, upstream := op.Object.(*model.Upstream)
					if upstream && s.objects[op.Key] == nil && isDiscovered(op.Object.(*model.Upstream)) {
						Expect(step.Endpoints).To(HaveKey(op.Key), "a new upstream comes with its endpoints")
					}
				}
				s.add(copied(step))
				applyTo(ctx, db, step.Ops)
			}
			scratch, fresh := newCluster(), newState()
			for _, ref := range slices.SortedFunc(maps.Keys(live), translate.Ref.Compare) {
				scratch.put(live[ref])
			}
			fresh.add(scratch.step())
			Expect(s).To(Equal(fresh), "seed %d", seed)
			Expect(stored(ctx, db)).To(ConsistOf(slices.Collect(maps.Keys(fresh.objects))), "seed %d", seed)
		}
	})
})

func isDiscovered(u *model.Upstream) bool {
	return u.IP == "web.shop.svc" || u.IP == "api.shop.svc" || u.IP == "web.team-b.svc" || u.IP == "api.team-b.svc"
}

// copied returns a step whose objects no store writes to.
func copied(step translate.Step) translate.Step {
	step.Ops = slices.Clone(step.Ops)
	for i, op := range step.Ops {
		if op.Object != nil {
			c := reflect.New(reflect.TypeOf(op.Object).Elem())
			c.Elem().Set(reflect.ValueOf(op.Object).Elem())
			step.Ops[i].Object = c.Interface().(model.Object)
		}
	}
	return step
}

// stored lists what is in a store.
func stored(ctx context.Context, db store.Store) (keys []model.Key) {
	GinkgoHelper()
	Expect(db.Read(ctx, func(r store.Reader) error {
		for _, kind := range model.Kinds() {
			list, err := r.List(store.Query{Kind: kind})
			if err != nil {
				return err
			}
			for _, obj := range list {
				keys = append(keys, obj.Key())
			}
		}
		return nil
	})).To(Succeed())
	return keys
}
