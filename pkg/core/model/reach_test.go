package model_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// world is a configuration as a set of objects.
type world struct {
	rng     *rand.Rand
	objects map[model.Key]model.Object
}

func (w world) name(prefix string) string { return fmt.Sprint(prefix, w.rng.IntN(3)) }

// any returns an object with random references, which may lead nowhere.
func (w world) any() model.Object {
	kinds := model.Kinds()
	kind := kinds[w.rng.IntN(len(kinds))]
	var names []string
	for _, word := range kind.Row().Path {
		if word != "" {
			names = append(names, w.name(string(word)))
		}
	}
	switch o := model.NewKey(kind, names...).New().(type) {
	case *model.Upstream:
		o.ValidationCACertificate = []string{"", w.name("secret")}[w.rng.IntN(2)]
		return o
	case *model.Filter:
		if w.rng.IntN(2) == 0 {
			o.Type, o.Config = model.FilterAPIKey, model.JSON(fmt.Sprintf(`{"keys":%q}`, w.name("keyset")))
			return o
		}
		o.Type = model.FilterOIDC
		o.Config = model.JSON(fmt.Sprintf(`{"cookie_secret":%q,"upstream":%q}`, w.name("secret"), w.name("upstream")))
		return o
	case *model.GlobalConfig:
		o.Type, o.Config = model.GlobalConfigOAuth, model.JSON(fmt.Sprintf(`{"openid_connect":{"hmac_secret":%q}}`, w.name("secret")))
		return o
	default:
		return o
	}
}

// holders follows who uses an object, and notes the services and proxies where it
// arrives.
func (w world) holders(obj model.Object, services, proxies map[string]bool) {
	switch o := obj.(type) {
	case *model.Service:
		services[o.Name] = true
	case *model.Route:
		services[o.Service] = true
	case *model.RouteUpstream:
		services[o.Service] = true
	case *model.RouteFilter:
		services[o.Service] = true
	case *model.APIKey: // what names its set has it
		w.holders(&model.KeySet{Name: o.KeySet}, services, proxies)
	case *model.ServiceFilter:
		services[o.Service] = true
	case *model.ServiceSecret:
		services[o.Service] = true
	case *model.Proxy:
		proxies[o.Name] = true
	case *model.ProxyService:
		proxies[o.Proxy] = true
	case *model.ProxyGlobalConfig:
		proxies[o.Proxy] = true
	case *model.ProxyFilter:
		proxies[o.Proxy] = true
	default:
		used := false
		for _, user := range w.objects {
			if slices.Contains(model.Uses(user), obj.Key()) {
				used = true
				w.holders(user, services, proxies)
			}
		}
		if _, global := o.(*model.GlobalConfig); global && !used {
			w.everyProxy(proxies)
		}
	}
}

func (w world) everyProxy(proxies map[string]bool) {
	for key := range w.objects {
		if key.Kind == model.KindProxy {
			proxies[key.Name()] = true
		}
	}
}

var _ = Describe("Reach", func() {
	It("finds, in any configuration, what contains an object, and Config replaces only that", func() {
		reached := 0
		for seed := range uint64(60) {
			w := world{rand.New(rand.NewPCG(seed, 1)), map[model.Key]model.Object{}} //nolint:gosec // a seeded test
			c := model.NewConfig()
			for revision := range int64(120) {
				obj := w.any()
				key, entry := obj.Key(), model.Entry{Key: obj.Key(), Object: obj}
				if old := w.objects[key]; old != nil && w.rng.IntN(3) == 0 {
					obj, entry.Object = old, nil
					delete(w.objects, key)
				} else {
					w.objects[key] = obj
				}
				services, proxies := map[string]bool{}, map[string]bool{}
				w.holders(obj, services, proxies)
				if key.Kind == model.KindProxyGlobalConfig { // the others lose it, or get it back
					w.everyProxy(proxies)
				}
				touched := c.Apply(model.Change{Revision: revision + 1, Entries: []model.Entry{entry}})
				want := model.Touched{Services: slices.Sorted(maps.Keys(services)), Proxies: slices.Sorted(maps.Keys(proxies))}
				if key.Root().Kind == model.KindKeySet { // no tree has keys
					Expect(touched).To(Equal(model.Touched{KeySets: []string{key.Root().Name()}}))
				} else if key.Kind == model.KindConsumer { // nor consumers
					Expect(touched).To(Equal(model.Touched{Consumers: true}))
				} else {
					Expect(touched).To(Equal(want), "seed %d revision %d: %v", seed, revision+1, key)
				}
				r, err := model.Reach(c, []model.Key{key})
				Expect(err).NotTo(HaveOccurred())
				Expect(slices.Sorted(maps.Keys(r.Services))).To(Equal(want.Services))
				Expect(slices.Sorted(maps.Keys(r.Proxies))).To(Equal(want.Proxies))
				reached += len(services) + len(proxies)
			}
		}
		Expect(reached).To(BeNumerically(">", 3000))
	})
})

var _ = Describe("The table of kinds", func() {
	It("lists an object before what refers to it", func() {
		kinds := model.Kinds()
		for i, kind := range kinds {
			for _, later := range append(kind.OwnedKinds(), kind.UserKinds()...) {
				Expect(slices.Index(kinds, later)).To(BeNumerically(">", i), "%s before %s", kind, later)
			}
		}
	})

	It("creates objects that have the key they were created for", func() {
		for _, kind := range model.Kinds() {
			var names []string
			for i, word := range kind.Row().Path {
				if word != "" {
					names = append(names, fmt.Sprint("n", i))
				}
			}
			key := model.NewKey(kind, names...)
			Expect(key.New().Key()).To(Equal(key))
			read, ok := model.ParseKey(kind, key.Text())
			Expect(ok).To(BeTrue())
			Expect(read).To(Equal(key))
		}
	})

	It("lists the kinds that the fields of an object may name", func() {
		w := world{rand.New(rand.NewPCG(1, 1)), nil} //nolint:gosec // a seeded test
		for range 500 {
			obj := w.any()
			if _, names := obj.(model.Namer); !names {
				continue
			}
			row := obj.Key().Kind.Row()
			for _, named := range model.Uses(obj) {
				Expect(row.Names[:]).To(ContainElement(named.Kind), "%s", row.Kind)
			}
		}
	})

	DescribeTable("Key", func(key model.Key, text string, owner, attached, root model.Key) {
		Expect(key.Text()).To(Equal(text))
		Expect(key.Owner()).To(Equal(owner))
		Expect(key.Attached()).To(Equal(attached))
		Expect(key.Root()).To(Equal(root))
	},
		Entry("an object", model.SecretKey("ca"), "ca", model.Key{}, model.Key{}, model.SecretKey("ca")),
		Entry("a part", model.RouteKey("shop", "root"), "shop/root", model.ServiceKey("shop"), model.Key{}, model.ServiceKey("shop")),
		Entry("a link to a part", model.RouteFilterKey("shop", "root", "f"), "shop/root/f",
			model.RouteKey("shop", "root"), model.FilterKey("f"), model.ServiceKey("shop")),
		Entry("a link", model.ProxyServiceKey("gw", "shop"), "gw/shop", model.ProxyKey("gw"), model.ServiceKey("shop"), model.ProxyKey("gw")),
	)
})
