package seam

import (
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// NoCluster is the name of a cluster that never exists: no upstream's name has a slash.
const NoCluster = "gatehouse/none"

// MutationRules set which headers a server's answer may change: no header that frames or routes a message. Over gRPC, a
// server could otherwise change a request's length.
func MutationRules() *mutationv3.HeaderMutationRules {
	const kept = "connection|content-length|forwarded|t(e|railer|ransfer-encoding)|upgrade|x-(forwarded-.*|real-ip)"
	return &mutationv3.HeaderMutationRules{
		DisallowSystem: wrapperspb.Bool(true), DisallowExpression: &matcherv3.RegexMatcher{Regex: kept},
	}
}
