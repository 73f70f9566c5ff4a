package seam

import (
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// RefuseAll refuses every request with the named policy.
func RefuseAll(policy string) *rbacconfigv3.RBAC {
	return &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_DENY, Policies: map[string]*rbacconfigv3.Policy{policy: {
		Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
		Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Any{Any: true}}},
	}}}
}

// RefusalDetails is the format of the access log that tells refusals apart: Envoy's details. Filters for keys and for
// passwords have the same details. What follows these is KeyRefused if the request has a key that is not valid.
const RefusalDetails = "%RESPONSE_CODE_DETAILS(ALLOW_WHITESPACES)% %REQ(" + model.KeyHeader + "?" + model.AnyKeyHeader +
	"):1%%REQ(" + model.ClientHeader + "):1%."

// KeyRefused is the first letter of "Basic", which the header with a key begins with, and no client.
const KeyRefused = " B."

// Denied are the details of a refusal by a policy of RBAC.
func Denied(policy string) string { return "rbac_access_denied_matched_policy[" + policy + "]" }

// DeniedBody is RBAC's own body of a refusal, whose status is 403.
const DeniedBody = "RBAC: access denied"
