// Package requestid is http_filter_requestid: it keeps the X-Request-Id of clients, and tells it to them.
package requestid

import (
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name                   = "envoy.filters.http.header_mutation/requestid"
	key  seam.Key[*Policy] = "requestid"

	header = "x-request-id"
	// sent has what the client sent, because Envoy replaces the header before any filter. Clients cannot set it: the
	// listener removes headers with this prefix.
	sent = "x-envoy-client-request-id"
)

// Policy says which X-Request-Id requests and responses have.
type Policy struct {
	TakeOver bool `json:"take_over,omitempty"`
	Echo     bool `json:"echo,omitempty"`
}

// Filter returns the filter. Envoy applies the messages of a host and of a route one after the other, so a service's
// filter is added to each route that has none of its own.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterRequestID, Config: seam.Hooks(nil, replace),
		Name: name, Listener: nothing, Disabled: true, Route: seam.OfRoute(key, messages), Manager: rememberSent,
		Describe: describe, Change: change,
	}
}

func replace(r *ir.Route, f *model.RequestIDFilter, _ seam.Place) error {
	r.Filters = key.In(r.Filters, &Policy{TakeOver: f.TakeOver, Echo: f.Echo})
	return nil
}

func nothing(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &headermutationv3.HeaderMutation{}}}
}

// rememberSent copies the client's header before Envoy replaces it. APPEND and a copy that is not there cost less than
// anything that looks a header up.
func rememberSent(_ ir.Listener, m *hcmv3.HttpConnectionManager) error {
	copied := set(sent, header)
	copied.GetAppend().AppendAction = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
	config, err := seam.Pack(&earlyv3.HeaderMutation{Mutations: []*mutationv3.HeaderMutation{copied}})
	m.EarlyHeaderMutationExtensions = append(m.EarlyHeaderMutationExtensions, &corev3.TypedExtensionConfig{
		Name: "gatehouse.request_id", TypedConfig: config,
	})
	return err
}

// set sets a header to the value of one of the request, if there is one.
func set(name, from string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{
		Append: seam.SetHeader(name, "%REQ("+from+"):128%"),
	}}
}

func messages(p *Policy) ([]seam.Message, error) {
	out := &headermutationv3.Mutations{}
	if p.TakeOver {
		out.RequestMutations = append(out.RequestMutations, set(header, sent))
	}
	out.RequestMutations = append(out.RequestMutations, &mutationv3.HeaderMutation{
		Action: &mutationv3.HeaderMutation_Remove{Remove: sent},
	})
	if p.Echo {
		out.ResponseMutations = []*mutationv3.HeaderMutation{set(header, header)}
	}
	return []seam.Message{{Name: name, Config: &headermutationv3.HeaderMutationPerRoute{Mutations: out}}}, nil
}

func describe(r seam.Request) (string, error) {
	m, err := seam.MessageOf(name, r, &headermutationv3.HeaderMutationPerRoute{})
	said := []string{"the request has a new X-Request-Id"}
	if len(m.GetMutations().GetRequestMutations()) > 1 {
		said[0] = "keeps the client's X-Request-Id"
		if r.Header(sent) == "" {
			said[0] = "would keep the client's X-Request-Id, and it sent none"
		}
	}
	if len(m.GetMutations().GetResponseMutations()) > 0 {
		said = append(said, "the response has it too")
	}
	return strings.Join(said, "; "), err
}

func change(r seam.Request) (seam.Request, error) {
	m, err := seam.MessageOf(name, r, &headermutationv3.HeaderMutationPerRoute{})
	return r.Mutate(m.GetMutations().GetRequestMutations()), err
}
