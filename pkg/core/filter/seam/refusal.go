package seam

import rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"

// RefuseAll refuses every request with the named policy.
func RefuseAll(policy string) *rbacconfigv3.RBAC {
	return &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_DENY, Policies: map[string]*rbacconfigv3.Policy{policy: {
		Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
		Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Any{Any: true}}},
	}}}
}

// Denied are the details of a refusal by a policy of RBAC.
func Denied(policy string) string { return "rbac_access_denied_matched_policy[" + policy + "]" }

// DeniedBody is RBAC's own body of a refusal, whose status is 403.
const DeniedBody = "RBAC: access denied"
