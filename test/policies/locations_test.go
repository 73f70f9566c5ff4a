package policies_test

import (
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A redirect", func() {
	It("leads where explain predicts, whatever the path and the port", func() {
		w := newWorld(redirect())
		w.attach("/service/shop/route/root/filter/f")
		for _, try := range []struct{ config, host, path, location string }{
			{`{"prefix":"/"}`, "shop.test", "/shop/a?b=c", "http://shop.test/a?b=c"},
			{`{"prefix":"/v2"}`, "shop.test", "/shopping", "http://shop.test/v2ping"},
			{`{"regex":"/shop/([0-9]+)","substitution":"/items/\\1"}`, "shop.test", "/shop/12/x?y=/shop/3", "http://shop.test/items/12/x?y=/shop/3"},
			{`{"regex":"^/s","substitution":"t"}`, "shop.test", "/shop", "http://shop.test/thop"},
			{`{"scheme":"https"}`, "shop.test:80", "/shop", "https://shop.test/shop"},
			{`{"scheme":"https"}`, "shop.test:8080", "/shop", "https://shop.test:8080/shop"},
			{`{"scheme":"http","strip_query":true}`, "shop.test:80", "/shop?a", "http://shop.test:80/shop"},
			{`{"port":8443}`, "shop.test:8080", "/shop", "http://shop.test:8443/shop"},
			{`{"host":"[2001:DB8::1]"}`, "shop.test:8080", "/shop", "http://[2001:db8::1]/shop"},
			{`{"path":"/new?a=b","strip_query":true}`, "shop.test", "/shop?c=d", "http://shop.test/new?a=b"},
			{`{"path":"/100%25"}`, "shop.test", "/shop", "http://shop.test/100%25"},
		} {
			w.configure(try.config)
			a := w.send(request{what: try.config, host: try.host, path: try.path})
			Expect(a.header.Get("Location")).To(Equal(try.location), try.config)
			var list []struct {
				Location string `json:"location"`
			}
			w.read("/proxy/gw/explain?"+url.Values{"url": {"http://" + try.host + try.path}}.Encode(), "core_db_explain", &list)
			Expect(list).To(HaveLen(1))
			Expect(list[0].Location).To(Equal(try.location), "explain of "+try.config)
		}
	})
})
