// Package tracing is route_filter_tracing: it sets which requests of a route have spans, and what these say. The
// connection manager makes the spans, so there is no filter on the listener.
package tracing

import (
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const key seam.Key[*Policy] = "tracing"

// Policy is how the requests of a route are traced.
type Policy struct {
	// Millionths is the share of requests that are traced, in millionths.
	Millionths uint32        `json:"millionths"`
	Tags       []ir.TraceTag `json:"tags,omitempty"`
}

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{Type: model.FilterTracing, Config: seam.LastOf(add, nil), ChangeRoute: trace}
}

func add(r *ir.Route, f *model.TracingFilter, _ seam.Place) error {
	const percent = 10_000
	p := &Policy{Millionths: 100 * percent}
	if f.Sampling != nil {
		p.Millionths = uint32(*f.Sampling*percent + 0.5)
	}
	for _, t := range f.Tags {
		p.Tags = append(p.Tags, ir.TraceTag(t))
	}
	r.Filters = key.In(r.Filters, p)
	return nil
}

func trace(r *ir.Route, out *routev3.Route) error {
	p := key.Of(r.Filters)
	if p == nil {
		return nil
	}
	out.Tracing = &routev3.Tracing{
		RandomSampling: &typev3.FractionalPercent{
			Numerator: p.Millionths, Denominator: typev3.FractionalPercent_MILLION,
		},
		CustomTags: seam.TraceTags(p.Tags),
	}
	return nil
}
