package compile

import (
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addHostRewrite takes the place of a rewrite of the host that came before it.
func addHostRewrite(r *ir.Route, f *model.HostRewriteFilter) {
	if r.Forward == nil {
		return
	}
	r.Forward.HostRewrite = &ir.HostRewrite{Host: f.Host, Header: strings.ToLower(f.FromHeader)}
	if f.FromPath != nil {
		r.Forward.HostRewrite.Regex, r.Forward.HostRewrite.Substitution = f.FromPath.Regex, f.FromPath.Substitution
	}
}
