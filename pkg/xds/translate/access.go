package translate

import (
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// AccessFilter is the name of the filter that says who may do what.
const AccessFilter = "envoy.filters.http.rbac/access"

// accessRefused names its refusals.
const accessRefused = "access_refused"

// accessFilter lets nobody in.
func accessFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: AccessFilter, config: &rbacv3.RBAC{Rules: refuseAll(accessRefused)}}}
}
