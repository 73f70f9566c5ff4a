// Package fault is route_filter_fault: it delays or fails requests on purpose.
package fault

import (
	"fmt"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	commonfaultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/fault/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name = "envoy.filters.http.fault"
	// details are Envoy's for a request that it fails.
	details                  = "fault_filter_abort"
	key     seam.Key[*Fault] = "fault"
)

// Fault delays or fails some requests.
type Fault struct {
	// Delay is how long a request is delayed; 0 means no delay.
	Delay time.Duration `json:"delay,omitempty"`
	// Abort is the status that replaces the upstream's answer; 0 means none.
	Abort int `json:"abort,omitempty"`
	// Millionths is the share of requests, in millionths.
	Millionths int `json:"millionths"`
	// Header must be on a request for a fault; empty means that any request may have one.
	Header string `json:"header,omitempty"`
}

// Filter returns the filter. A route's configuration replaces its service's.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterFault, Config: seam.Adds(key, replace),
		Name: name, Listener: noFault, Disabled: true,
		Host: seam.OfHost(key, messages), Route: seam.OfRoute(key, messages),
		Refuses: map[string]string{details: model.FilterFault},
		Replies: seam.ReplyTo(0, details, 0, "this request was failed on purpose, as a test\n"),
		Refuse:  refuse, Describe: describe,
	}
}

func replace(_ *Fault, f *model.FaultFilter, _ seam.Place) (*Fault, error) {
	return &Fault{
		Delay: time.Duration(f.Delay), Abort: f.Abort, Millionths: f.Millionths(), Header: strings.ToLower(f.Header),
	}, nil
}

// noFault does nothing without a host's or route's message.
func noFault(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &faultv3.HTTPFault{}}}
}

// messages ignore the headers with which Envoy lets clients choose faults.
func messages(f *Fault) ([]seam.Message, error) {
	out := &faultv3.HTTPFault{DisableDownstreamClusterStats: true}
	share := &typev3.FractionalPercent{
		Numerator: uint32(f.Millionths), Denominator: typev3.FractionalPercent_MILLION, //nolint:gosec // at most a million
	}
	if f.Delay > 0 {
		out.Delay = &commonfaultv3.FaultDelay{
			FaultDelaySecifier: &commonfaultv3.FaultDelay_FixedDelay{FixedDelay: durationpb.New(f.Delay)}, Percentage: share,
		}
	}
	if f.Abort > 0 {
		status := uint32(f.Abort) //nolint:gosec // a status code
		out.Abort = &faultv3.FaultAbort{ErrorType: &faultv3.FaultAbort_HttpStatus{HttpStatus: status}, Percentage: share}
	}
	if f.Header != "" {
		out.Headers = []*routev3.HeaderMatcher{{
			Name: f.Header, HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: true},
		}}
	}
	return []seam.Message{{Name: name, Config: out}}, nil
}

// refuse refuses a request that always fails.
func refuse(r seam.Request) (*seam.Refusal, error) {
	fault, err := seam.MessageOf(name, r, &faultv3.HTTPFault{})
	if err != nil {
		return nil, err
	}
	status := int(fault.GetAbort().GetHttpStatus())
	if status == 0 || percent(fault.GetAbort().GetPercentage()) < 100 || !meets(r, fault) {
		return nil, nil
	}
	return &seam.Refusal{
		Code: "fault", Message: fmt.Sprintf("a route_filter_fault fails all requests with %d, on purpose", status),
		Details: details, Status: status, Body: "fault filter abort",
	}, nil
}

// meets reports whether a request has the headers that the fault requires.
func meets(r seam.Request, fault *faultv3.HTTPFault) bool {
	for _, h := range fault.GetHeaders() {
		if len(r.Headers[h.GetName()]) == 0 {
			return false
		}
	}
	return true
}

func describe(r seam.Request) (string, error) {
	fault, err := seam.MessageOf(name, r, &faultv3.HTTPFault{})
	if err != nil {
		return "", err
	}
	if !meets(r, fault) {
		return "does nothing to the request: it has no header " + fault.GetHeaders()[0].GetName(), nil
	}
	var does []string
	if d := fault.GetDelay(); d != nil {
		does = append(does, fmt.Sprintf("delays the request by %s with a chance of %v%%",
			d.GetFixedDelay().AsDuration(), percent(d.GetPercentage())))
	}
	if abort := fault.GetAbort(); abort != nil {
		does = append(does, fmt.Sprintf("fails it with %d with a chance of %v%%",
			abort.GetHttpStatus(), percent(abort.GetPercentage())))
	}
	return "for tests, " + strings.Join(does, ", and "), nil
}

// percent converts a share to percent.
func percent(p *typev3.FractionalPercent) float64 {
	of := map[typev3.FractionalPercent_DenominatorType]float64{
		typev3.FractionalPercent_HUNDRED: 100, typev3.FractionalPercent_TEN_THOUSAND: 10_000,
		typev3.FractionalPercent_MILLION: 1_000_000,
	}[p.GetDenominator()]
	return float64(p.GetNumerator()) * 100 / of
}
