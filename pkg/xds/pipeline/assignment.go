package pipeline

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// assignment is the result for the endpoints of a discovered cluster.
type assignment struct {
	ir       *ir.Assignment
	resource *snapshot.Resource
}

// applyAssignments rebuilds the assignments of some upstreams.
func (b *Build) applyAssignments(upstreams []string, result *Result) {
	clear(b.joined)
	for _, name := range upstreams {
		a, condition := b.buildAssignment(name)
		b.assignments[name] = a
		if a == nil {
			delete(b.assignments, name)
		}
		source := "endpoints " + name
		result.Conditions[source] = nil
		if condition != nil {
			result.Conditions[source] = []model.Condition{*condition}
		}
	}
}

// moveEndpoints looks again at the assignments of the clusters of upstreams whose endpoints or
// weight may have changed, and adds the proxies with such clusters to dirty.
func (b *Build) moveEndpoints(change model.Change, upstreams []string, dirty map[string]*proxy) {
	names := slices.Clone(upstreams)
	for _, e := range change.Entries {
		if e.Key.Kind == model.KindUpstream && b.assignments[e.Key.Name()] != nil {
			names = append(names, e.Key.Name())
		}
	}
	for _, name := range names {
		for _, p := range b.proxies {
			if p.builder.MoveEndpoints(objectRef(model.UpstreamKey(name))) {
				dirty[p.name] = p
			}
		}
	}
}

// assignmentOf returns the assignment of a cluster; nil if none of its upstreams is discovered.
func (b *Build) assignmentOf(cluster *snapshot.Resource) *snapshot.Resource {
	if a := b.assign(cluster.Objects); a != nil {
		return a.resource
	}
	return nil
}

// assign returns the assignment of the cluster of these upstreams. Only clusters of several join
// assignments. The parts were valid for Envoy, and so is what joins them.
func (b *Build) assign(upstreams []snapshot.ObjectRef) *assignment {
	if len(upstreams) == 1 {
		return b.assignments[upstreams[0].Name]
	}
	var names []string
	var shares []compile.Share
	for _, u := range upstreams {
		names = append(names, u.Name)
		if a := b.assignments[u.Name]; a != nil {
			stored := b.config.Upstream(u.Name)
			shares = append(shares, compile.Share{Assignment: a.ir, Weight: stored.Weight, Priority: stored.Priority})
		}
	}
	cluster := compile.ClusterName(names)
	if a := b.joined[cluster]; a != nil || len(shares) == 0 {
		return a
	}
	a, err := encodeAssignment(compile.JoinAssignments(cluster, shares))
	if err != nil {
		return nil
	}
	b.joined[cluster] = a
	return a
}

// buildAssignment builds the assignment of an upstream; nil if the upstream is not discovered. If
// Envoy would refuse it, the previous assignment stays, or one without endpoints.
func (b *Build) buildAssignment(upstream string) (*assignment, *model.Condition) {
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
		Key: model.UpstreamKey(upstream), Code: model.Quarantined,
		Message: "Envoy would refuse its endpoints, and they stay as they were: " + err.Error(),
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
	r, err := snapshot.NewAssignment(translate.Assignment(a), upstreamRefs(a.Upstreams)...)
	if err != nil {
		return nil, err
	}
	for _, e := range a.Endpoints {
		r.Endpoints = append(r.Endpoints, snapshot.EndpointRef{
			ObjectRef: objectRef(model.UpstreamKey(e.Upstream)), Address: e.Address, Port: e.Port,
		})
	}
	return &assignment{a, r}, nil
}
