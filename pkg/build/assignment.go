package build

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// assignment is the result for the endpoints of a discovered upstream.
type assignment struct {
	ir       *ir.Assignment
	resource *snapshot.Resource
}

// applyAssignments rebuilds the assignments of some upstreams, and adds the proxies with
// their clusters to dirty. It rebuilds nothing else.
func (b *Build) applyAssignments(upstreams []string, result *Result, dirty map[string]*proxy) {
	for _, name := range upstreams {
		a, condition := b.assign(name)
		var resource *snapshot.Resource
		if a == nil {
			delete(b.assignments, name)
		} else {
			b.assignments[name], resource = a, a.resource
		}
		source := "endpoints " + name
		result.Conditions[source] = nil
		if condition != nil {
			result.Conditions[source] = []model.Condition{*condition}
		}
		for _, p := range b.proxies {
			if p.builder.SetAssignment(compile.AssignmentName(name), resource) {
				dirty[p.name] = p
			}
		}
	}
}

// assign builds the assignment of an upstream; nil if the upstream is not discovered. If
// Envoy would refuse it, the previous assignment stays, or one without endpoints.
func (b *Build) assign(upstream string) (*assignment, *model.Condition) {
	endpoints := b.config.Endpoints(upstream)
	if endpoints == nil {
		return nil, nil
	}
	a, condition := compile.Assignment(upstream, endpoints, b.settings)
	made, err := encodeAssignment(a)
	if err == nil {
		return made, condition
	}
	condition = &model.Condition{
		Key: model.UpstreamKey(upstream), Code: model.Quarantined, Message: "Envoy would refuse its endpoints, and they stay as they were: " + err.Error(),
	}
	if old := b.assignments[upstream]; old != nil {
		return old, condition
	}
	a.Endpoints = nil
	made, err = encodeAssignment(a)
	if err != nil { // this is always valid for Envoy
		return nil, condition
	}
	return made, condition
}

func encodeAssignment(a *ir.Assignment) (*assignment, error) {
	r, err := snapshot.NewAssignment(translate.Assignment(a), objectRef(model.UpstreamKey(a.Upstream)))
	return &assignment{a, r}, err
}
