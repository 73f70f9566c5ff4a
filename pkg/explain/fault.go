package explain

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	faultv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/fault/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
)

// faultFilter delays or fails requests on purpose.
const faultFilter = "envoy.filters.http.fault"

// passFault reports whether the request may pass. A request that always fails ends with the
// answer.
func (a *Answer) passFault(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	f := findFilter(l, faultFilter)
	if f == nil || isOff(f, vh, r) {
		return true, nil
	}
	fault, err := messageFor(faultFilter, vh, r, &faultv3.HTTPFault{})
	if err != nil {
		return false, err
	}
	status := int(fault.GetAbort().GetHttpStatus())
	if status == 0 || percent(fault.GetAbort().GetPercentage()) < 100 || !meetsFault(s, fault) {
		return true, nil
	}
	return false, a.endReplied(l, "fault_filter_abort", reply{status, "fault filter abort"}, Fault, fmt.Sprintf("a route_filter_fault fails all requests with %d, on purpose", status))
}

// meetsFault reports whether a request has the headers that the fault requires.
func meetsFault(s subject, fault *faultv3.HTTPFault) bool {
	for _, h := range fault.GetHeaders() {
		if len(s.headers[h.GetName()]) == 0 {
			return false
		}
	}
	return true
}

func (f *Filter) describeFault(p passed) error {
	fault, err := messageFor(faultFilter, p.vh, p.route, &faultv3.HTTPFault{})
	if err != nil {
		return err
	}
	if !meetsFault(p.request, fault) {
		f.Message = "does nothing to the request: it has no header " + fault.GetHeaders()[0].GetName()
		return nil
	}
	const by = "for tests, "
	f.Message = by
	if d := fault.GetDelay(); d != nil {
		f.Message += fmt.Sprintf("delays the request by %s with a chance of %v%%", duration(d.GetFixedDelay()), percent(d.GetPercentage()))
	}
	if abort := fault.GetAbort(); abort != nil {
		if f.Message != by {
			f.Message += ", and "
		}
		f.Message += fmt.Sprintf("fails it with %d with a chance of %v%%", abort.GetHttpStatus(), percent(abort.GetPercentage()))
	}
	return nil
}

// percent converts a share to percent.
func percent(p *typev3.FractionalPercent) float64 {
	of := map[typev3.FractionalPercent_DenominatorType]float64{
		typev3.FractionalPercent_HUNDRED: 100, typev3.FractionalPercent_TEN_THOUSAND: 10_000, typev3.FractionalPercent_MILLION: 1_000_000,
	}[p.GetDenominator()]
	return float64(p.GetNumerator()) * 100 / of
}
