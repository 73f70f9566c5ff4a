package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func validUpstream() *model.Upstream {
	u := model.NewUpstream()
	u.Name, u.IP, u.Port = "blue", "192.0.2.1", 80
	return u
}

func fields(errs []model.FieldError) []string {
	var names []string
	for _, e := range errs {
		names = append(names, e.Field)
	}
	return names
}

var _ = Describe("Upstream.Validate", func() {
	It("accepts the defaults with a name, an address and a port", func() {
		Expect(validUpstream().Validate()).To(BeEmpty())
	})

	It("names every bad field", func() {
		u := &model.Upstream{
			HCPath: "health", HCHost: "a b", Port: 70000, Weight: -1, Priority: 8, Zone: "a b", ZoneMinCount: 1001, SlowStartSeconds: 3601, DNSRefreshSeconds: -1, IdleTimeoutSeconds: -1, KeepaliveIntervalSeconds: -1,
			MaxRetries: -1, RetryBudgetPercent: 101, RetryBudgetMinCount: -1, OutlierThresholdCount: -1, PanicThresholdPercent: 101,
		}
		Expect(fields(u.Validate())).To(Equal([]string{
			"Upstream_name", "Upstream_ip", "Upstream_port", "Upstream_weight", "Upstream_priority", "Upstream_zone", "Upstream_zone_mincount", "Upstream_slowstart_seconds", "Upstream_dns", "Upstream_dns_family", "Upstream_dns_refreshseconds", "Upstream_proxyprotocol", "Upstream_hc_type", "Upstream_hc_path", "Upstream_hc_host",
			"Upstream_hc_intervalseconds", "Upstream_hc_timeoutseconds",
			"Upstream_hc_unhealthythresholdcount", "Upstream_hc_healthythresholdcount",
			"Upstream_strategy", "Upstream_protocol",
			"Upstream_connect_timeoutseconds", "Upstream_idle_timeoutseconds", "Upstream_keepalive_intervalseconds",
			"Upstream_max_connections", "Upstream_max_pending", "Upstream_max_requests", "Upstream_max_retries", "Upstream_retry_budgetpercent", "Upstream_retry_budgetmincount",
			"Upstream_outlier_thresholdcount", "Upstream_outlier_ejectionseconds", "Upstream_panic_thresholdpercent",
		}))
	})

	DescribeTable("refuses load balancing that the strategy does not have", func(strategy string, names ...string) {
		u := validUpstream()
		u.Strategy, u.ZoneMinCount, u.SlowStartSeconds, u.DNS, u.DNSFamily = strategy, 1, 1, "any", "v5"
		Expect(fields(u.Validate())).To(Equal(append(names, "Upstream_dns", "Upstream_dns_family")))
	},
		Entry(nil, "round_robin"),
		Entry(nil, "least_request"),
		Entry(nil, "random", "Upstream_slowstart_seconds"),
		Entry(nil, "ring_hash", "Upstream_zone_mincount", "Upstream_slowstart_seconds"),
		Entry(nil, "maglev", "Upstream_zone_mincount", "Upstream_slowstart_seconds"),
	)

	It("requires the name in the certificate of a Unix socket", func() {
		u := validUpstream()
		u.IP, u.Protocol = "unix:/run/app.sock", "tls"
		Expect(fields(u.Validate())).To(Equal([]string{"Upstream_validation_subjectname"}))
		u.ValidationSubjectName = "app.example"
		Expect(u.Validate()).To(BeEmpty())
	})

	DescribeTable("validates the address", func(ip string, ok bool) {
		u := validUpstream()
		u.IP = ip
		if ok {
			Expect(u.Validate()).To(BeEmpty())
		} else {
			Expect(fields(u.Validate())).To(Equal([]string{"Upstream_ip"}))
		}
	},
		Entry("IPv4", "192.0.2.1", true),
		Entry("IPv6", "2001:db8::1", true),
		Entry("IPv6 loopback", "::1", true),
		Entry("a name", "backend.example.com", true),
		Entry("a name with a final dot", "backend.example.com.", true),
		Entry("one label", "localhost", true),
		Entry("a label with an underscore", "my_backend", true),
		Entry("a Unix socket", "unix:/run/app/app.sock", true),
		Entry("a relative socket", "unix:run/app.sock", false),
		Entry("an abstract socket", "unix:@app", false),
		Entry("a socket in no shortest form", "unix:/run/../app.sock", false),
		Entry("a long socket", "unix:/"+strings.Repeat("a", 107), false),
		Entry("a socket with a line feed", "unix:/run/a\nb", false),
		Entry("a root", "unix:/", false),
		Entry("a mistyped IPv4", "300.1.1.1", false),
		Entry("too few parts", "192.0.2", false),
		Entry("a port", "192.0.2.1:80", false),
		Entry("brackets", "[::1]", false),
		Entry("a zone", "fe80::1%eth0", false),
		Entry("a URL", "http://backend", false),
		Entry("an empty label", "a..b", false),
		Entry("a label that begins with a hyphen", "-a.b", false),
		Entry("a long label", strings.Repeat("a", 64), false),
		Entry("a long name", strings.Repeat("a.", 127)+"b", false),
	)

	DescribeTable("validates ranges", func(set func(*model.Upstream), field string) {
		u := validUpstream()
		set(u)
		var want []string
		if field != "" {
			want = []string{field}
		}
		Expect(fields(u.Validate())).To(Equal(want))
	},
		Entry("port 1", func(u *model.Upstream) { u.Port = 1 }, ""),
		Entry("port 65535", func(u *model.Upstream) { u.Port = 65535 }, ""),
		Entry("port 0", func(u *model.Upstream) { u.Port = 0 }, "Upstream_port"),
		Entry("port 65536", func(u *model.Upstream) { u.Port = 65536 }, "Upstream_port"),
		Entry("weight 0", func(u *model.Upstream) { u.Weight = 0 }, ""),
		Entry("weight 1000000", func(u *model.Upstream) { u.Weight = 1_000_000 }, ""),
		Entry("weight 1000001", func(u *model.Upstream) { u.Weight = 1_000_001 }, "Upstream_weight"),
		Entry("interval 0", func(u *model.Upstream) { u.HCIntervalSeconds = 0 }, "Upstream_hc_intervalseconds"),
		Entry("no idle timeout, probes, retries and outlier detection", func(u *model.Upstream) {
			u.IdleTimeoutSeconds, u.KeepaliveIntervalSeconds, u.MaxRetries, u.OutlierThresholdCount = 0, 0, 0, 0
		}, ""),
		Entry("a query in the health path", func(u *model.Upstream) { u.HCPath = "/health?x" }, "Upstream_hc_path"),
		Entry("an unknown protocol", func(u *model.Upstream) { u.Protocol = "HTTP" }, "Upstream_protocol"),
		Entry("a CA without TLS", func(u *model.Upstream) { u.ValidationCACertificate = "ca" }, "Upstream_validation_cacertificate"),
		Entry("a subject name without TLS", func(u *model.Upstream) { u.ValidationSubjectName = "backend" }, "Upstream_validation_subjectname"),
		Entry("a subject name without a CA: the system's", func(u *model.Upstream) { u.Protocol, u.ValidationSubjectName = "tls", "backend" }, ""),
		Entry("a client certificate without TLS", func(u *model.Upstream) { u.ClientCertificate = "pair" }, "Upstream_client_certificate"),
		Entry("no verification without TLS", func(u *model.Upstream) { u.TLSInsecure = true }, "Upstream_tls_insecure"),
		Entry("no verification", func(u *model.Upstream) { u.Protocol, u.TLSInsecure = "h2", true }, ""),
		Entry("no verification, and a CA", func(u *model.Upstream) {
			u.Protocol, u.TLSInsecure, u.ValidationCACertificate = "tls", true, "ca"
		}, "Upstream_tls_insecure"),
	)
})

var _ = Describe("A name", func() {
	DescribeTable("is checked", func(name, message string) {
		errs := (&model.Service{Name: name, FQDN: "*", Mode: model.ModeHTTP, HTTPS: model.HTTPSBoth}).Validate()
		if message == "" {
			Expect(errs).To(BeEmpty())
			return
		}
		Expect(errs).To(Equal([]model.FieldError{{Field: "Service_Name", Message: message}}))
	},
		Entry("one character", "a", ""),
		Entry("every allowed character", "aZ09._-", ""),
		Entry("253 characters", strings.Repeat("a", 253), ""),
		Entry("254 characters", strings.Repeat("a", 254), "has 254 characters; at most 253 are allowed"),
		Entry("empty", "", "is required"),
		Entry("a slash", "a/b", `"a/b" may contain only the characters A-Z a-z 0-9 . _ -`),
		Entry("a space", "a b", `"a b" may contain only the characters A-Z a-z 0-9 . _ -`),
		Entry("an umlaut", "bär", `"bär" may contain only the characters A-Z a-z 0-9 . _ -`),
		Entry("dots", "..", `".." cannot be part of a URL path`),
		Entry("reserved", "dump", `"dump" is reserved for a call of the API`),
		Entry("reserved in another case", "Dump", ""),
	)

	It("of a route may be a reserved word", func() {
		Expect((&model.Route{Service: "shop", Name: "dump", Prefix: "/"}).Validate()).To(BeEmpty())
	})
})

var _ = DescribeTable("A service's fqdn", func(fqdn string, ok bool) {
	errs := (&model.Service{Name: "shop", FQDN: fqdn, Mode: model.ModeHTTP, HTTPS: model.HTTPSBoth}).Validate()
	if ok {
		Expect(errs).To(BeEmpty())
	} else {
		Expect(fields(errs)).To(Equal([]string{"fqdn"}))
	}
},
	Entry("any", "*", true),
	Entry("suffix", "*.example.com", true),
	Entry("exact", "Shop.Example.com", true),
	Entry("one label", "localhost", true),
	Entry("empty", "", false),
	Entry("two stars", "*.*.example.com", false),
	Entry("a star inside", "a.*.example.com", false),
	Entry("a prefix", "shop.*", false),
	Entry("a star without a dot", "*example.com", false),
	Entry("a port", "example.com:80", false),
	Entry("a final dot", "example.com.", false),
	Entry("nothing after the star", "*.", false),
)

var _ = Describe("Service.Validate", func() {
	It("names every bad field", func() {
		s := &model.Service{Name: "copy", FQDN: "*", Mode: model.ModeHTTP, HTTPS: "redirects", HSTSSeconds: -1, ClientCACertificate: "ca"}
		Expect(fields(s.Validate())).To(Equal([]string{"Service_Name", "Https", "Hsts_seconds", "Client_validation_cacertificate"}))
	})
	It("refuses HSTS of subdomains without its time", func() {
		s := &model.Service{Name: "shop", FQDN: "*", Mode: model.ModeHTTP, HTTPS: "both", HSTSSubdomains: true}
		Expect(s.Validate()).To(Equal([]model.FieldError{{Field: "Hsts_subdomains", Message: "requires Hsts_seconds: without it the header is not sent"}}))
		s.HSTSSeconds = 1
		Expect(s.Validate()).To(BeEmpty())
	})

	It("accepts every value of Https, and ten years of HSTS", func() {
		for _, https := range []string{"both", "redirect", "only"} {
			s := &model.Service{Name: "shop", FQDN: "*.example.com", Mode: model.ModeHTTP, HTTPS: https, HSTSSeconds: 315_360_000, ClientCACertificate: "ca"}
			Expect(s.Validate()).To(BeEmpty())
		}
		s := &model.Service{Name: "shop", FQDN: "*", Mode: model.ModeHTTP, HTTPS: "both", HSTSSeconds: 315_360_001}
		Expect(s.Validate()).To(Equal([]model.FieldError{{Field: "Hsts_seconds", Message: "315360001 is not between 0 and 315360000"}}))
	})
})

var _ = Describe("Proxy.Validate", func() {
	It("names every bad field", func() {
		p := &model.Proxy{Name: "copy", HTTPPort: 0, HTTPSPort: 65536, ListenIP: "localhost", TrustedHops: -1, AltSvcPort: 65536}
		Expect(fields(p.Validate())).To(Equal([]string{"Name", "Http_port", "Https_port", "Listen_ip", "Trusted_hops", "Escaped_slashes", "Underscore_headers", "Tls_min_version", "Alt_svc_port"}))
	})
	DescribeTable("accepts a number of trusted proxies", func(hops int, want []model.FieldError) {
		p := model.NewProxy()
		p.Name, p.TrustedHops = "gw", hops
		Expect(p.Validate()).To(Equal(want))
	},
		Entry(nil, 0, nil),
		Entry(nil, 10, nil),
		Entry(nil, 11, []model.FieldError{{Field: "Trusted_hops", Message: "11 is not between 0 and 10"}}),
	)
	It("refuses the same port for both listeners", func() {
		p := model.NewProxy()
		p.Name, p.HTTPSPort = "gw", 8080
		Expect(p.Validate()).To(Equal([]model.FieldError{{Field: "Https_port", Message: "must differ from Http_port"}}))
	})
})

var _ = DescribeTable("Route_config", func(prefix, config string, bad ...string) {
	c, err := model.ParseRouteConfig(config)
	Expect(err).NotTo(HaveOccurred())
	r := &model.Route{Service: "shop", Name: "root", Prefix: prefix, Config: c}
	if len(bad) == 0 {
		Expect(r.Validate()).To(BeEmpty())
		return
	}
	Expect(fields(r.Validate())).To(Equal(bad))
},
	Entry("defaults", "/", ""),
	Entry("every option", "/a", `{"match":"segment","methods":["GET"],"headers":[{"name":"x","exact":"1"}],"query":[{"name":"q"}],
		"rewrite":{"prefix":"/b","host":"inner"},"timeouts":{"request":"1s"},"retries":{"attempts":1,"on":["5xx"],"backoff":"1ms","max_backoff":"1h"},"websocket":false}`),
	Entry("a prefix without a slash", "shop", "", "Route_prefix"),
	Entry("a prefix with a query", "/a?b", "", "Route_prefix"),
	Entry("a prefix with a line feed", "/a\nb", "", "Route_prefix"),
	Entry("a regular expression", "/items/[0-9]+", `{"match":"regex"}`),
	Entry("a bad regular expression", "/a(b", `{"match":"regex"}`, "Route_prefix"),
	Entry("a regular expression that lost its plus in a form", "/items/[0-9] ", `{"match":"regex"}`, "Route_prefix"),
	Entry("a regular expression with a character above 0xff", `/\\\x{e9}|\x{100}`, `{"match":"regex"}`, "Route_prefix"),
	Entry("a regular expression with 0xff, and an escaped backslash", `/\x{ff}\\x`, `{"match":"regex"}`),
	Entry("a regular expression that is too large", "/[a-z]{1000}", `{"match":"regex"}`, "Route_prefix"),
	Entry("several errors", "/", `{"match":"fuzzy","methods":["GE T"],"headers":[{"name":"a b"},{"name":"x","exact":"1","regex":"1"}],
		"query":[{"name":"q","invert":true}],"timeouts":{"request":"25h"},"retries":{"attempts":-1,"on":["always"]}}`,
		"Route_config.match", "Route_config.methods[0]", "Route_config.headers[0].name", "Route_config.headers[1]",
		"Route_config.query[0].invert", "Route_config.timeouts.request", "Route_config.retries.attempts", "Route_config.retries.on[0]"),
	Entry("ports out of range, or twice", "/", `{"ports":[0,80,80,65536]}`, "Route_config.ports[0]", "Route_config.ports[2]", "Route_config.ports[3]"),
	Entry("too many ports", "/", `{"ports":[`+strings.Repeat("1,", 100)+`1]}`, "Route_config.ports"),
	Entry("the longest times", "/", `{"timeouts":{"request":"24h","idle":"24h"},"retries":{"attempts":100,"per_try":"24h"}}`),
	Entry("times that are too long", "/", `{"timeouts":{"request":"24h0m0.001s","idle":"-1ms"},"retries":{"attempts":101,"per_try":"-1ms"}}`,
		"Route_config.timeouts.request", "Route_config.timeouts.idle", "Route_config.retries.attempts", "Route_config.retries.per_try"),
	Entry("a gRPC timeout that is too long", "/", `{"timeouts":{"grpc":"25h"}}`, "Route_config.timeouts.grpc"),
	Entry("a stream that is too long", "/", `{"timeouts":{"stream":"25h"}}`, "Route_config.timeouts.stream"),
	Entry("hedged attempts", "/", `{"methods":["GET"],"retries":{"attempts":1,"per_try":"1s","hedge":true}}`),
	Entry("hedged attempts for some methods", "/", `{"methods":["POST","GET"],"retries":{"attempts":1,"methods":["GET"],"per_try":"1s","hedge":true}}`, "Route_config.retries.hedge"),
	Entry("hedged attempts where only the retries have methods", "/", `{"retries":{"attempts":1,"methods":["GET"],"per_try":"1s","hedge":true}}`, "Route_config.retries.hedge"),
	Entry("hedged attempts that could do something twice", "/", `{"methods":["GET","POST"],"retries":{"attempts":1,"per_try":"1s","hedge":true}}`, "Route_config.retries.hedge"),
	Entry("hedged attempts for all methods", "/", `{"retries":{"attempts":1,"per_try":"1s","hedge":true}}`, "Route_config.retries.hedge"),
	Entry("hedged attempts that never start", "/", `{"methods":["GET"],"retries":{"attempts":1,"hedge":true}}`, "Route_config.retries.hedge"),
	Entry("invalid methods", "/", `{"retries":{"attempts":1,"methods":["G T"]}}`, "Route_config.retries.methods[0]"),
	Entry("backoff out of range", "/", `{"retries":{"attempts":1,"backoff":"1us","max_backoff":"61m"}}`,
		"Route_config.retries.backoff", "Route_config.retries.max_backoff"),
	Entry("a maximum backoff below the first one", "/", `{"retries":{"attempts":1,"max_backoff":"4ms"}}`, "Route_config.retries.max_backoff"),
	Entry("the longest first backoff", "/", `{"retries":{"attempts":1,"backoff":"1h"}}`),
	Entry("a substitution without its group", "/", `{"rewrite":{"regex":"^/a","substitution":"\\1"}}`, "Route_config.rewrite.substitution"),
	Entry("only a substitution", "/", `{"rewrite":{"substitution":"x"}}`, "Route_config.rewrite.substitution"),
	Entry("a prefix for a match without one", "/a", `{"match":"regex","rewrite":{"prefix":"/b"}}`, "Route_config.rewrite.prefix"),
	Entry("both kinds of rewrite", "/", `{"rewrite":{"prefix":"/a","regex":"b"}}`, "Route_config.rewrite"),
)

var _ = DescribeTable("ParseRouteConfig refuses", func(text, message string) {
	_, err := model.ParseRouteConfig(text)
	Expect(err).To(MatchError(ContainSubstring(message)))
},
	Entry("an unknown key", `{"matches":"prefix"}`, `unknown field "matches"`),
	Entry("two values", `{}{}`, "more than one JSON value"),
	Entry("a list", `[]`, "is not a route configuration"),
	Entry("a duration without a unit", `{"timeouts":{"request":"5"}}`, `"5" is not a duration such as "1.5s"`),
)
