package compile

import (
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostCSRF(h *ir.Host, f *model.CSRFFilter, _ Place) error {
	h.CSRF = withCSRF(h.CSRF, f)
	return nil
}

func addRouteCSRF(r *ir.Route, f *model.CSRFFilter) { r.CSRF = withCSRF(r.CSRF, f) }

// withCSRF combines c and f: only pages that both allow may send changes.
func withCSRF(c *ir.CSRF, f *model.CSRFFilter) *ir.CSRF {
	var hosts []string
	for _, o := range f.Origins {
		_, host, _ := strings.Cut(o, "://") // Envoy does not compare the scheme
		if c == nil || slices.Contains(c.Hosts, host) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return &ir.CSRF{Hosts: slices.Compact(hosts)}
}
