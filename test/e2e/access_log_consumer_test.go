package e2e_test

import (
	"encoding/base64"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A log with the header of consumers", func() {
	It("has the consumer of a request that is allowed, whatever the client says", func() {
		g, gw, _ := shop()
		post(gw.api, "/keyset", "Keyset_name=partners")
		for _, name := range []string{"mobile", "free"} {
			post(gw.api, "/keyset/partners/key", "Key_name="+name, "Key_hash="+model.HashKey([]byte("secret of "+name)))
		}
		post(gw.api, "/consumer", "Consumer_name=acme", "Consumer_groups=gold", `Consumer_credentials={"keys":["partners/mobile"]}`)
		for name, config := range map[string]string{"http_filter_apikey": `{"keys":"partners"}`, "http_filter_consumer": `{}`} {
			post(gw.api, "/filter", "Filter_name="+name, "Filter_type="+name, "Filter_config="+config)
			post(gw.api, "/service/shop/filter/"+name)
		}
		applied(gw.api, http.MethodPost, "/globalconfig", "globalconfig_name=log", "globalconfig_type=globalconfig_accesslog",
			`config={"fields":[{"name":"consumer","header":"x-consumer-name"}]}`)
		ask := func(path, name string) map[string]any {
			GinkgoHelper()
			key := "X-Api-Key: " + base64.StdEncoding.EncodeToString([]byte("partners/"+name+":secret of "+name))
			gw.answers("shop.example", path, key, "X-Consumer-Name: boss")
			_, fields := lineOf(g, path)
			return fields
		}
		Expect(ask("/allowed", "mobile")).To(And(HaveKeyWithValue("consumer", "acme"), HaveKeyWithValue("client", "partners/mobile")))
		Expect(ask("/unknown", "free")).To(And(HaveKeyWithValue("consumer", BeNil()), HaveKeyWithValue("client", "partners/free")))
		Expect(ask("/refused", "none")).To(HaveKeyWithValue("consumer", BeNil()))
	})
})
