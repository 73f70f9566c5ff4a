package crd_test

import (
	"reflect"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

var _ = Describe("The random configurations", func() {
	It("set every field that must survive the round trip", func() {
		tried := map[string]bool{}
		for seed := range uint64(100) {
			for _, item := range newMaker(seed).document().Items {
				kind, defaults := item.Object.Key().Kind, model.New(item.Object.Key().Kind)
				for _, f := range form.Fields(kind) {
					if !reflect.DeepEqual(f.Get(item.Object), f.Get(defaults)) {
						tried[f.Name] = true
					}
				}
				if r, ok := item.Object.(*model.Route); ok {
					parts(reflect.ValueOf(r.Config), "Route_config", tried)
				}
			}
		}
		for _, kind := range []model.Kind{model.KindUpstream, model.KindService, model.KindRoute, model.KindFilter, model.KindGlobalConfig, model.KindSecret, model.KindList} {
			for _, f := range form.Fields(kind) {
				if f.Name != "Exempt_filters" && f.Name != "Certificate" { // an export refuses them
					Expect(tried).To(HaveKey(f.Name))
				}
			}
		}
		want := map[string]bool{}
		parts(reflect.ValueOf(model.RouteConfig{
			Headers: []model.ValueMatch{{}}, Query: []model.ValueMatch{{}}, Rewrite: &model.Rewrite{}, Timeouts: &model.Timeouts{}, Retries: &model.Retries{},
			Exempt: &model.Exempt{},
		}), "Route_config", want)
		delete(want, "Route_config.Unreadable")   // no document can contain it
		delete(want, "Route_config.Query.Invert") // for headers only
		delete(want, "Route_config.Exempt.Proxy") // an export refuses it
		for name := range want {
			Expect(tried).To(HaveKeyWithValue(name, true))
		}
	})
})

// parts records the fields of a value and of the values in it, and whether each was ever
// set.
func parts(v reflect.Value, at string, found map[string]bool) {
	switch {
	case v.Kind() == reflect.Pointer && v.Type().Elem().Kind() == reflect.Struct && !v.IsNil():
		parts(v.Elem(), at, found)
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Struct:
		for i := range v.Len() {
			parts(v.Index(i), at, found)
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			parts(v.Field(i), at+"."+v.Type().Field(i).Name, found)
		}
	default:
		found[at] = found[at] || !v.IsZero()
	}
}
