// Package hostrewrite is route_filter_host_rewrite: it replaces the Host that the upstream receives. Envoy's router
// does that, so there is no filter on the listener.
package hostrewrite

import (
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{Type: model.FilterHostRewrite, Config: seam.Hooks(nil, rewrite)}
}

// rewrite replaces a rewrite that was added before. A route that answers itself forwards nothing.
func rewrite(r *ir.Route, f *model.HostRewriteFilter, _ seam.Place) error {
	if r.Forward == nil {
		return nil
	}
	r.Forward.HostRewrite = &ir.HostRewrite{Host: f.Host, Header: strings.ToLower(f.FromHeader)}
	if f.FromPath != nil {
		r.Forward.HostRewrite.Regex, r.Forward.HostRewrite.Substitution = f.FromPath.Regex, f.FromPath.Substitution
	}
	return nil
}
