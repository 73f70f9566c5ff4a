package rest_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Tags", func() {
	DescribeTable("are returned sorted and without duplicates", func(contentType, body, tags string) {
		a := startAPI()
		Expect(a.do(http.MethodPut, "/service/shop", contentType, strings.NewReader(body)).status).To(Equal(201))
		Expect(a.get("/service/shop").body).To(ContainSubstring(`"tags":` + tags + `,"create_ts"`))
	},
		Entry(nil, form, "fqdn=*&tags=b,a , b,,", `["a","b"]`),
		Entry(nil, form, "fqdn=*&TAGS=", `[]`),
		Entry(nil, form, "fqdn=*", `[]`),
		Entry(nil, "application/json", `{"fqdn":"*","tags":["z","a:b/c.d_e-f"]}`, `["a:b/c.d_e-f","z"]`),
		Entry(nil, "application/json", `{"fqdn":"*","tags":"z,y"}`, `["y","z"]`),
		Entry(nil, "application/json", `{"fqdn":"*","tags":[]}`, `[]`),
	)

	It("can be set on every object with a name", func() {
		a := startAPI()
		a.given(everything()...)
		a.given("/filter", "Filter_name=limit&Filter_type=route_filter_ratelimit&Filter_config="+limitConfig,
			"/globalconfig", "globalconfig_name=rates&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig,
			"/secret", "Secret_name=s&Secret_value=v")
		for _, path := range []string{"/upstream/blue", "/service/shop", "/service/shop/route/root", "/proxy/gw", "/filter/limit", "/globalconfig/rates", "/secret/s"} {
			got := a.patch(path, "tags=red,blue")
			Expect(got.status).To(Equal(200), got.body)
			Expect(a.get(path).body).To(ContainSubstring(`"tags":["blue","red"]`))

			list := path[:strings.LastIndexByte(path, '/')]
			Expect(a.get(list + "?tag=red").body).To(Equal(a.get(path).body))
			Expect(a.get(list + "?tag=re").body).To(HaveSuffix(":[]}}"))
		}
	})

	It("select from lists, also of links, page by page", func() {
		a := startAPI()
		fill(a, 20)
		for _, n := range []string{"s003", "s007", "s011"} {
			a.patch("/service/"+n, "tags=red")
		}
		a.patch("/upstream/u005", "tags=red")
		Expect(a.walk("/service?tag=red&limit=2", "service_name")).To(Equal([][]string{{"s003", "s007"}, {"s011"}}))
		Expect(a.walk("/proxy/gw/service?tag=red&limit=2", "service_name")).To(Equal([][]string{{"s003", "s007"}, {"s011"}}))
		Expect(a.walk("/service?tag=red&name=s01", "service_name")).To(Equal([][]string{{"s011"}}))
		Expect(a.walk("/service/s000/route/r000/upstream?tag=red", "upstream_name")).To(Equal([][]string{{"u005"}}))
		Expect(a.walk("/service?tag=%25", "service_name")).To(Equal([][]string{{}}))
	})

	DescribeTable("must be words", func(contentType, body, message string) {
		a := startAPI()
		a.do(http.MethodPut, "/service/shop", contentType, strings.NewReader(body)).
			expectProblem(400, invalid("/service/shop", "tags", message))
	},
		Entry(nil, form, "fqdn=*&tags=a+b", `\"a b\" is not a word of 1 to 63 characters of A-Z a-z 0-9 . _ : / -`),
		Entry(nil, form, "fqdn=*&tags="+strings.Repeat("a", 64), `\"`+strings.Repeat("a", 64)+`\" is not a word of 1 to 63 characters of A-Z a-z 0-9 . _ : / -`),
		Entry(nil, "application/json", `{"fqdn":"*","tags":[""]}`, `\"\" is not a word of 1 to 63 characters of A-Z a-z 0-9 . _ : / -`),
		Entry(nil, "application/json", `{"fqdn":"*","tags":[1]}`, "must be a list of words"),
		Entry(nil, "application/json", `{"fqdn":"*","tags":{}}`, "must be a list of words, or text with commas between them, not an object"),
	)
})
