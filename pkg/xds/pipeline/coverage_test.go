package pipeline_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// caseObjects returns the valid objects of all golden cases. Nothing changes them.
var caseObjects = sync.OnceValue(func() (list []model.Object) {
	for _, dir := range caseDirs() {
		for _, e := range readInput(filepath.Join(dir, "in.yaml")).Change.Entries {
			if len(e.Object.Validate()) == 0 {
				list = append(list, e.Object)
			}
		}
	}
	return list
})

// keysOfType lists the JSON keys of a struct and, after a dot, those of its
// fields. It does not enter a type within itself.
func keysOfType(t reflect.Type, at string, within ...reflect.Type) (keys []string) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || slices.Contains(within, t) {
		return nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if t.Field(i).Anonymous && name == "" {
			keys = append(keys, keysOfType(t.Field(i).Type, at, append(within, t)...)...)
			continue
		}
		if name != "-" && t.Field(i).IsExported() {
			keys = append(keys, at+name)
			keys = append(keys, keysOfType(t.Field(i).Type, at+name+".", append(within, t)...)...)
		}
	}
	return keys
}

// configKeys are the keys of the JSON of each type of filter and global config.
func configKeys() (entries []TableEntry) {
	add := func(kind model.Kind, name, at string, spec model.Spec) {
		switch name {
		case model.FilterRateLimit: // its keys are not those of its JSON
		case model.FilterGRPCWeb: // it has no keys
		case model.FilterOIDC, model.GlobalConfigOAuth: // these are closed, whatever their keys
		default:
			entries = append(entries, Entry("of a "+name, kind, keysOfType(reflect.TypeOf(spec), at)))
		}
	}
	for _, name := range model.ConfigTypes(model.KindFilter) {
		add(model.KindFilter, name, "filter_config.", (&model.Filter{Type: name, Config: "{}"}).Parse().Spec)
	}
	for _, name := range model.ConfigTypes(model.KindGlobalConfig) {
		add(model.KindGlobalConfig, name, "config.", (&model.GlobalConfig{Type: name, Config: "{}"}).Parse().Spec)
	}
	return entries
}

// keysOf adds the keys of a JSON value, in the form of keysOfType.
func keysOf(value any, at string, keys map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		for name, below := range v {
			keys[at+name] = true
			keysOf(below, at+name+".", keys)
		}
	case []any:
		for _, below := range v {
			keysOf(below, at, keys)
		}
	}
}

func without(all []string, used map[string]bool) []string {
	return slices.DeleteFunc(all, func(s string) bool { return used[s] })
}

var _ = Describe("The golden cases", func() {
	DescribeTable("set every field to something other than its default",
		func(kind model.Kind) {
			used := map[string]bool{}
			var names []string
			for _, f := range form.Fields(kind) {
				names = append(names, f.Name)
				for _, obj := range caseObjects() {
					if obj.Key().Kind == kind && !reflect.DeepEqual(f.Get(obj), f.Get(model.New(kind))) {
						used[f.Name] = true
					}
				}
			}
			Expect(names).NotTo(BeEmpty())
			Expect(without(names, used)).To(BeEmpty(), "add a case of these fields")
		},
		Entry("of an upstream", model.KindUpstream),
		Entry("of a service", model.KindService),
		Entry("of a proxy", model.KindProxy),
	)

	DescribeTable("have every key",
		func(kind model.Kind, keys []string) {
			used := map[string]bool{}
			for _, obj := range caseObjects() {
				if obj.Key().Kind == kind {
					keysOf(plain(obj), "", used)
				}
			}
			Expect(keys).NotTo(BeEmpty())
			Expect(without(keys, used)).To(BeEmpty(), "add a case of these keys")
		},
		Entry("of Route_config", model.KindRoute, slices.DeleteFunc(
			keysOfType(reflect.TypeFor[model.RouteConfig](), "route_config."),
			func(key string) bool { return key == "route_config.query.invert" }, // this is refused
		)),
		Entry("of a filter that states its own limit", model.KindFilter, keysOfType(reflect.TypeFor[model.StatedLimit](), "filter_config.")),
		configKeys(),
	)

	DescribeTable("have every value",
		func(kind model.Kind, field string, values []string) {
			used := map[string]bool{}
			for _, obj := range caseObjects() {
				for _, f := range form.Fields(kind) {
					if obj.Key().Kind == kind && f.Name == field {
						used[fmt.Sprint(f.Get(obj))] = true
					}
				}
			}
			Expect(without(values, used)).To(BeEmpty(), "add a case of these values")
		},
		Entry("of Upstream_strategy", model.KindUpstream, "Upstream_strategy", model.Strategies()),
		Entry("of Upstream_protocol", model.KindUpstream, "Upstream_protocol", model.Protocols()),
		Entry("of Escaped_slashes", model.KindProxy, "Escaped_slashes", allowed(&model.Proxy{EscapedSlashes: "?"}, "Escaped_slashes")),
		Entry("of Underscore_headers", model.KindProxy, "Underscore_headers", allowed(&model.Proxy{UnderscoreHeaders: "?"}, "Underscore_headers")),
		Entry("of Filter_type", model.KindFilter, "Filter_type", model.ConfigTypes(model.KindFilter)),
		Entry("of globalconfig_type", model.KindGlobalConfig, "globalconfig_type", model.ConfigTypes(model.KindGlobalConfig)),
	)

	It("name every field that an Envoy gets in an expectation", func() {
		sent, expected, absent := fieldsOfCases()
		Expect(slices.Sorted(maps.Keys(sent))).NotTo(BeEmpty())
		var missing []string
		for field, leaf := range sent {
			if leaf && !expected[field] && !strings.HasSuffix(field, "@type") {
				missing = append(missing, field)
			}
		}
		slices.Sort(missing)
		Expect(missing).To(BeEmpty(), "name these fields in an expect.yaml; until then only make golden decides their values")
		names := map[string]bool{}
		for field := range sent {
			names[field[strings.LastIndex(field, ".")+1:]] = true
		}
		for field, where := range absent {
			Expect(names[field[strings.LastIndex(field, ".")+1:]]).To(BeTrue(), "%s expects that %s is absent, but no case has a field of that name", where, field)
		}
	})
})

// allowed returns the values that the error message of a field lists.
func allowed(obj model.Object, field string) []string {
	for _, e := range obj.Validate() {
		if _, list, ok := strings.Cut(e.Message, " is not one of "); ok && e.Field == field {
			return strings.Split(list, ", ")
		}
	}
	panic(field + " has no error that lists what is allowed")
}

// fieldsOfCases returns the fields that the Envoys of all cases receive, without
// the indices and names of elements, true for those with a value; the fields that
// an expectation names; and the fields that must be absent, with their case.
func fieldsOfCases() (sent, expected map[string]bool, absent map[string]string) {
	GinkgoHelper()
	sent, expected, absent = map[string]bool{}, map[string]bool{}, map[string]string{}
	for _, dir := range caseDirs() {
		envoy := plain(buildCase(dir).envoy)
		for _, document := range envoy.(map[string]any) {
			addFields(document, "", sent)
		}
		for path, want := range readExpectation(filepath.Join(dir, "expect.yaml")).Envoy {
			proxy, rest := cutPath(path)
			document, err := step(envoy, proxy)
			Expect(err).NotTo(HaveOccurred())
			follow(document, rest, "", want, func(field string, have, want any) {
				if want == nil && have == nil {
					absent[field] = dir
				}
				addFields(have, field, expected)
			})
		}
	}
	return sent, expected, absent
}

// addFields adds the fields of a value, true for those without fields of their own.
func addFields(value any, at string, fields map[string]bool) {
	switch v := value.(type) {
	case map[string]any:
		fields[at] = fields[at] || len(v) == 0
		for key, below := range v {
			addFields(below, at+"."+key, fields)
		}
	case []any:
		for _, below := range v {
			addFields(below, at, fields)
		}
	case nil:
	default:
		fields[at] = true
	}
}

// follow calls found for each place to which an expected path leads.
func follow(from any, path, at string, want any, found func(field string, have, want any)) {
	if path == "" {
		below, _ := want.(map[string]any)
		for path, want := range below {
			follow(from, path, at, want, found)
		}
		if len(below) == 0 {
			found(at, from, want)
		}
		return
	}
	key, rest := cutPath(path)
	list, isList := from.([]any)
	if isList && key == "[*]" {
		for _, element := range list {
			follow(element, rest, at, want, found)
		}
		return
	}
	next, err := step(from, key)
	Expect(err).NotTo(HaveOccurred())
	if !isList {
		at += "." + strings.Trim(key, "[]")
	}
	follow(next, rest, at, want, found)
}
