package rest_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

// multipartOf makes a body of pairs of field and text; a field whose name
// starts with "@" is sent as a file.
func multipartOf(pairs ...string) (contentType, body string) {
	GinkgoHelper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(pairs); i += 2 {
		name, isFile := strings.CutPrefix(pairs[i], "@")
		create := w.CreateFormField
		if isFile {
			create = func(name string) (io.Writer, error) { return w.CreateFormFile(name, "upload.bin") }
		}
		part, err := create(name)
		Expect(err).NotTo(HaveOccurred())
		_, err = part.Write([]byte(pairs[i+1]))
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(w.Close()).To(Succeed())
	return w.FormDataContentType(), b.String()
}

const (
	updatedUpstream = `{"data":{"update_core_db_upstream":{"affected_rows":1}}}`
	insertUpstream  = `{"data":{"insert_core_db_upstream":{"affected_rows":1}}}`
)

var _ = Describe("PUT", func() {
	It("creates an object, then replaces all of it", func() {
		a := startAPI()
		a.put("/upstream/blue", "Upstream_ip=10.0.0.1&Upstream_port=8081").expectWrite(201, insertUpstream, "1")
		a.get("/upstream/blue").expectJSON(200, `{"data":{"core_db_upstream":[`+blueJSON+`]}}`)
		a.put("/upstream/blue", "Upstream_ip=10.0.0.9&Upstream_port=9&Upstream_weight=7&Upstream_hc_path=/hc&Upstream_strategy=random&tags=x").
			expectWrite(200, updatedUpstream, "2")
		Expect(a.get("/upstream/blue").body).To(ContainSubstring(`"upstream_weight":7,"upstream_priority":0`))
		a.put("/upstream/blue", "Upstream_ip=10.0.0.1&Upstream_port=8081").expectWrite(200, updatedUpstream, "3")
		a.get("/upstream/blue").expectJSON(200, `{"data":{"core_db_upstream":[`+blueJSON+`]}}`)
		a.put("/upstream/blue", "Upstream_ip=10.0.0.1&Upstream_port=8081").expectWrite(200, updatedUpstream, "3")
	})

	DescribeTable("uses the name of the path, which the body may repeat", func(method, contentType, body string, errs ...string) {
		a := startAPI()
		a.given("/service", "Service_Name=shop&fqdn=old.example.com")
		got := a.do(method, "/service/shop", contentType, strings.NewReader(body))
		if len(errs) > 0 {
			got.expectProblem(400, invalid("/service/shop", errs...))
			Expect(a.revision()).To(Equal(int64(1)))
			return
		}
		got.expectWrite(200, `{"data":{"update_core_db_service":{"affected_rows":1}}}`, "2")
		Expect(a.get("/service").body).To(Equal(`{"data":{"core_db_service":[` + shopJSON + `]}}`))
	},
		Entry(nil, "PUT", form, "fqdn=shop.example.com"),
		Entry(nil, "PUT", form, "SERVICE_name=shop&fqdn=shop.example.com"),
		Entry(nil, "PATCH", "application/json", `{"Service_Name":"shop","fqdn":"shop.example.com"}`),
		Entry(nil, "PUT", form, "Service_Name=Shop&fqdn=shop.example.com", "Service_Name", `must be \"shop\" as in the path, or be omitted: a name cannot be changed`),
		Entry(nil, "PATCH", form, "Service_Name=b", "Service_Name", `must be \"shop\" as in the path, or be omitted: a name cannot be changed`),
		Entry(nil, "PUT", form, "", "fqdn", "is required"),
		Entry(nil, "PUT", form, "fqdn=a&colour=red", "colour", "unknown field; known fields are Service_Name, fqdn, Https, Hsts_seconds, Hsts_subdomains, Client_validation_cacertificate, Certificate, Public, Mode, Port, Exempt_filters, tags"),
	)

	It("refuses a name that is not allowed", func() {
		a := startAPI()
		a.put("/service/a%20b", "fqdn=*").expectProblem(404, unknown("/service/a%20b",
			`service \"a b\" does not exist; a name has 1 to 253 characters of A-Z a-z 0-9 . _ -`))
		a.put("/proxy/dump", "").expectProblem(400, invalid("/proxy/dump", "Name", `\"dump\" is reserved for a call of the API`))
	})

	It("means the same in every encoding", func() {
		contentType, body := multipartOf("Upstream_ip", "10.0.0.1", "@Upstream_port", "8081")
		for _, call := range [][2]string{
			{form, "Upstream_ip=10.0.0.1&Upstream_port=8081"},
			{"application/json", `{"upstream_ip":"10.0.0.1","upstream_port":8081}`},
			{contentType, body},
		} {
			a := startAPI()
			a.do(http.MethodPut, "/upstream/blue", call[0], strings.NewReader(call[1])).expectWrite(201, insertUpstream, "1")
			a.get("/upstream/blue").expectJSON(200, `{"data":{"core_db_upstream":[`+blueJSON+`]}}`)
		}
	})

	It("creates and replaces a route", func() {
		a := startAPI()
		a.put("/service/shop/route/root", "Route_prefix=/").expectProblem(404, unknown("/service/shop/route/root", `service \"shop\" does not exist`))
		a.given(everything()...)
		a.put("/service/shop/route/second", `Route_prefix=/x&Route_config={"match":"segment"}`).
			expectWrite(201, `{"data":{"insert_core_db_route":{"affected_rows":1}}}`, "7")
		Expect(a.get("/service/shop/route/second").body).To(ContainSubstring(`"route_prefix":"/x","route_config":{"match":"segment"}`))
		a.put("/service/shop/route/second", "Route_prefix=/y").expectWrite(200, `{"data":{"update_core_db_route":{"affected_rows":1}}}`, "8")
		Expect(a.get("/service/shop/route/second").body).To(ContainSubstring(`"route_prefix":"/y","route_config":{}`))
		a.put("/service/shop/route/root", "Route_prefix=/z").expectWrite(200, `{"data":{"update_core_db_route":{"affected_rows":1}}}`, "9")
		Expect(a.get("/service/shop/route/root/upstream").body).To(ContainSubstring(`"upstream_name":"blue"`)) // links stay
	})

	It("enforces the rules between objects", func() {
		a := startAPI()
		a.given(everything()...)
		a.given("/service", "Service_Name=second&fqdn=second.example.com", "/proxy/gw/service/second", "")
		for _, method := range []string{http.MethodPut, http.MethodPatch} {
			a.do(method, "/service/second", form, strings.NewReader("fqdn=shop.example.com")).expectProblem(409,
				conflict("conflict", "It conflicts with the current state", "/service/second",
					`proxy \"gw\" already serves host \"shop.example.com\" with service \"shop\"; detach that service first, or change one of the two hosts`, ""))
		}
		a.put("/upstream/u", "Upstream_ip=::1&Upstream_port=1&Upstream_protocol=tls&Upstream_validation_cacertificate=ca&Upstream_client_certificate=own").expectProblem(422,
			cannotWork("/upstream/u", "/upstream/u names /secret/ca, which does not exist; create it first",
				"Upstream_validation_cacertificate", "names /secret/ca, which does not exist", "Upstream_client_certificate", "names /secret/own, which does not exist"))
		a.put("/upstream/u", "Upstream_ip=::1&Upstream_port=1&Upstream_protocol=tls&Upstream_validation_cacertificate=both&Upstream_client_certificate=both").expectProblem(422,
			cannotWork("/upstream/u", "/upstream/u names /secret/both, which does not exist; create it first",
				"Upstream_validation_cacertificate", "names /secret/both, which does not exist", "Upstream_client_certificate", "names /secret/both, which does not exist"))
		a.post("/service", "Service_Name=mtls&fqdn=m.test&Client_validation_cacertificate=ca").expectProblem(422,
			cannotWork("/service", "/service/mtls names /secret/ca, which does not exist; create it first", "Client_validation_cacertificate", "names /secret/ca, which does not exist"))
		Expect(a.revision()).To(Equal(int64(8)))
	})

	It("uses the defaults that a gateway sets for its own proxy", func() {
		a := startAPI(func(o *rest.Options) {
			o.NewProxy = func(name string) *model.Proxy {
				p := model.NewProxy()
				if name == "own" {
					p.HTTPPort = 9080
				}
				return p
			}
		})
		a.put("/proxy/own", "").expectWrite(201, `{"data":{"insert_core_db_proxy":{"affected_rows":1}}}`, "1")
		Expect(a.get("/proxy/own").body).To(ContainSubstring(`"http_port":9080,"https_port":8443`))
		a.put("/proxy/own", "Http_port=81&Listen_ip=::1").expectWrite(200, `{"data":{"update_core_db_proxy":{"affected_rows":1}}}`, "2")
		a.put("/proxy/own", "").expectWrite(200, `{"data":{"update_core_db_proxy":{"affected_rows":1}}}`, "3")
		Expect(a.get("/proxy/own").body).To(ContainSubstring(`"http_port":9080,"https_port":8443,"listen_ip":"0.0.0.0"`))
		a.put("/proxy/other", "")
		Expect(a.get("/proxy/other").body).To(ContainSubstring(`"http_port":8080,"https_port":8443`))
	})

	It("works with many simultaneous calls", func() {
		a := startAPI()
		answers := atOnce(8, func() answer { return a.put("/service/shop", "fqdn=*") })
		Expect(answers).To(Equal(map[string]int{"Created": 1, "OK": 7}))
		Expect(a.revision()).To(Equal(int64(1)))
	})
})

var _ = Describe("PATCH", func() {
	It("changes the fields sent and keeps the rest", func() {
		a := startAPI()
		a.given("/upstream", "Upstream_name=blue&Upstream_ip=10.0.0.1&Upstream_port=81&Upstream_weight=7&Upstream_hc_path=/hc&tags=x")
		a.patch("/upstream/blue", "Upstream_port=82").expectWrite(200, updatedUpstream, "2")
		a.do(http.MethodPatch, "/upstream/blue", "application/json", strings.NewReader(`{"upstream_ip":"::1","Upstream_name":"blue"}`)).
			expectWrite(200, updatedUpstream, "3")
		contentType, body := multipartOf("@Upstream_strategy", "random")
		a.do(http.MethodPatch, "/upstream/blue", contentType, strings.NewReader(body)).expectWrite(200, updatedUpstream, "4")
		Expect(a.get("/upstream/blue").body).To(And(
			ContainSubstring(`"upstream_ip":"::1","upstream_port":82,"upstream_weight":7,"upstream_priority":0`),
			ContainSubstring(`"upstream_strategy":"random"`), ContainSubstring(`"tags":["x"]`)))
		a.patch("/upstream/blue", "tags=").expectWrite(200, updatedUpstream, "5")
		Expect(a.get("/upstream/blue").body).To(ContainSubstring(`"tags":[]`))
		a.patch("/upstream/blue", "").expectWrite(200, `{"data":{"update_core_db_upstream":{"affected_rows":0}}}`, "5")
	})

	It("names every bad field, and what does not exist", func() {
		a := startAPI()
		a.given(everything()...)
		a.patch("/upstream/blue", "Upstream_port=0&Upstream_ip=x+y&more=1").expectProblem(400, invalid("/upstream/blue",
			"Upstream_ip", `\"x y\" is not an IPv4 address, an IPv6 address or a DNS name`, "Upstream_port", "0 is not between 1 and 65535",
			"more", "unknown field; known fields are Upstream_name, Upstream_ip, Upstream_port, Upstream_weight, Upstream_priority, Upstream_zone, Upstream_zone_mincount, Upstream_slowstart_seconds, Upstream_dns, Upstream_dns_family, Upstream_dns_refreshseconds, Upstream_proxyprotocol, Upstream_hc_type, Upstream_hc_path, Upstream_hc_host, "+
				"Upstream_hc_intervalseconds, Upstream_hc_timeoutseconds, Upstream_hc_unhealthythresholdcount, Upstream_hc_healthythresholdcount, "+
				"Upstream_strategy, Upstream_protocol, Upstream_validation_cacertificate, Upstream_validation_subjectname, Upstream_validation_altnames, "+
				"Upstream_tls_insecure, Upstream_client_certificate, "+
				"Upstream_connect_timeoutseconds, Upstream_idle_timeoutseconds, Upstream_keepalive_intervalseconds, "+
				"Upstream_max_connections, Upstream_max_pending, Upstream_max_requests, Upstream_max_retries, Upstream_retry_budgetpercent, Upstream_retry_budgetmincount, "+
				"Upstream_outlier_thresholdcount, Upstream_outlier_ejectionseconds, Upstream_panic_thresholdpercent, tags"))
		a.patch("/upstream/red", "Upstream_port=1").expectProblem(404, unknown("/upstream/red", `upstream \"red\" does not exist`))
		a.patch("/service/x/route/root", "Route_prefix=/").expectProblem(404, unknown("/service/x/route/root", `service \"x\" does not exist`))
		a.patch("/service/shop/route/x", "Route_prefix=/").expectProblem(404, unknown("/service/shop/route/x", `route \"x\" of service \"shop\" does not exist`))
		Expect(a.revision()).To(Equal(int64(6)))
	})

	It("changes a route, a service and a proxy", func() {
		a := startAPI()
		a.given(everything()...)
		a.patch("/service/shop/route/root", `Route_config={"match":"segment"}`).expectWrite(200, `{"data":{"update_core_db_route":{"affected_rows":1}}}`, "7")
		a.patch("/service/shop", "tags=a").expectWrite(200, `{"data":{"update_core_db_service":{"affected_rows":1}}}`, "8")
		a.patch("/proxy/gw", "Http_port=81").expectWrite(200, `{"data":{"update_core_db_proxy":{"affected_rows":1}}}`, "9")
		Expect(a.get("/service/shop/route/root").body).To(ContainSubstring(`"route_prefix":"/","route_config":{"match":"segment"}`))
		Expect(a.get("/service/shop").body).To(ContainSubstring(`"fqdn":"shop.example.com","https":"both","hsts_seconds":0,"hsts_subdomains":false,"client_validation_cacertificate":"","certificate":"","public":false,"mode":"http","port":0,"exempt_filters":[],"tags":["a"]`))
		Expect(a.get("/proxy/gw").body).To(ContainSubstring(`"http_port":81,"https_port":8443`))
	})
})

// cannotWork is a 422; errs are the bad fields, each with its message.
func cannotWork(path, detail string, errs ...string) string {
	text := `{"type":"urn:gatehouse:problem:cannot_work","title":"It cannot become a working configuration","status":422,"detail":"` + detail +
		`","instance":"` + path + `","code":"cannot_work"`
	for i := 0; i < len(errs); i += 2 {
		text += map[bool]string{true: `,"errors":[`, false: ","}[i == 0] + `{"field":"` + errs[i] + `","message":"` + errs[i+1] + `"}`
	}
	if len(errs) > 0 {
		text += "]"
	}
	return text + "}"
}
