package form_test

import (
	"encoding/json"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

func TestForm(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "form")
}

// sent returns fields as a form sends them, from pairs of name and text.
func sent(pairs ...string) (list []form.Value) {
	for i := 0; i < len(pairs); i += 2 {
		list = append(list, form.Value{Name: pairs[i], Shape: form.IsText, Text: pairs[i+1]})
	}
	return list
}

// sentJSON returns one field as JSON sends it.
func sentJSON(name, raw string) form.Value {
	GinkgoHelper()
	v, err := form.JSONValue(name, json.RawMessage(raw))
	Expect(err).NotTo(HaveOccurred())
	return v
}

// said returns errors as "field: message".
func said(errs []model.FieldError) (list []string) {
	for _, e := range errs {
		list = append(list, e.Field+": "+e.Message)
	}
	return list
}

var _ = Describe("Bind", func() {
	It("sets every field of an upstream, whatever the letter case", func() {
		u := model.NewUpstream()
		u.TLSInsecure = true
		Expect(form.Bind(u, sent(
			"upstream_name", "blue", "UPSTREAM_IP", "2001:db8::1", "Upstream_port", "8443", "Upstream_weight", "0", "Upstream_priority", "7", "Upstream_zone", "a", "Upstream_zone_mincount", "0",
			"Upstream_slowstart_seconds", "24", "Upstream_dns", "logical", "Upstream_dns_family", "all", "Upstream_dns_refreshseconds", "25", "Upstream_proxyprotocol", "v2", "Upstream_hc_type", "http", "Upstream_hc_path", "/h",
			"Upstream_hc_host", "h.example.com", "Upstream_hc_intervalseconds", "1", "Upstream_hc_timeoutseconds", "2",
			"Upstream_hc_unhealthythresholdcount", "3", "Upstream_hc_healthythresholdcount", "4", "Upstream_strategy", "least_request",
			"Upstream_protocol", "h2", "Upstream_validation_cacertificate", "ca", "Upstream_validation_subjectname", "b.example.com", "Upstream_validation_altnames", "c.example.com",
			"Upstream_tls_insecure", "false", "Upstream_client_certificate", "pair",
			"Upstream_connect_timeoutseconds", "11", "Upstream_idle_timeoutseconds", "12", "Upstream_keepalive_intervalseconds", "13",
			"Upstream_max_connections", "14", "Upstream_max_pending", "15", "Upstream_max_requests", "16", "Upstream_max_retries", "17",
			"Upstream_retry_budgetpercent", "21", "Upstream_retry_budgetmincount", "22",
			"Upstream_outlier_thresholdcount", "18", "Upstream_outlier_ejectionseconds", "19", "Upstream_panic_thresholdpercent", "20",
			"tags", " b, a,,b ",
		), true)).To(BeEmpty())
		Expect(u).To(Equal(&model.Upstream{
			Name: "blue", IP: "2001:db8::1", Port: 8443, Weight: 0, Priority: 7, Zone: "a", SlowStartSeconds: 24, DNS: "logical", DNSFamily: "all", DNSRefreshSeconds: 25, ProxyProtocol: "v2", HCType: "http", HCPath: "/h", HCHost: "h.example.com",
			HCIntervalSeconds: 1, HCTimeoutSeconds: 2, HCUnhealthyThresholdCount: 3, HCHealthyThresholdCount: 4,
			Strategy: "least_request", Protocol: "h2", ValidationCACertificate: "ca", ValidationSubjectName: "b.example.com", ValidationAltNames: "c.example.com",
			ClientCertificate:     "pair",
			ConnectTimeoutSeconds: 11, IdleTimeoutSeconds: 12, KeepaliveIntervalSeconds: 13,
			MaxConnections: 14, MaxPending: 15, MaxRequests: 16, MaxRetries: 17, RetryBudgetPercent: 21, RetryBudgetMinCount: 22,
			OutlierThresholdCount: 18, OutlierEjectionSeconds: 19, PanicThresholdPercent: 20,
			Tags: model.Tags{"a", "b"},
		}))
	})

	It("sets the fields of the other kinds", func() {
		s := model.NewService()
		Expect(form.Bind(s, sent("Service_Name", "shop", "fqdn", "a.example", "Https", "redirect", "Hsts_seconds", "60", "Hsts_subdomains", "true", "Client_validation_cacertificate", "ca"), true)).To(BeEmpty())
		Expect(s).To(Equal(&model.Service{Name: "shop", FQDN: "a.example", HTTPS: model.HTTPSRedirect, Mode: model.ModeHTTP, HSTSSeconds: 60, HSTSSubdomains: true, ClientCACertificate: "ca"}))
		db := model.NewService()
		Expect(form.Bind(db, sent("Service_Name", "db", "fqdn", "*", "Mode", "tcp", "Port", "5432"), true)).To(BeEmpty())
		Expect(db).To(Equal(&model.Service{Name: "db", FQDN: "*", HTTPS: model.HTTPSBoth, Mode: model.ModeTCP, Port: 5432}))

		r := &model.Route{Service: "shop"}
		Expect(form.Bind(r, sent("Route_Name", "root", "Route_prefix", "/a", "Route_config", ` {"methods":["GET"]} `), true)).To(BeEmpty())
		Expect(r).To(Equal(&model.Route{Service: "shop", Name: "root", Prefix: "/a", Config: model.RouteConfig{Methods: []string{"GET"}}}))

		p := model.NewProxy()
		Expect(form.Bind(p, sent("Name", "gw", "Https_port", "443", "Listen_ip", "::", "trusted_hops", "1", "Tls_min_version", "1.3"), true)).To(BeEmpty())
		Expect(p).To(Equal(&model.Proxy{Name: "gw", HTTPPort: 8080, HTTPSPort: 443, ListenIP: "::", TrustedHops: 1, EscapedSlashes: "redirect", UnderscoreHeaders: "reject", TLSMinVersion: "1.3"}))

		f := &model.Filter{}
		Expect(form.Bind(f, sent("Filter_name", "limit", "Filter_type", "route_filter_ratelimit", "Filter_config", `{ "descriptors": [{"remote_address":"<x>"}] }`), true)).To(BeEmpty())
		Expect(f).To(Equal(&model.Filter{Name: "limit", Type: "route_filter_ratelimit", Config: `{"descriptors":[{"remote_address":"<x>"}]}`}))

		g := &model.GlobalConfig{}
		Expect(form.Bind(g, sent("globalconfig_name", "rates", "globalconfig_type", "globalconfig_ratelimit", "CONFIG", `{"domain":"shop"}`), true)).To(BeEmpty())
		Expect(g).To(Equal(&model.GlobalConfig{Name: "rates", Type: "globalconfig_ratelimit", Config: `{"domain":"shop"}`}))

		x := &model.Secret{}
		Expect(form.Bind(x, sent("Secret_name", "token", "Secret_value", "v", "Secret_type", "generic"), true)).To(BeEmpty())
		Expect(x).To(Equal(&model.Secret{Name: "token", Type: "generic", Value: "v"}))
	})

	It("leaves fields alone that are not sent, unless the object is new", func() {
		u := model.NewUpstream()
		u.Name, u.IP, u.Port = "blue", "192.0.2.1", 80
		Expect(form.Bind(u, sent("Upstream_port", "81"), false)).To(BeEmpty())
		Expect([]any{u.Name, u.IP, u.Port, u.Weight}).To(Equal([]any{"blue", "192.0.2.1", 81, 100}))
		Expect(said(form.Bind(u, sent("Upstream_port", "81"), true))).To(Equal([]string{"Upstream_name: is required", "Upstream_ip: is required"}))
	})

	DescribeTable("accepts a JSON field", func(obj model.Object, name, raw string, want string) {
		Expect(form.Bind(obj, []form.Value{sentJSON(name, raw)}, false)).To(BeEmpty())
		got, err := json.Marshal(obj)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(got)).To(ContainSubstring(want))
	},
		Entry("a number", validUpstream(), "upstream_port", `81`, `"upstream_port":81`),
		Entry("a number as text", validUpstream(), "upstream_port", `"81"`, `"upstream_port":81`),
		Entry("text with escapes", validUpstream(), "upstream_hc_path", `"\/\u0061"`, `"upstream_hc_path":"/a"`),
		Entry("true", insecure(), "Upstream_tls_insecure", `true`, `"upstream_tls_insecure":true`),
		Entry("true as text", insecure(), "Upstream_tls_insecure", `"true"`, `"upstream_tls_insecure":true`),
		Entry("false", insecure(), "Upstream_tls_insecure", `false`, `"upstream_tls_insecure":false`),
		Entry("a version", validProxy(), "Tls_min_version", `"1.3"`, `"tls_min_version":"1.3"`),
		Entry("a version as a number", validProxy(), "Tls_min_version", `1.3`, `"tls_min_version":"1.3"`),
		Entry("an object", validFilter(), "Filter_config", `{"descriptors":[{"path":"x"}]}`, `"filter_config":{"descriptors":[{"path":"x"}]}`),
		Entry("an object as text", validFilter(), "Filter_config", `"{\"descriptors\":[{\"path\":\"x\"}]}"`, `"filter_config":{"descriptors":[{"path":"x"}]}`),
		Entry("a list", validUpstream(), "tags", `["b","a"]`, `"tags":["a","b"]`),
		Entry("an empty list", validUpstream(), "tags", `[]`, `"tags":[]`),
	)

	DescribeTable("refuses a JSON field", func(obj model.Object, name, raw, want string) {
		Expect(said(form.Bind(obj, []form.Value{sentJSON(name, raw)}, false))).To(Equal([]string{want}))
	},
		Entry(nil, validUpstream(), "upstream_port", `80.5`, `Upstream_port: "80.5" is not a whole number`),
		Entry(nil, validUpstream(), "upstream_port", `8e1`, `Upstream_port: "8e1" is not a whole number`),
		Entry(nil, validUpstream(), "upstream_port", `true`, `Upstream_port: must be a whole number, not true or false`),
		Entry(nil, validUpstream(), "upstream_port", `null`, `Upstream_port: must be a whole number, not null`),
		Entry(nil, validUpstream(), "upstream_tls_insecure", `1`, `Upstream_tls_insecure: must be true or false, not a number`),
		Entry(nil, validUpstream(), "upstream_tls_insecure", `"True"`, `Upstream_tls_insecure: "True" is not true or false`),
		Entry(nil, validProxy(), "tls_min_version", `1.1`, `Tls_min_version: "1.1" is not one of 1.2, 1.3`),
		Entry(nil, validProxy(), "tls_min_version", `true`, `Tls_min_version: must be text, not true or false`),
		Entry(nil, validUpstream(), "upstream_ip", `1`, `Upstream_ip: must be text, not a number`),
		Entry(nil, validUpstream(), "upstream_ip", `["a"]`, `Upstream_ip: must be text, not an array`),
		Entry(nil, validUpstream(), "upstream_ip", `{}`, `Upstream_ip: must be text, not an object`),
		Entry(nil, validUpstream(), "tags", `["a",1]`, `tags: must be a list of words`),
		Entry(nil, validUpstream(), "tags", `{}`, `tags: must be a list of words, or text with commas between them, not an object`),
		Entry(nil, validFilter(), "Filter_config", `[]`, `Filter_config: must be a JSON object, or text that contains one, not an array`),
		Entry(nil, validFilter(), "Filter_config", `{"a":1,"A":2}`, `Filter_config: has the key "A" twice in one object`),
	)

	DescribeTable("refuses text", func(want string, pairs ...string) {
		Expect(said(form.Bind(validUpstream(), sent(pairs...), false))).To(Equal([]string{want}))
	},
		Entry(nil, `Upstream_port: "" is not a whole number`, "Upstream_port", ""),
		Entry(nil, `Upstream_port: "+80" is not a whole number`, "Upstream_port", "+80"),
		Entry(nil, `Upstream_port: "0x50" is not a whole number`, "Upstream_port", "0x50"),
		Entry(nil, `Upstream_port: "99999999999999999999" is far out of range`, "Upstream_port", "99999999999999999999"),
		Entry(nil, `Upstream_port: -1 is not between 1 and 65535`, "Upstream_port", "-1"),
		Entry(nil, `Upstream_ip: contains a NUL character`, "Upstream_ip", "a\x00b"),
		Entry(nil, `Upstream_ip: contains text that is not valid UTF-8`, "Upstream_ip", "a\xffb"),
		Entry(nil, `Upstream_ip: is sent more than once`, "Upstream_ip", "192.0.2.1", "upstream_IP", "192.0.2.2"),
		Entry(nil, `Upstream_prot: unknown field; did you mean Upstream_port?`, "Upstream_prot", "80"),
		Entry(nil, "a\x00: the name of this field contains a NUL character", "a\x00", "80"),
	)

	It("reports every bad field once, in the order of the table, followed by the unknown ones", func() {
		Expect(said(form.Bind(&model.Route{Service: "shop"}, sent("zzzzzzzz", "1", "Route_config", "{", "route_prefix", "x", "yyyyyyyy", "2", "zzzzzzzz", "3"), true))).To(Equal([]string{
			"Route_Name: is required",
			`Route_prefix: "x" must start with "/"`,
			"Route_config: is not a route configuration: unexpected EOF",
			"zzzzzzzz: unknown field; known fields are Route_Name, Route_prefix, Route_config, tags",
			"yyyyyyyy: unknown field; known fields are Route_Name, Route_prefix, Route_config, tags",
		}))
	})

	It("reports at most a hundred unknown fields", func() {
		var pairs []string
		for i := range 200 {
			pairs = append(pairs, strings.Repeat("z", 10+i), "")
		}
		Expect(form.Bind(validUpstream(), sent(pairs...), false)).To(HaveLen(100))
	})

	It("does not accept a field for a link", func() {
		link := &model.ProxyService{Proxy: "gw", Service: "shop"}
		Expect(said(form.Bind(link, sent("a", "1"), true))).To(Equal([]string{"a: unknown field; this call takes none"}))
	})
})

func validUpstream() *model.Upstream {
	u := model.NewUpstream()
	u.Name, u.IP, u.Port = "blue", "192.0.2.1", 80
	return u
}

func insecure() *model.Upstream {
	u := validUpstream()
	u.Protocol = "tls"
	return u
}

func validProxy() *model.Proxy {
	p := model.NewProxy()
	p.Name = "gw"
	return p
}

func validFilter() *model.Filter {
	return &model.Filter{Name: "limit", Type: "route_filter_ratelimit", Config: `{"descriptors":[{"remote_address":"x"}]}`}
}

var _ = Describe("Fields", func() {
	DescribeTable("has the names of rest-api.md, with a star for required ones", func(kind model.Kind, names ...string) {
		got := []string{}
		for _, f := range form.Fields(kind) {
			name := f.Name
			if f.Required {
				name += "*"
			}
			got = append(got, name)
		}
		Expect(got).To(Equal(append([]string{}, names...)))
	},
		Entry(nil, model.KindUpstream, "Upstream_name*", "Upstream_ip*", "Upstream_port*", "Upstream_weight", "Upstream_priority", "Upstream_zone", "Upstream_zone_mincount", "Upstream_slowstart_seconds", "Upstream_dns", "Upstream_dns_family", "Upstream_dns_refreshseconds", "Upstream_proxyprotocol", "Upstream_hc_type", "Upstream_hc_path", "Upstream_hc_host",
			"Upstream_hc_intervalseconds", "Upstream_hc_timeoutseconds", "Upstream_hc_unhealthythresholdcount", "Upstream_hc_healthythresholdcount",
			"Upstream_strategy", "Upstream_protocol", "Upstream_validation_cacertificate", "Upstream_validation_subjectname", "Upstream_validation_altnames", "Upstream_tls_insecure", "Upstream_client_certificate",
			"Upstream_connect_timeoutseconds", "Upstream_idle_timeoutseconds", "Upstream_keepalive_intervalseconds",
			"Upstream_max_connections", "Upstream_max_pending", "Upstream_max_requests", "Upstream_max_retries",
			"Upstream_retry_budgetpercent", "Upstream_retry_budgetmincount",
			"Upstream_outlier_thresholdcount", "Upstream_outlier_ejectionseconds", "Upstream_panic_thresholdpercent", "tags"),
		Entry(nil, model.KindService, "Service_Name*", "fqdn*", "Https", "Hsts_seconds", "Hsts_subdomains", "Client_validation_cacertificate", "Certificate", "Public", "Mode", "Port", "Exempt_filters", "tags"),
		Entry(nil, model.KindRoute, "Route_Name*", "Route_prefix*", "Route_config", "tags"),
		Entry(nil, model.KindProxy, "Name*", "Http_port", "Https_port", "Listen_ip", "Trusted_hops", "Escaped_slashes", "Underscore_headers", "Tls_min_version", "Http3", "Alt_svc_port", "tags"),
		Entry(nil, model.KindFilter, "Filter_name*", "Filter_type*", "Filter_config", "tags"),
		Entry(nil, model.KindGlobalConfig, "globalconfig_name*", "globalconfig_type*", "config*", "tags"),
		Entry(nil, model.KindSecret, "Secret_name*", "Secret_type", "Secret_sni", "Secret_cert", "Secret_key", "Secret_value", "tags"),
		Entry(nil, model.KindProxyService),
	)

	It("returns what was bound", func() {
		u := validUpstream()
		u.Tags = model.Tags{"a"}
		got := map[string]any{}
		for _, f := range form.Fields(model.KindUpstream) {
			got[f.Name] = f.Get(u)
		}
		Expect(got).To(And(HaveKeyWithValue("Upstream_name", "blue"), HaveKeyWithValue("Upstream_port", 80), HaveKeyWithValue("tags", []string{"a"})))
		Expect(form.Fields(model.KindFilter)[2].Get(validFilter())).To(Equal(json.RawMessage(`{"descriptors":[{"remote_address":"x"}]}`)))
		Expect(form.Fields(model.KindRoute)[2].Get(&model.Route{})).To(Equal(json.RawMessage(`{}`)))
	})
})
