package mapping_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/mapping"
)

func TestMapping(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "pkg/input/kube/mapping")
}

// fill sets all fields of a value to something that is no default.
func fill(v reflect.Value) {
	switch {
	case v.Type() == reflect.TypeFor[gatewayv1.Duration]():
		v.SetString("1m30s")
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case v.Kind() == reflect.String:
		v.SetString("some")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	default:
		v.SetInt(77)
	}
}

// lost lists the fields that are set in a value and differ in another one, by their names in Go.
func lost(had, has reflect.Value, at string) (list []string) {
	switch {
	case reflect.DeepEqual(had.Interface(), has.Interface()):
	case had.Kind() == reflect.Pointer && !has.IsNil():
		return lost(had.Elem(), has.Elem(), at)
	case had.Kind() == reflect.Slice && has.Len() == 1:
		return lost(had.Index(0), has.Index(0), at)
	case had.Kind() == reflect.Struct:
		for i := range had.NumField() {
			list = append(list, lost(had.Field(i), has.Field(i), at+"."+had.Type().Field(i).Name)...)
		}
	default:
		list = append(list, at)
	}
	return list
}

func toSecret(_ string, ref gatewayv1.SecretReference) string {
	return string(ref.Namespace) + "/" + string(ref.Name)
}

func toReference(name string) *gatewayv1.SecretReference {
	namespace, name, _ := strings.Cut(name, "/")
	return &gatewayv1.SecretReference{Namespace: gatewayv1.Namespace(namespace), Name: gatewayv1.ObjectName(name)}
}

func nothingWrong(path, format string, args ...any) {
	Fail(path + " " + fmt.Sprintf(format, args...))
}

var _ = Describe("Every field", func() {
	It("of a backend is one of its upstream, and back, but those that name the Service", func() {
		var b, again gatewayv1.Backend
		fill(reflect.ValueOf(&b).Elem())
		u := model.NewUpstream()
		mapping.ReadBackend(&b, "at", u, toSecret)
		mapping.WriteBackend(u, &again, toReference)
		Expect(lost(reflect.ValueOf(b), reflect.ValueOf(again), "")).To(Equal([]string{".Name", ".Namespace", ".Port.Type", ".Port.IntVal", ".Port.StrVal"}))
		for _, f := range form.Fields(model.KindUpstream) {
			switch f.Name {
			case "Upstream_name", "Upstream_ip", "Upstream_port", "tags":
				Expect(mapping.BackendField(f.Name)).To(BeEmpty())
			default:
				Expect(mapping.BackendField(f.Name)).NotTo(BeEmpty(), f.Name)
			}
		}
	})

	It("of a GatewayHost is one of its service, and back, but those that name other objects", func() {
		var h, again gatewayv1.GatewayHostSpec
		fill(reflect.ValueOf(&h).Elem())
		s := model.NewService()
		mapping.ReadHost(&h, s, toSecret)
		mapping.WriteHost(s, &again, toReference)
		Expect(lost(reflect.ValueOf(h), reflect.ValueOf(again), "")).To(Equal([]string{
			".Proxy", ".VirtualHost.TLS.SecretName", ".VirtualHost.TLS.SecretNamespace", ".VirtualHost.TLS.AdditionalSecrets",
			".VirtualHost.TLS.External", ".Filters", ".Routes",
		}))
		for _, f := range form.Fields(model.KindService) {
			if f.Name != "Service_Name" && f.Name != "Exempt_filters" && f.Name != "Certificate" && f.Name != "tags" {
				Expect(mapping.HostField(f.Name)).To(HavePrefix("spec."), f.Name)
			}
		}
	})

	It("of a route is one of the model, and back, but those that name other objects", func() {
		var r gatewayv1.Route
		fill(reflect.ValueOf(&r).Elem())
		c := &r.Conditions[0]
		c.Prefix, c.Segment, c.Exact, c.Template = nil, nil, nil, nil
		read := mapping.ReadRoute(&r, "at", nothingWrong)
		Expect(read.Unreadable || read.Broken).To(BeFalse())
		Expect(lost(reflect.ValueOf(r), reflect.ValueOf(mapping.WriteRoute(read.Route)), "")).To(Equal([]string{".Services", ".Filters"}))
	})
})

var _ = DescribeTable("What is wrong with a field is said of the field that it comes from", func(have, want string) {
	Expect(have).To(Equal(want))
},
	Entry("of an upstream", mapping.BackendField("Upstream_hc_path"), ".healthCheck.path"),
	Entry("of an upstream, inline", mapping.BackendField("Upstream_panic_thresholdpercent"), ".panicThresholdPercent"),
	Entry("of an upstream without such a field", mapping.BackendField("Upstream_ip"), ""),
	Entry("of a service", mapping.HostField("Client_validation_cacertificate"), "spec.virtualhost.tls.clientCASecret"),
	Entry("of a service, at the top", mapping.HostField("Public"), "spec.public"),
)

var _ = DescribeTable("What is wrong with a route is said of the field that it comes from", func(field, path string, isAction bool) {
	r := mapping.ReadRoute(&gatewayv1.Route{Conditions: []gatewayv1.Condition{
		{Methods: []gatewayv1.Method{"GET"}, Headers: []gatewayv1.HeaderMatch{{Name: "a"}, {Name: "b"}}},
		{Headers: []gatewayv1.HeaderMatch{{Name: "c"}}, Query: []gatewayv1.QueryMatch{{Name: "q"}}},
	}}, "spec.routes[3]", nothingWrong)
	at, action := r.Field(field)
	Expect(at).To(Equal(path))
	Expect(action).To(Equal(isAction))
},
	Entry("the name", "Route_Name", "spec.routes[3].name", false),
	Entry("a method", "Route_config.methods[0]", "spec.routes[3].conditions[0].methods[0]", false),
	Entry("a header of the second condition", "Route_config.headers[2].name", "spec.routes[3].conditions[1].headers[0].name", false),
	Entry("a parameter", "Route_config.query[0]", "spec.routes[3].conditions[1].query[0]", false),
	Entry("a path that no condition has", "Route_prefix", "spec.routes[3]", false),
	Entry("all headers", "Route_config.headers", "spec.routes[3]", false),
	Entry("an action", "Route_config.retries.per_try", "spec.routes[3].retries.perTry", true),
	Entry("an item of an action", "Route_config.retries.on[1]", "spec.routes[3].retries.retryOn[1]", true),
	Entry("a whole action", "Route_config.rewrite", "spec.routes[3].rewrite", true),
	Entry("a tag", "tags[0]", "spec.routes[3].tags[0]", true),
)

var _ = Describe("A route", func() {
	It("has one path and one list of methods, and durations that can be read", func() {
		prefix, exact := gatewayv1.URLPath("/a"), gatewayv1.URLPath("/b")
		var said []string
		r := mapping.ReadRoute(&gatewayv1.Route{
			Conditions: []gatewayv1.Condition{{Prefix: &prefix, Methods: []gatewayv1.Method{"GET"}}, {Exact: &exact, Methods: []gatewayv1.Method{"PUT"}}},
			Timeouts:   &gatewayv1.Timeouts{Idle: "soon"},
		}, "r", func(path, format string, args ...any) { said = append(said, path+" "+fmt.Sprintf(format, args...)) })
		Expect(said).To(Equal([]string{
			"r.conditions[1].exact all conditions must hold, so only one of them can have a path, and r.conditions[0].prefix has one; write a route for each path",
			"r.conditions[1].methods all conditions must hold, so only one of them can have methods, and r.conditions[0].methods has some; list all methods there",
			`r.timeouts.idle "soon" is not a duration such as 1.5s`,
		}))
		Expect(r.Unreadable && r.Broken).To(BeTrue())
		Expect(r.Prefix).To(Equal("/a"))
	})
})
