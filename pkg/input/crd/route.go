package crd

import (
	"fmt"
	"slices"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// checkRoute describes the bound of the schema that a route exceeds; empty means none.
func checkRoute(r gatewayv1.Route) string {
	c := r.Conditions[0]
	for _, part := range []struct {
		what      string
		have, max int
	}{
		{"methods", len(c.Methods), 16}, {"conditions on headers", len(c.Headers), 16},
		{"conditions on query parameters", len(c.Query), 16},
		{"upstreams", len(r.Services), 32}, {"filters", len(r.Filters), 32},
	} {
		if part.have > part.max {
			return fmt.Sprintf("has %d %s; a GatewayHost has at most %d", part.have, part.what, part.max)
		}
	}
	if r.Retries != nil && len(r.Retries.Methods) > 16 {
		return fmt.Sprintf("has %d methods of retries; a GatewayHost has at most 16", len(r.Retries.Methods))
	}
	if what := checkMethods(c.Methods); what != "" || r.Retries == nil {
		return what
	}
	return checkMethods(r.Retries.Methods)
}

func checkMethods(methods []gatewayv1.Method) string {
	for i, m := range methods {
		if len(m) > 20 {
			return fmt.Sprintf("has the method %s; those of a GatewayHost have at most 20 characters", m)
		}
		if slices.Contains(methods[:i], m) {
			return fmt.Sprintf("has the method %s twice; write it once", m)
		}
	}
	return ""
}
