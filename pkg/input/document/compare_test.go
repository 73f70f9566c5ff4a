package document_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// counting counts the calls of a Writer.
type counting struct {
	store.Writer
	// prefetched are the keys, and rows the rows of lists.
	prefetched, rows, lists int
}

func (c *counting) Prefetch(keys []model.Key) error {
	c.prefetched += len(keys)
	return c.Writer.Prefetch(keys)
}

func (c *counting) List(q store.Query) ([]model.Object, error) {
	list, err := c.Writer.List(q)
	c.lists++
	c.rows += len(list)
	return list, err
}

// applyCounting applies a document and counts the calls for it.
func (c config) applyCounting(text string, opts document.ApplyOptions) (document.Result, counting) {
	GinkgoHelper()
	doc, err := document.Parse([]byte(text), "application/json")
	Expect(err).NotTo(HaveOccurred())
	var result document.Result
	var asked counting
	_, err = c.Write(context.Background(), store.Origin{Actor: "test"}, func(w store.Writer) (err error) {
		asked = counting{Writer: w}
		result, err = document.Apply(&asked, doc, opts)
		return err
	})
	Expect(err).NotTo(HaveOccurred())
	return result, asked
}

var _ = Describe("unchanged configuration", func() {
	const n = 450
	same := func(int, map[string]any, map[string]any, map[string]any) {}

	It("is read once: each object, and each link with its owner", func() {
		c := configOf(largeDocument(n, same))
		result, asked := c.applyCounting(largeDocument(n, same), document.ApplyOptions{})
		Expect(result).To(Equal(document.Result{Unchanged: 5*n + 1}))
		Expect(c.revision()).To(Equal(int64(1)))
		Expect(asked.prefetched).To(Equal(3*n + 1)) // upstreams, services, routes, the proxy
		Expect(asked.rows).To(Equal(2 * n))         // the links of the routes, and those of the proxy
	})

	It("is not read again because of what changed", func() {
		c := configOf(largeDocument(n, same))
		one := func(i int, upstream, _, _ map[string]any) {
			if i == 7 {
				upstream["upstream_port"] = 81
			}
		}
		result, asked := c.applyCounting(largeDocument(n, one), document.ApplyOptions{})
		Expect(result).To(Equal(document.Result{Updated: 1, Unchanged: 5 * n}))
		Expect(asked.prefetched).To(Equal(3*n + 1 + 1))
		Expect(asked.rows).To(Equal(2 * n))
	})

	It("is not searched for among the links of new objects", func() {
		result, asked := configOf().applyCounting(largeDocument(n, same), document.ApplyOptions{})
		Expect(result).To(Equal(document.Result{Created: 5*n + 1}))
		Expect(asked.lists).To(BeZero())
	})

	It("is recognized by its attachments", func() {
		const before = `version: 1
upstreams:
- {upstream_name: a, upstream_ip: 192.0.2.1, upstream_port: 80}
- {upstream_name: b, upstream_ip: 192.0.2.1, upstream_port: 81}
services:
- service_name: shop
  fqdn: shop.example.com
  routes:
  - {route_name: root, route_prefix: /, upstreams: [a]}
`
		const links = "version: 1\nservices:\n- service_name: shop\n  fqdn: shop.example.com\n  routes:\n  - {route_name: root, route_prefix: /, upstreams: "
		c := configOf(before)
		Expect(c.applied(links+"[a]}\n", document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 3}))
		Expect(c.applied(links+"[b]}\n", document.ApplyOptions{})).To(Equal(document.Result{Created: 1, Deleted: 1, Unchanged: 2}))
		Expect(c.applied(links+"[b, a]}\n", document.ApplyOptions{})).To(Equal(document.Result{Created: 1, Unchanged: 3}))
		Expect(c.applied(links+"[]}\n", document.ApplyOptions{})).To(Equal(document.Result{Deleted: 2, Unchanged: 2}))
		Expect(c.applied("version: 1\nservices:\n- service_name: shop\n  fqdn: shop.example.com\n  routes:\n  - {route_name: root, route_prefix: /}\n",
			document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 2}))
	})

	It("counts a link once if both ends list it", func() {
		const both = `version: 1
services:
- {service_name: shop, fqdn: shop.example.com, proxies: [gw]}
proxies:
- {name: gw, services: [shop]}
`
		c := configOf(both)
		Expect(c.applied(both, document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 3}))
		Expect(c.applied(both, document.ApplyOptions{Prune: true})).To(Equal(document.Result{Unchanged: 3}))
	})

	It("must not keep a link to what prune deletes", func() {
		const attached = "version: 1\nservices:\n- {service_name: shop, fqdn: shop.example.com, proxies: [gw]}\n"
		c := configOf("version: 1\nproxies:\n- {name: gw}\n", attached)
		_, _, err := c.apply(attached, document.ApplyOptions{Prune: true})
		Expect(err).To(MatchError(HavePrefix(`line 3: services["shop"].proxies[0]: proxy "gw" does not exist`)))
		Expect(c.applied(attached, document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 2}))
	})
})
