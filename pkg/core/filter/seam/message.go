package seam

import (
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// Details is Envoy's description of how a response came about, in CEL. It contains parts of the request and of the
// identity provider's answer, so it must not leave Envoy unchanged.
const Details = "response.code_details"

// Begins is the condition that the details begin with one of words. Envoy bounds the size of regular expressions in
// CEL, so the alternatives do not fit in one.
func Begins(words ...string) string {
	var list []string
	for _, w := range words {
		list = append(list, Details+".startsWith('"+w+"')")
	}
	return strings.Join(list, " || ")
}

// Pack validates a message and puts it into an Any. Nothing else validates it: for the message around it, an Any is
// bytes.
func Pack(m Proto) (*anypb.Any, error) {
	if err := m.ValidateAll(); err != nil {
		return nil, err
	}
	out := &anypb.Any{}
	return out, anypb.MarshalFrom(out, m, proto.MarshalOptions{Deterministic: true})
}

// CEL matches if a CEL expression is true. An error in it, such as missing details, is no match.
func CEL(expression string) (*accesslogv3.AccessLogFilter, error) {
	config, err := Pack(&celv3.ExpressionFilter{Expression: expression})
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ExtensionFilter{
		ExtensionFilter: &accesslogv3.ExtensionFilter{
			Name:       "envoy.access_loggers.extension_filters.cel",
			ConfigType: &accesslogv3.ExtensionFilter_TypedConfig{TypedConfig: config},
		},
	}}, err
}

// Inline is a text in the message itself.
func Inline(text string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: text}}
}

// SetHeader replaces all values of a header.
func SetHeader(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// Reply gives responses for which a CEL expression is true a status, unless it is 0, and a body. from is the status that
// they all have, or 0: Envoy evaluates no expression for other responses, since each costs as much as 3% of a request.
func Reply(from uint32, expression string, status uint32, body string) (*hcmv3.ResponseMapper, error) {
	filter, err := CEL(expression)
	if from > 0 {
		filter = AllOf(StatusAtLeast(from), StatusAtMost(from), filter)
	}
	out := &hcmv3.ResponseMapper{Filter: filter, Body: Inline(body)}
	if status > 0 {
		out.StatusCode = wrapperspb.UInt32(status)
	}
	return out, err
}

// ReplyTo is a hook Replies with a Reply to one response, which its details identify.
func ReplyTo(from uint32, details string, status uint32, body string) func(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	return func(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
		m, err := Reply(from, Details+" == '"+details+"'", status, body)
		return []*hcmv3.ResponseMapper{m}, err
	}
}

// AddressHash distinguishes clients by their addresses.
func AddressHash() *routev3.RouteAction_HashPolicy {
	return &routev3.RouteAction_HashPolicy{PolicySpecifier: &routev3.RouteAction_HashPolicy_ConnectionProperties_{
		ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true},
	}}
}

// Always is on for every request.
func Always() *corev3.RuntimeFractionalPercent {
	return &corev3.RuntimeFractionalPercent{
		DefaultValue: &typev3.FractionalPercent{Numerator: 100, Denominator: typev3.FractionalPercent_HUNDRED},
	}
}
