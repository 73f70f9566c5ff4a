package build

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// assignment is what was made of the endpoints of a discovered upstream.
type assignment struct {
	ir       *ir.Assignment
	resource *snapshot.Resource
}

// applyAssignments makes the assignments of some upstreams again, and adds the proxies that
// have their clusters to dirty. Nothing else is made again.
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

// assign makes the assignment of an upstream; nil if it is not discovered. What Envoy would
// refuse leaves the assignment as it was, or without endpoints.
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
	if err != nil { // which Envoy's constraints allow always
		return nil, condition
	}
	return made, condition
}

func encodeAssignment(a *ir.Assignment) (*assignment, error) {
	r, err := snapshot.NewAssignment(translate.Assignment(a), objectRef(model.UpstreamKey(a.Upstream)))
	return &assignment{a, r}, err
}
