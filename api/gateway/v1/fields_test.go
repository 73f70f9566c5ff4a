package v1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/mapping"
)

// definitions are the CustomResourceDefinitions by kind.
func definitions() map[string]apiextensionsv1.CustomResourceDefinition {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(crds, "*.yaml"))
	Expect(err).NotTo(HaveOccurred())
	byKind := map[string]apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		Expect(err).NotTo(HaveOccurred())
		var crd apiextensionsv1.CustomResourceDefinition
		Expect(yaml.Unmarshal(text, &crd)).To(Succeed())
		byKind[crd.Spec.Names.Kind] = crd
	}
	return byKind
}

// walk calls visit for each field below a place.
func walk(at string, s apiextensionsv1.JSONSchemaProps, visit func(path string, field apiextensionsv1.JSONSchemaProps)) {
	for name, field := range s.Properties {
		path := strings.TrimPrefix(at+"."+name, ".")
		visit(path, field)
		walk(path, field, visit)
		if field.Items != nil && field.Items.Schema != nil {
			visit(path+"[]", *field.Items.Schema)
			walk(path+"[]", *field.Items.Schema, visit)
		}
	}
}

var _ = Describe("The fields", func() {
	It("have descriptions and bounds, which are the same in both versions", func() {
		crds := definitions()
		Expect(crds).To(HaveLen(5))
		for kind, crd := range crds {
			Expect(crd.Spec.Group).To(Equal("gateway.gatehouse.dev"))
			Expect(string(crd.Spec.Scope)).To(Equal("Namespaced"))
			Expect(crd.Spec.Conversion).To(BeNil(), "of %s: none means that only the apiVersion changes", kind)
			versions := map[string]bool{}
			for _, v := range crd.Spec.Versions {
				Expect(v.Served).To(BeTrue())
				versions[v.Name] = v.Storage
				Expect(v.Schema).To(Equal(crd.Spec.Versions[0].Schema), "%s %s", kind, v.Name)
				Expect(v.AdditionalPrinterColumns).To(Equal(crd.Spec.Versions[0].AdditionalPrinterColumns))
				Expect(v.Subresources).To(Equal(crd.Spec.Versions[0].Subresources))
			}
			if kind == "ReferenceGrant" || kind == "Consumer" {
				Expect(versions).To(Equal(map[string]bool{"v1": true}))
			} else {
				Expect(versions).To(Equal(map[string]bool{"v1": true, "v1beta1": false}))
			}
			spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
			walk("spec", spec, func(path string, f apiextensionsv1.JSONSchemaProps) {
				if !strings.HasSuffix(path, "[]") {
					Expect(f.Description).NotTo(BeEmpty(), "%s %s", kind, path)
					Expect(f.Description).To(HaveSuffix("."), "%s %s", kind, path)
				}
				switch {
				case f.Type == "array":
					Expect(f.MaxItems).NotTo(BeNil(), "%s %s", kind, path)
					Expect(f.XListType).NotTo(BeNil(), "%s %s", kind, path)
				case f.Type == "string" && len(f.Enum) == 0:
					Expect(f.MaxLength).NotTo(BeNil(), "%s %s", kind, path)
				case f.Type == "integer":
					Expect(f.Minimum).NotTo(BeNil(), "%s %s", kind, path)
					Expect(f.Maximum).NotTo(BeNil(), "%s %s", kind, path)
				}
			})
		}
	})

	It("are all set in everything.yaml", func() {
		text := readFile("everything.yaml")
		var used []string
		var paths func(at string, v any)
		paths = func(at string, v any) {
			switch v := v.(type) {
			case map[string]any:
				for name, value := range v {
					used = append(used, at+"."+name)
					paths(at+"."+name, value)
				}
			case []any:
				for _, value := range v {
					paths(at+"[]", value)
				}
			}
		}
		paths("spec", specOf([]byte(text)))
		walk("spec", definitions()["GatewayHost"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], func(path string, _ apiextensionsv1.JSONSchemaProps) {
			if !strings.HasSuffix(path, "[]") {
				Expect(used).To(ContainElement(path))
			}
		})
	})

	It("have the defaults of the model", func() {
		said := map[string]string{}
		walk("", definitions()["GatewayHost"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], func(path string, f apiextensionsv1.JSONSchemaProps) {
			text := strings.Join(strings.Fields(f.Description), " ")
			if m := regexp.MustCompile(`Default: ([^ ,.]+)`).FindStringSubmatch(text); m != nil {
				said[path] = m[1]
			}
		})
		u, s := model.NewUpstream(), model.NewService()
		b := "routes[].services[]."
		numbers := map[string]int{
			b + "weight": u.Weight, b + "panicThresholdPercent": u.PanicThresholdPercent,
			b + "priority": u.Priority, b + "zoneMinCount": u.ZoneMinCount, b + "slowStartSeconds": u.SlowStartSeconds,
			b + "dns.refreshSeconds":          u.DNSRefreshSeconds,
			b + "healthCheck.intervalSeconds": u.HCIntervalSeconds, b + "healthCheck.timeoutSeconds": u.HCTimeoutSeconds,
			b + "healthCheck.unhealthyThreshold": u.HCUnhealthyThresholdCount, b + "healthCheck.healthyThreshold": u.HCHealthyThresholdCount,
			b + "connection.connectTimeoutSeconds": u.ConnectTimeoutSeconds, b + "connection.idleTimeoutSeconds": u.IdleTimeoutSeconds,
			b + "connection.keepaliveIntervalSeconds": u.KeepaliveIntervalSeconds,
			b + "limits.maxConnections":               u.MaxConnections, b + "limits.maxPending": u.MaxPending,
			b + "limits.maxRequests": u.MaxRequests, b + "limits.maxRetries": u.MaxRetries,
			b + "limits.retryBudgetPercent": u.RetryBudgetPercent, b + "limits.retryBudgetMinCount": u.RetryBudgetMinCount,
			b + "outlier.threshold": u.OutlierThresholdCount, b + "outlier.ejectionSeconds": u.OutlierEjectionSeconds,
			"virtualhost.tls.hstsSeconds": s.HSTSSeconds, "virtualhost.port": s.Port,
		}
		for path, n := range numbers {
			want, err := json.Marshal(n)
			Expect(err).NotTo(HaveOccurred())
			Expect(said).To(HaveKeyWithValue(path, string(want)))
			delete(said, path)
		}
		Expect(said).To(Equal(map[string]string{
			b + "strategy": u.Strategy, b + "dns.mode": u.DNS, b + "dns.family": u.DNSFamily, b + "proxyProtocol": u.ProxyProtocol, "virtualhost.tls.https": s.HTTPS, "virtualhost.mode": s.Mode, b + "healthCheck.type": u.HCType,
			b + "protocol":                           "derived", // from appProtocol of the Service's port
			b + "healthCheck.host":                   "the",     // name of Envoy's cluster
			b + "tls.subjectName":                    "the",     // host name of an ExternalName Service
			b + "tls.insecure":                       "false",   // the default of every boolean field except websocket
			"public":                                 "false",
			"routes[].public":                        "false",
			"routes[].priority":                      "0",
			"routes[].websocket":                     "true",
			"virtualhost.tls.external":               "false",
			"virtualhost.tls.hstsSubdomains":         "false",
			"routes[].conditions[].headers[].invert": "false",
			"routes[].timeouts.request":              "no", // limit
			"routes[].timeouts.idle":                 "300s",
			"routes[].timeouts.grpc":                 "grpc-timeout", // is ignored
			"routes[].timeouts.stream":               "no",           // limit
			"routes[].retries.perTry":                "no",           // limit of its own
			"routes[].retries.backoff":               "5ms",
			"routes[].retries.maxBackoff":            "20", // times backoff
		}))
	})

	It("have the bounds of the model", func() {
		bounds := map[string]string{}
		walk("", definitions()["GatewayHost"].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"], func(path string, f apiextensionsv1.JSONSchemaProps) {
			if f.Minimum != nil && f.Maximum != nil {
				bounds[path] = fmt.Sprintf("%.0f-%.0f", *f.Minimum, *f.Maximum)
			}
		})
		compared := 0
		compare := func(object any, path func(field string) string) {
			t := reflect.TypeOf(object)
			for i := range t.NumField() {
				field, _, _ := strings.Cut(t.Field(i).Tag.Get("form"), ",")
				if bound := t.Field(i).Tag.Get("range"); bound != "" && field != "Upstream_port" {
					Expect(bounds).To(HaveKeyWithValue(path(field), bound))
					compared++
				}
			}
		}
		compare(model.Upstream{}, func(field string) string { return "routes[].services[]" + mapping.BackendField(field) })
		compare(model.Service{}, func(field string) string { return strings.TrimPrefix(mapping.HostField(field), "spec.") })
		Expect(compared).To(BeNumerically(">", 15))
	})

	It("are explained by kubectl", func(ctx context.Context) {
		// The API server publishes the schemas some time after it serves the kinds.
		Eventually(ctx, func() (string, error) { return api.Kubectl(ctx, "explain", "gwh.spec.routes.websocket") }).Should(ContainSubstring("Whether a client may upgrade to a WebSocket. Default: true."))
		for _, e := range []struct{ field, version, text string }{
			{"gwf.spec.routeFilterConfig.config", "v1beta1", "A JSON object in a string."},
			{"gwc.spec.proxy", "v1", "The proxy that it applies to."},
			{"gwrg.spec.to.name", "v1", "Empty means every object of the kind."},
		} {
			Eventually(ctx, func() (string, error) {
				return api.Kubectl(ctx, "explain", e.field, "--api-version=gateway.gatehouse.dev/"+e.version)
			}).Should(ContainSubstring(e.text))
		}
	}, NodeTimeout(time.Minute))

	It("include every type of filter and global config", func() {
		types := func(kind string) (known []string) { // by their long names; the short ones come after them
			var short []string
			for _, v := range definitions()[kind].Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["type"].Enum {
				if name := strings.Trim(string(v.Raw), `"`); kind == "RouteFilter" && strings.Contains(name, "_filter_") || strings.HasPrefix(name, "globalconfig_") {
					known = append(known, name)
				} else if !slices.Contains(onProxies(), name) && !strings.HasPrefix(name, model.ListPrefix) {
					short = append(short, name)
				}
			}
			Expect(short).To(HaveLen(len(known)))
			for i, name := range known {
				Expect(short[i]).To(Equal(model.ShortType(name)))
			}
			return known
		}
		// What the model says of another type lists those that it knows.
		Expect((&model.Filter{Name: "a", Type: "b"}).Validate()).To(ConsistOf(
			model.FieldError{Field: "Filter_type", Message: `"b" is not one of ` + strings.Join(types("RouteFilter"), ", ")}))
		Expect((&model.GlobalConfig{Name: "a", Type: "b"}).Validate()).To(ConsistOf(
			model.FieldError{Field: "globalconfig_type", Message: `"b" is not one of ` + strings.Join(types("GlobalConfig"), ", ")}))
	})
})
