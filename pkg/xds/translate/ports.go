package translate

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	statev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/set_filter_state/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// portKey is what routes read the port from at which a connection came. All listeners share the routes. A client cannot
// set it, as it could a header.
const portKey = "gatehouse.port"

// namePort says on each connection at which port it came.
func namePort(l ir.Listener) ([]*listenerv3.Filter, error) {
	if !l.Named {
		return nil, nil
	}
	config, err := pack(&networkv3.Config{OnNewConnection: []*statev3.FilterStateValue{{
		Key:        &statev3.FilterStateValue_ObjectKey{ObjectKey: portKey},
		FactoryKey: "envoy.string",
		Value: &statev3.FilterStateValue_FormatString{FormatString: &corev3.SubstitutionFormatString{
			Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: seam.Inline(strconv.Itoa(l.Port))},
		}},
	}}})
	return []*listenerv3.Filter{{
		Name: "envoy.filters.network.set_filter_state", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config},
	}}, err
}

func anyPort(ports []int) *matcherv3.StringMatcher {
	words := make([]string, len(ports))
	for i, port := range ports {
		words[i] = strconv.Itoa(port)
	}
	if len(words) == 1 {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: words[0]}}
	}
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(strings.Join(words, "|"))}}
}
