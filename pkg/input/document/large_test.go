package document_test

import (
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// largeDocument returns a document with n services, each with a route to an upstream of
// its own, and a proxy that has all of them. change may change the objects of each
// number.
func largeDocument(n int, change func(i int, upstream, service, route map[string]any)) string {
	var upstreams, services, names []any
	for i := range n {
		upstream := map[string]any{"upstream_name": fmt.Sprint("u", i), "upstream_ip": "192.0.2.1", "upstream_port": 80}
		route := map[string]any{"route_name": "root", "route_prefix": "/", "upstreams": []string{fmt.Sprint("u", i)}}
		service := map[string]any{"service_name": fmt.Sprint("s", i), "fqdn": fmt.Sprintf("s%d.example.com", i), "routes": []any{route}}
		change(i, upstream, service, route)
		upstreams, services, names = append(upstreams, upstream), append(services, service), append(names, service["service_name"])
	}
	text, err := json.Marshal(map[string]any{
		"version": 1, "upstreams": upstreams, "services": services, "proxies": []any{map[string]any{"name": "gw", "services": names}},
	})
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

var _ = Describe("a document with more objects than a page", func() {
	const n = 450
	same := func(int, map[string]any, map[string]any, map[string]any) {}

	It("creates them, finds them unchanged, and changes what differs", func() {
		c := configOf()
		Expect(c.applied(largeDocument(n, same), document.ApplyOptions{})).To(Equal(document.Result{Created: 5*n + 1}))
		Expect(c.applied(largeDocument(n, same), document.ApplyOptions{Prune: true})).To(Equal(document.Result{Unchanged: 5*n + 1}))
		was := c.dump(document.WriteOptions{})
		By("moving each route to the upstream of the next, and each host to the service before")
		moved := largeDocument(n, func(i int, _, service, route map[string]any) {
			route["upstreams"] = []string{fmt.Sprint("u", (i+1)%n)}
			service["fqdn"] = fmt.Sprintf("s%d.example.com", (i+1)%n)
		})
		Expect(c.applied(moved, document.ApplyOptions{Prune: true})).To(Equal(document.Result{Created: n, Updated: n, Deleted: n, Unchanged: 3*n + 1}))
		Expect(get[*model.Service](c, model.ServiceKey("s449")).FQDN).To(Equal("s0.example.com"))
		By("pruning all but the first")
		Expect(c.applied(largeDocument(1, same), document.ApplyOptions{Prune: true}).Deleted).To(Equal(5*(n-1) + 1))
		By("reverting")
		c.write(func(w store.Writer) error { return store.Rollback(w, 1) })
		Expect(c.dump(document.WriteOptions{})).To(Equal(was))
	})

	It("is refused as a whole for a conflict of its last object", func() {
		c := configOf(largeDocument(2, same))
		was := c.dump(document.WriteOptions{})
		_, _, err := c.apply(largeDocument(n, func(i int, _, service, _ map[string]any) {
			if i == n-1 {
				service["fqdn"] = "s0.example.com"
			}
		}), document.ApplyOptions{})
		Expect(err).To(MatchError(HavePrefix(`line 1: proxies["gw"].services[449]: proxy "gw" already serves host "s0.example.com" with service "s0"`)))
		Expect(c.revision()).To(Equal(int64(1)))
		Expect(c.dump(document.WriteOptions{})).To(Equal(was))
	})
})
