// Package redirect is route_filter_redirect: it sends the client to another URL. Envoy's router does that, so there is
// no filter on the listener.
package redirect

import (
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{Type: model.FilterRedirect, Config: seam.Hooks(nil, redirect)}
}

func redirect(r *ir.Route, f *model.RedirectFilter, _ seam.Place) error {
	r.Redirect = &ir.Redirect{
		Status: f.Code, Scheme: f.Scheme, Host: strings.ToLower(strings.Trim(f.Host, "[]")), Port: f.Port, Path: f.Path,
		Rewrite:    ir.Rewrite{Prefix: f.Prefix, Regex: f.Regex, Substitution: f.Substitution},
		StripQuery: f.StripQuery,
	}
	return nil
}
