package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The consumer of a request", func() {
	It("is in lines of JSON and text, in those of collectors, and in spans, and nothing that a client sends is", func() {
		t := newTraced()
		post(t.api, "/keyset", "Keyset_name=partners")
		for _, name := range []string{"mobile", "free", "barred"} {
			post(t.api, "/keyset/partners/key", "Key_name="+name, "Key_hash="+model.HashKey([]byte("secret of "+name)))
		}
		post(t.api, "/consumer", "Consumer_name=acme", "Consumer_groups=gold,beta", `Consumer_credentials={"keys":["partners/mobile"]}`)
		post(t.api, "/consumer", "Consumer_name=globex", "Consumer_groups=barred", `Consumer_credentials={"keys":["partners/barred"]}`)
		for name, config := range map[string]string{"http_filter_apikey": `{"keys":"partners"}`, "http_filter_consumer": `{"name_header":"x-who","deny":["barred"]}`} {
			post(t.api, "/filter", "Filter_name="+name, "Filter_type="+name, "Filter_config="+config)
			post(t.api, "/service/shop/filter/"+name)
		}
		addService(t.api, "open", "open.example", "blue")
		post(t.api, "/proxy/gw/service/open")
		fields := []any{map[string]any{"name": "consumer", "consumer": "name"}, map[string]any{"name": "groups", "consumer": "groups"}}
		t.trace(map[string]any{"upstream": "grpc", "tags": fields})
		t.log("json", map[string]any{"fields": fields})
		t.log("text", map[string]any{"fields": fields, "text": "text of {path}: {consumer} in {groups}"})
		t.log("otlp", map[string]any{"upstream": "grpc", "fields": fields})
		t.log("als", toALS(map[string]any{"fields": fields}))

		forged := []string{"X-Consumer-Name: boss", "X-Who: boss", "X-Consumer-Groups: admins"}
		ask := func(host, path, key string) {
			GinkgoHelper()
			header := "X-Api-Key: " + base64.StdEncoding.EncodeToString([]byte("partners/"+key+":secret of "+key))
			_, err := t.send(http.MethodGet, host, path, append(forged, header)...)
			Expect(err).NotTo(HaveOccurred())
		}
		for _, r := range []struct {
			host, path, key string
			who, groups     any
		}{
			{"shop.example", "/allowed", "mobile", "acme", "beta,gold"},
			{"shop.example", "/barred", "barred", "globex", "barred"},
			{"shop.example", "/unknown", "free", nil, nil},
			{"shop.example", "/refused", "none", nil, nil},
			{"open.example", "/open", "mobile", nil, nil},
		} {
			ask(r.host, r.path, r.key)
			_, line := lineOf(t.plane, r.path)
			said := fmt.Sprintf("text of %s: %v in %v", r.path, r.who, r.groups)
			if r.who == nil {
				said = "text of " + r.path + ": - in -"
				Expect(line).To(And(HaveKeyWithValue("consumer", BeNil()), HaveKeyWithValue("groups", BeNil())), r.path)
			} else {
				Expect(line).To(And(HaveKeyWithValue("consumer", r.who), HaveKeyWithValue("groups", r.groups)), r.path)
			}
			Eventually(t.plane.Stdout.Lines).Should(ContainElement(said))
			Eventually(t.line).WithArguments(r.path).ShouldNot(BeNil())
			Eventually(entry).WithArguments(t.collector, r.path).ShouldNot(BeEmpty())
			var e struct {
				Common struct {
					Tags map[string]any `json:"customTags"`
				} `json:"commonProperties"`
			}
			Expect(json.Unmarshal([]byte(entry(t.collector, r.path)), &e)).To(Succeed())
			tags := t.spansOf(r.path, 1)[0].Tags
			if r.who == nil {
				Expect(t.line(r.path).Fields).To(HaveKeyWithValue("consumer", "-"))
				Expect(e.Common.Tags).NotTo(HaveKey("consumer"))
				Expect(tags).NotTo(HaveKey("consumer"))
				continue
			}
			Expect(t.line(r.path).Fields).To(And(HaveKeyWithValue("consumer", r.who), HaveKeyWithValue("groups", r.groups)))
			Expect(e.Common.Tags).To(And(HaveKeyWithValue("consumer", r.who), HaveKeyWithValue("groups", r.groups)))
			Expect(tags).To(And(HaveKeyWithValue("consumer", r.who), HaveKeyWithValue("groups", r.groups)))
		}
		Expect(strings.Join(t.plane.Stdout.Lines(), "\n")).NotTo(Or(ContainSubstring("boss"), ContainSubstring("admins")))
	})
})
