package compile

import (
	"cmp"
	"net/http"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addMaintenance closes a host. It adds a route for paths without one, since Envoy runs no filter
// for a request without a route.
func addMaintenance(h *ir.Host, f *model.MaintenanceFilter, _ Place) error {
	if !f.IsOn() {
		return nil
	}
	h.Maintenance = &ir.Maintenance{
		Status: f.Status, Body: cmp.Or(f.Body, "this service is closed for maintenance\n"), ContentType: cmp.Or(f.ContentType, "text/plain"),
		RetryAfter: f.RetryAfter, Except: sortRanges(parseRanges(f.Except)),
	}
	h.Last = []*ir.Route{{
		Name: "maintenance", Match: ir.Match{PathKind: ir.PathPrefix, Path: "/"}, Respond: &ir.Respond{Status: http.StatusNotFound, Body: "nothing is served for this host and path\n"}, Public: true,
	}}
	return nil
}
