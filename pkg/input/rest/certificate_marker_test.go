package rest_test

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A private key", func() {
	It("appears in no answer, read, revision, dump, log or file, whether it is stored or refused", func() {
		a := startAPI(certified(time.Now))
		ca := authority("root")
		var markers []string
		mark := func(p testkit.Pair) testkit.Pair {
			// A line of the key, and a comment in its file.
			lines := strings.Split(strings.TrimSpace(p.Key), "\n")
			markers = append(markers, lines[1], lines[2], "marker-of-"+lines[1][:8])
			p.Key = "marker-of-" + lines[1][:8] + "\n" + p.Key
			return p
		}
		shop, other := mark(issue(ca, named("shop.example.com"))), mark(issue(ca, named("blog.example.com")))
		rotated, refused := mark(issue(ca, named("shop.example.com"))), mark(issue(ca, named("shop.example.com")))
		var answers []string
		note := func(status int, got answer) {
			GinkgoHelper()
			Expect(got.status).To(Equal(status), got.body)
			answers = append(answers, got.body+strings.Join(got.header.Values("Gatehouse-Warning"), " "))
		}
		a.given(everything()...)
		note(201, a.post("/secret", pairForm(shop, "Secret_name", "shop")))
		note(201, a.post("/service/shop/secret/shop", ""))
		note(200, a.patch("/secret/shop?dry_run=true", pairForm(rotated)))
		note(200, a.patch("/secret/shop", pairForm(rotated)))
		note(200, a.patch("/secret/shop", pairForm(other))) // a warning: the service loses it
		note(400, a.patch("/secret/shop", pairForm(testkit.Pair{Cert: shop.Cert, Key: refused.Key})))
		note(400, a.patch("/secret/shop", pairForm(testkit.Pair{Cert: refused.Cert + refused.Key, Key: refused.Key})))
		note(400, a.patch("/secret/shop", pairForm(testkit.Pair{Cert: refused.Cert, Key: refused.Key + refused.Key})))
		note(400, a.patch("/secret/shop", pairForm(testkit.Pair{Cert: refused.Cert, Key: refused.Key[:len(refused.Key)-40]})))
		note(400, a.post("/secret/shop/key", url.Values{"Secret_key": {refused.Key}}.Encode()))
		note(400, a.patch("/secret/shop", pairForm(refused, "Secret_sni", "blog.example.com")))
		note(422, a.put("/upstream/u", "Upstream_ip=192.0.2.1&Upstream_port=443&Upstream_protocol=tls&Upstream_validation_cacertificate=shop"))
		note(400, a.putConfig("", "version: 1\nsecrets:\n- secret_name: shop\n  secret_cert: |\n    "+strings.ReplaceAll(shop.Cert, "\n", "\n    ")+"\n  secret_key: |\n    "+strings.ReplaceAll(refused.Key, "\n", "\n    ")+"\n"))
		note(200, a.post("/revision/9/rollback", ""))

		places := map[string]string{"database": a.stored(), "log": a.log.String(), "answers": strings.Join(answers, "\n")}
		for _, path := range []string{
			"/secret", "/secret/shop", "/secret?status=true", "/service/shop/secret", "/service/shop/secret/shop", "/service/dump/shop", "/service/dump", "/proxy/dump",
			"/config", "/config?secrets=sealed", "/revision", "/revision/7", "/revision/9", "/revision/10", "/revision/11",
		} {
			got, _ := a.call(http.MethodGet, path, "", nil)
			places[path] = got.body
		}
		Expect(places["/secret/shop"]).To(ContainSubstring(`"host_names":["shop.example.com"]`))
		for place, held := range places {
			Expect(held).NotTo(BeEmpty(), place)
			for _, marker := range markers {
				Expect(held).NotTo(ContainSubstring(marker), place)
			}
		}
	})
})
