package compile

import (
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addHostRewrite replaces a rewrite of the host that was added before.
func addHostRewrite(r *ir.Route, f *model.HostRewriteFilter) {
	if r.Forward == nil {
		return
	}
	r.Forward.HostRewrite = &ir.HostRewrite{Host: f.Host, Header: strings.ToLower(f.FromHeader)}
	if f.FromPath != nil {
		r.Forward.HostRewrite.Regex, r.Forward.HostRewrite.Substitution = f.FromPath.Regex, f.FromPath.Substitution
	}
}
