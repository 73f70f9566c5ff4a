package compile

import (
	"strings"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostFault(h *ir.Host, f *model.FaultFilter, _ Place) error {
	h.Fault = faultOf(f)
	return nil
}

func addRouteFault(r *ir.Route, f *model.FaultFilter) { r.Fault = faultOf(f) }

func faultOf(f *model.FaultFilter) *ir.Fault {
	return &ir.Fault{
		Delay: time.Duration(f.Delay), Abort: f.Abort, Millionths: f.Millionths(), Header: strings.ToLower(f.Header),
	}
}
