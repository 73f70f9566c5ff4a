package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("What a service of another mode than http cannot have", func() {
	It("is refused by name, whatever comes first", func() {
		g := serve()
		_, api, _ := strings.Cut(strings.TrimPrefix(g.API.URL, "http://"), ":")
		call := func(method, path, fields string) string {
			GinkgoHelper()
			a, err := g.API.Do(limit(), method, path, "application/x-www-form-urlencoded", fields)
			Expect(err).NotTo(HaveOccurred())
			return strconv.Itoa(a.Status) + " " + a.Body
		}
		made := func(path, fields string) {
			GinkgoHelper()
			Expect(call(http.MethodPost, path, fields)).To(HavePrefix("201"), path)
		}
		made("/upstream", "Upstream_name=u&Upstream_ip=192.0.2.1&Upstream_port=1")
		made("/upstream", "Upstream_name=secret&Upstream_ip=192.0.2.1&Upstream_port=2&Upstream_protocol=tls")
		made("/proxy", "Name=gw&Http_port=8080&Https_port=8443")
		made("/filter", "Filter_name=head&Filter_type=route_filter_headers&Filter_config={\"request\":{\"set\":{\"x-a\":\"b\"}}}")
		made("/filter", "Filter_name=ip&Filter_type=vh_filter_ipaccess&Filter_config={\"deny\":[\"192.0.2.7\"]}")
		made("/filter", "Filter_name=where&Filter_type=vh_filter_ipaccess&Filter_config={\"deny_asns\":[64500]}")
		made("/service", "Service_Name=db&Mode=tcp&Port=5432&fqdn=*")
		made("/service", "Service_Name=dns&Mode=udp&Port=5432&fqdn=*")
		made("/service", "Service_Name=pass&Mode=tls&fqdn=a.example")
		made("/service", "Service_Name=web&fqdn=a.example")
		made("/service", "Service_Name=all&fqdn=*")
		made("/service/db/route", "Route_Name=root&Route_prefix=/")
		made("/service/pass/route", "Route_Name=root&Route_prefix=/")
		made("/service/web/route", "Route_Name=root&Route_prefix=/")
		made("/service/web/route", "Route_Name=more&Route_prefix=/more")
		made("/service/web/filter/head", "")
		for _, name := range []string{"db", "dns", "pass", "all"} { // the same number for TCP and UDP, and three of *
			made("/proxy/gw/service/"+name, "")
		}
		for _, refused := range []struct{ method, path, fields, want string }{
			{"POST", "/service", "Service_Name=x&fqdn=*&Mode=tcp", "400 Port: is required for mode tcp"},
			{"POST", "/service", "Service_Name=x&fqdn=a.example&Mode=udp&Port=1", `400 fqdn: must be "*" for mode udp`},
			{"POST", "/service", "Service_Name=x&fqdn=*&Mode=tls", "400 fqdn: must be a host name"},
			{"POST", "/service", "Service_Name=x&fqdn=*&Port=80", "400 Port: is for mode tcp, tls and udp"},
			{"POST", "/service", "Service_Name=x&fqdn=*&Mode=quic", "400 Mode:"},
			{"POST", "/service", "Service_Name=x&fqdn=*&Mode=tcp&Port=65536", "400 Port: 65536 is not between 0 and 65535"},
			{"POST", "/service", "Service_Name=x&fqdn=*&Mode=tcp&Port=1&Https=only&Hsts_seconds=1&Public=true", "400 Public: is for mode http: a service of mode tcp has no requests"},
			{"POST", "/upstream", "Upstream_name=x&Upstream_ip=192.0.2.1&Upstream_port=1&Upstream_hc_type=tcp&Upstream_hc_path=/h", "400 Upstream_hc_path: is for Upstream_hc_type http"},
			{"POST", "/service/db/route", "Route_Name=x&Route_prefix=/", `422 service "db" is of mode tcp, and has route "root" already`},
			{"PATCH", "/service/db/route/root", "Route_prefix=/a", `422 Route_prefix: must be "/"`},
			{"PATCH", "/service/db/route/root", `Route_config={"methods":["GET"]}`, "422 Route_config: may have timeouts.idle and timeouts.stream only"},
			{"PATCH", "/service/db/route/root", `Route_config={"timeouts":{"request":"1s"}}`, "422 Route_config.timeouts: may have idle and stream only"},
			{"POST", "/service/db/filter/head", "", `422 filter "head" is of type "route_filter_headers", which is about requests, and service "db" is of mode tcp`},
			{"POST", "/service/db/route/root/filter/head", "", `422 filter "head" is of type "route_filter_headers"`},
			{"POST", "/service/db/filter/where", "", `422 filter "where" has countries or networks, which are looked up for requests only: use allow and deny, and service "db" is of mode tcp`},
			{"POST", "/service/pass/route/root/upstream/secret", "", `422 upstream "secret" has Upstream_protocol tls, and a service of mode tls passes on what it gets`},
			{"PATCH", "/service/web", "Mode=tls&fqdn=b.example", `422 service "web" cannot be of mode tls: it has more than one route; Route_prefix of route "more" must be "/"`},
			{"PATCH", "/service/web", "Mode=tls&fqdn=b.example", `filter "head" is of type "route_filter_headers"`},
			{"POST", "/proxy/gw/service/web", "", `422 proxy "gw" cannot serve service "web", which wants the host a.example, which service pass of mode tls has`},
			{"PATCH", "/service/all", "fqdn=A.example", `422 proxy "gw" cannot serve service "all", which wants the host A.example, which service pass of mode tls has`},
			{"PATCH", "/service/db", "Port=8080", `422 which wants port 8080, which is the Http_port of proxy gw`},
			{"PATCH", "/service/db", "Port=8443", `422 which wants port 8443, which is the Https_port of proxy gw; mode tls can share it`},
			{"PATCH", "/service/dns", "Port=8443", `422 which wants UDP port 8443, which is the Https_port of proxy gw, and kept for HTTP/3`},
			{"PATCH", "/service/pass", "Port=5432", `422 which wants TCP port 5432, which service db has`},
			{"PATCH", "/service/dns", "Mode=tcp", `422 which wants TCP port 5432, which service db has`},
			{"PATCH", "/service/db", "Port=" + api, `422 which wants port ` + api + `, where Gatehouse's own API is`},
			{"PATCH", "/proxy/gw", "Http_port=5432", `422 proxy "gw" serves service "db", which wants port 5432, which is the Http_port of proxy gw`},
		} {
			answer := call(refused.method, refused.path, refused.fields)
			status, want, _ := strings.Cut(refused.want, " ")
			if len(status) != 3 {
				status, want = "422", refused.want
			}
			Expect(answer).To(HavePrefix(status+" "), "%s %s %s", refused.method, refused.path, refused.fields)
			var problem struct {
				Detail string
				Errors []struct{ Field, Message string }
			}
			_, body, _ := strings.Cut(answer, " ")
			Expect(json.Unmarshal([]byte(body), &problem)).To(Succeed())
			text := problem.Detail
			for _, e := range problem.Errors {
				text += " " + e.Field + ": " + e.Message
			}
			Expect(text).To(ContainSubstring(want), "%s %s %s: %s", refused.method, refused.path, refused.fields, body)
		}
		Expect(call("POST", "/service/db/filter/ip", "")).To(HavePrefix("201"))
		Expect(call("PATCH", "/filter/ip", "Filter_type=route_filter_headers&Filter_config={\"request\":{\"set\":{\"x-a\":\"b\"}}}")).To(
			And(HavePrefix("422"), ContainSubstring(`service \"db\" is of mode tcp`)))
		Expect(call("PATCH", "/filter/ip", `Filter_config={"deny_countries":["DE"]}`)).To(
			And(HavePrefix("422"), ContainSubstring("has countries or networks, which are looked up for requests only")))
	})

	It("has a bound on the ports of a proxy", func() {
		g := serve()
		post(g.API, "/proxy", "Name=gw")
		for i := range 101 {
			name := fmt.Sprintf("s%d", i)
			post(g.API, "/service", "Service_Name="+name, "Mode=tcp", fmt.Sprintf("Port=%d", 20000+i), "fqdn=*")
			a, err := g.API.Post(limit(), "/proxy/gw/service/"+name)
			Expect(err).NotTo(HaveOccurred())
			if i < 100 {
				Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
				continue
			}
			Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
			Expect(a.Body).To(ContainSubstring("100 is the most that a proxy has"))
		}
	})
})
