package seam

import (
	tracingv3 "github.com/envoyproxy/go-control-plane/envoy/type/tracing/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// TraceTags returns tags of spans.
func TraceTags(tags []ir.TraceTag) (list []*tracingv3.CustomTag) {
	for _, t := range tags {
		switch {
		case t.Header != "":
			list = append(list, TraceTag(t.Name, "%REQ("+t.Header+"):256%"))
		case t.ResponseHeader != "":
			list = append(list, TraceTag(t.Name, "%RESP("+t.ResponseHeader+"):256%"))
		case t.Consumer != "":
			list = append(list, TraceTag(t.Name, ConsumerFormat(t.Consumer)))
		default:
			list = append(list, &tracingv3.CustomTag{Tag: t.Name, Type: &tracingv3.CustomTag_Literal_{
				Literal: &tracingv3.CustomTag_Literal{Value: t.Value},
			}})
		}
	}
	return list
}

// TraceTag returns a tag of spans in the format of the access log.
func TraceTag(name, format string) *tracingv3.CustomTag {
	return &tracingv3.CustomTag{Tag: name, Type: &tracingv3.CustomTag_Value{Value: format}}
}
