package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

const formType = "application/x-www-form-urlencoded"

var _ = Describe("Bad input", Ordered, func() {
	var api testkit.API
	lists := []string{"/upstream", "/service", "/proxy", "/service/shop/route", "/service/shop/route/root/upstream", "/proxy/gw/service"}
	var stored map[string]string

	everything := func() map[string]string {
		GinkgoHelper()
		all := map[string]string{}
		for _, path := range lists {
			all[path] = read(api, path)
		}
		return all
	}

	BeforeAll(func() {
		api = serve("--log-level", "debug").API
		post(api, "/upstream", "Upstream_name=blue", "Upstream_ip=127.0.0.1", "Upstream_port=8081")
		addService(api, "shop", "*", "blue")
		post(api, "/proxy", "Name=gw")
		post(api, "/proxy/gw/service/shop")
		stored = everything()
	})

	DescribeTable("is refused, and nothing is stored",
		func(method, path, contentType, body string, status int, code string, fields ...string) {
			a, err := api.Do(limit(), method, path, contentType, body)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(status), a.Body)
			Expect(a.Header.Get("Content-Type")).To(Equal("application/problem+json"))
			var problem struct {
				Status              int
				Title, Detail, Code string
				Type, Instance      string
				Errors              []struct{ Field, Message string }
				ReferencedBy        []string `json:"referenced_by"`
			}
			Expect(json.Unmarshal([]byte(a.Body), &problem)).To(Succeed())
			Expect(problem.Status).To(Equal(status))
			Expect(problem.Code).To(Equal(code))
			Expect(problem.Title).NotTo(BeEmpty())
			Expect(problem.Instance).To(Equal(path))
			var named []string
			for _, e := range problem.Errors {
				named = append(named, e.Field)
				Expect(e.Message).NotTo(BeEmpty())
			}
			Expect(named).To(ConsistOf(fields))
			Expect(everything()).To(Equal(stored))
		},
		Entry("an unknown content type", "POST", "/upstream", "text/plain", "Upstream_name=x", 415, "unsupported_media_type"),
		Entry("no content type", "POST", "/upstream", "", "Upstream_name=x", 415, "unsupported_media_type"),
		Entry("port 0", "POST", "/upstream", formType, "Upstream_name=x&Upstream_ip=10.0.0.1&Upstream_port=0", 400, "invalid_fields", "Upstream_port"),
		Entry("port 70000", "POST", "/upstream", formType, "Upstream_name=x&Upstream_ip=10.0.0.1&Upstream_port=70000", 400, "invalid_fields", "Upstream_port"),
		Entry("port abc", "POST", "/upstream", formType, "Upstream_name=x&Upstream_ip=10.0.0.1&Upstream_port=abc", 400, "invalid_fields", "Upstream_port"),
		Entry("port 70000 as JSON", "POST", "/upstream", "application/json", `{"upstream_name":"x","upstream_ip":"10.0.0.1","upstream_port":70000}`, 400, "invalid_fields", "Upstream_port"),
		Entry("an invalid address", "POST", "/upstream", formType, "Upstream_name=x&Upstream_ip=300.1.1.1&Upstream_port=80", 400, "invalid_fields", "Upstream_ip"),
		Entry("no name", "POST", "/upstream", formType, "Upstream_ip=10.0.0.1&Upstream_port=80", 400, "invalid_fields", "Upstream_name"),
		Entry("nothing at all", "POST", "/service", formType, "", 400, "invalid_fields", "Service_Name", "fqdn"),
		Entry("several bad fields", "POST", "/upstream", formType, "Upstream_ip=a+b&Upstream_port=0&Upstream_weight=-1&Upstream_hc_path=x", 400, "invalid_fields",
			"Upstream_name", "Upstream_ip", "Upstream_port", "Upstream_weight", "Upstream_hc_path"),
		Entry("a name with a slash", "POST", "/service", formType, "Service_Name=a/b&fqdn=a.example", 400, "invalid_fields", "Service_Name"),
		Entry("a name that is reserved", "POST", "/service", formType, "Service_Name=dump&fqdn=a.example", 400, "invalid_fields", "Service_Name"),
		Entry("a duplicate upstream", "POST", "/upstream", formType, "Upstream_name=blue&Upstream_ip=10.0.0.1&Upstream_port=80", 409, "already_exists"),
		Entry("a duplicate service", "POST", "/service", formType, "Service_Name=shop&fqdn=a.example", 409, "already_exists"),
		Entry("a duplicate route", "POST", "/service/shop/route", formType, "Route_Name=root&Route_prefix=/", 409, "already_exists"),
		Entry("a duplicate proxy", "POST", "/proxy", formType, "Name=gw", 409, "already_exists"),
		Entry("an unknown service in a nested path", "POST", "/service/nope/route", formType, "Route_Name=a&Route_prefix=/", 404, "unknown_name"),
		Entry("an unknown service on the way to a link", "POST", "/service/nope/route/root/upstream/blue", "", "", 404, "unknown_name"),
		Entry("an unknown route on the way to a link", "POST", "/service/shop/route/nope/upstream/blue", "", "", 404, "unknown_name"),
		Entry("an unknown upstream in a link", "POST", "/service/shop/route/root/upstream/nope", "", "", 404, "unknown_name"),
		Entry("an unknown path", "POST", "/nope", "", "", 404, "not_found"),
		Entry("a method that is not allowed", "POST", "/service/dump/shop", "", "", 405, "method_not_allowed"),
		Entry("the deletion of what is in use", "DELETE", "/upstream/blue", "", "", 409, "in_use"),
		Entry("a body of 2 MiB", "POST", "/service", formType, "Service_Name="+strings.Repeat("x", 2<<20), 413, "body_too_large"),
		Entry("text that is not UTF-8", "POST", "/service", formType, "Service_Name=a%ffb&fqdn=a.example", 400, "invalid_fields", "Service_Name"),
		Entry("JSON that is not UTF-8", "POST", "/service", "application/json", "{\"Service_Name\":\"a\xffb\",\"fqdn\":\"a.example\"}", 400, "invalid_fields", "Service_Name"),
		Entry("a route configuration that is not UTF-8", "POST", "/service/shop/route", formType,
			`Route_Name=a&Route_prefix=/&Route_config={"headers":[{"name":"x","exact":"%ff"}]}`, 400, "invalid_fields", "Route_config"),
		Entry("truncated JSON", "POST", "/service", "application/json", `{"Service_Name":"a"`, 400, "malformed_body"),
		Entry("an unknown field", "POST", "/service", formType, "Service_Name=a&fqdn=a.example&colour=red", 400, "invalid_fields", "colour"),
		Entry("a route configuration with an unknown key", "POST", "/service/shop/route", formType, `Route_Name=a&Route_prefix=/&Route_config={"colour":1}`, 400, "invalid_fields", "Route_config"),
	)

	It("is explained in helpful words", func() {
		a, err := api.Post(limit(), "/upstream", "Upstream_nme=x", "Upstream_ip=10.0.0.1", "Upstream_port=80")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusBadRequest))
		Expect(a.Body).To(ContainSubstring("did you mean Upstream_name?"))

		a, err = api.Post(limit(), "/service/nope/route/root/upstream/blue")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Body).To(ContainSubstring(`service \"nope\" does not exist`))
	})
})
