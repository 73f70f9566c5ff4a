package status

import (
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// Shape makes the status of an object of the Gateway API.
type Shape interface {
	// Before is the status that the object has.
	Before() any
	// Wanted returns the status that the object should have, in place of before, and the time after which that may differ
	// without a new fact. passing says that it may be momentary.
	Wanted(f conditions.Facts, before any, now time.Time) (status any, passing bool, again time.Duration)
	// Ours reports whether the object has something that this installation wrote, or should have.
	Ours() bool
}

// apiEvery is the least time between two writes of an object of the Gateway API, whatever others write to it.
const apiEvery = time.Second

// resourceOf returns the resource of a job.
func resourceOf(j job) schema.GroupVersionResource {
	if j.api == nil {
		return gatewayv1.GroupVersion().WithResource(gatewayv1.Resource(j.ref.Kind))
	}
	resource := strings.ToLower(j.ref.Kind) + "s"
	switch j.ref.Kind {
	case translate.KindGatewayClass:
		resource = "gatewayclasses"
	case translate.KindBackendTLSPolicy:
		resource = "backendtlspolicies"
	}
	return schema.GroupVersion(gwapi.GroupVersion).WithResource(resource)
}

// value is the status that a job writes.
func (j *job) value() any {
	if j.api != nil {
		return j.api
	}
	return j.status
}

// takeAPI compares an object of the Gateway API with its status. The status is written only in the version in which it
// was read: it also has what other controllers say of the object.
func (q *queue) takeAPI(o Object, e *entry, now time.Time) (again time.Duration) {
	wanted, passing, again := o.API.Wanted(o.Facts, e.api, now)
	if reflect.DeepEqual(wanted, e.api) {
		delete(q.jobs, o.Ref)
		return again
	}
	j := q.jobs[o.Ref]
	if j == nil || j.since.Before(e.seen) {
		j = &job{ref: o.Ref, since: now}
		q.jobs[o.Ref] = j
	}
	j.uid, j.api, j.claims = o.UID, wanted, e.version
	if j.due = j.since; passing {
		j.due = e.seen.Add(settleTime)
	}
	j.due = maxTime(j.due, e.written.Add(apiEvery))
	return again
}

// shape is what all kinds of the Gateway API have.
type shape struct {
	controller string
	became     *translate.Object
}

// conditionsOf returns the conditions for verdicts.
func conditionsOf(list []translate.Verdict, generation int64) (out []metav1.Condition) {
	for _, v := range list {
		c := metav1.Condition{Type: v.Type, Status: metav1.ConditionFalse, Reason: v.Reason, Message: v.Message, ObservedGeneration: generation}
		if v.True {
			c.Status = metav1.ConditionTrue
		}
		out = append(out, c)
	}
	return out
}

// withOthers adds the conditions of types that this installation does not write.
func withOthers(own, before []metav1.Condition) []metav1.Condition {
	for _, c := range before {
		if conditions.Find(own, c.Type) == nil && !slices.Contains(ownTypes(), c.Type) {
			own = append(own, c)
		}
	}
	return own
}

// ownTypes are the types of conditions that this installation may write.
func ownTypes() []string {
	return []string{conditions.Accepted, conditions.ResolvedRefs, conditions.Programmed, string(gwapi.RouteConditionPartiallyInvalid),
		string(gwapi.ListenerConditionConflicted), RouteProgrammed}
}

// liveOf returns the condition Programmed with the reasons of the Gateway API.
func liveOf(f conditions.Facts, before []metav1.Condition) (c metav1.Condition, passing bool, again time.Duration) {
	c, again = conditions.Live(f, before)
	c.ObservedGeneration = f.Generation
	passing = c.Reason == conditions.Waiting || c.Reason == conditions.Refused
	switch c.Reason {
	case conditions.Waiting, conditions.ReplicaUnheard:
		c.Reason = string(gwapi.ListenerReasonPending)
	case conditions.NotConnected:
		c.Reason = string(gwapi.GatewayReasonNoResources)
	case conditions.Refused:
		c.Reason = string(gwapi.GatewayReasonInvalid)
	}
	return c, passing, again
}

// Class makes the status of a GatewayClass.
func Class(o *gwapi.GatewayClass, became *translate.Object, features []gwapi.FeatureName) Shape {
	return class{shape{became: became}, o, features}
}

type class struct {
	shape
	object   *gwapi.GatewayClass
	features []gwapi.FeatureName
}

func (s class) Before() any { return s.object.Status }

func (s class) Ours() bool { return s.became.API != nil }

func (s class) Wanted(f conditions.Facts, before any, now time.Time) (any, bool, time.Duration) {
	was, _ := before.(gwapi.GatewayClassStatus)
	result, ok := s.became.API.(*translate.ClassResult)
	if !ok {
		return was, false, 0
	}
	now1 := gwapi.GatewayClassStatus{}
	now1.Conditions = withOthers(conditionsOf(result.Conditions, f.Generation), was.Conditions)
	conditions.Since(now1.Conditions, was.Conditions, now)
	for _, name := range s.features {
		now1.SupportedFeatures = append(now1.SupportedFeatures, gwapi.SupportedFeature{Name: name})
	}
	return now1, false, 0
}

// Gateway makes the status of a Gateway.
func Gateway(o *gwapi.Gateway, became *translate.Object) Shape {
	return gateway{shape{became: became}, o}
}

type gateway struct {
	shape
	object *gwapi.Gateway
}

func (s gateway) Before() any { return s.object.Status }

func (s gateway) Ours() bool { return s.became.API != nil }

func (s gateway) Wanted(f conditions.Facts, before any, now time.Time) (any, bool, time.Duration) {
	was, _ := before.(gwapi.GatewayStatus)
	result, ok := s.became.API.(*translate.GatewayResult)
	if !ok {
		return was, false, 0
	}
	live, passing, again := liveOf(f, was.Conditions)
	own := conditionsOf(result.Conditions, f.Generation)
	programmed := live
	if accepted := own[0]; accepted.Status != metav1.ConditionTrue {
		programmed.Status, programmed.Reason, programmed.Message = metav1.ConditionFalse, string(gwapi.GatewayReasonInvalid), accepted.Message
	}
	status := gwapi.GatewayStatus{Addresses: result.Addresses, AttachedListenerSets: was.AttachedListenerSets}
	if result.Sets > 0 || was.AttachedListenerSets != nil { // an older CustomResourceDefinition has no such field
		status.AttachedListenerSets = &result.Sets
	}
	status.Conditions = withOthers(append(own, programmed), was.Conditions)
	conditions.Since(status.Conditions, was.Conditions, now)
	for _, l := range result.Listeners {
		at := slices.IndexFunc(was.Listeners, func(w gwapi.ListenerStatus) bool { return w.Name == l.Name })
		var had []metav1.Condition
		if at >= 0 {
			had = was.Listeners[at].Conditions
		}
		c := live
		if !l.Served {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(gwapi.ListenerReasonInvalid), "it serves nothing: see its other conditions"
		}
		list := withOthers(append(conditionsOf(l.Conditions, f.Generation), c), had)
		conditions.Since(list, had, now)
		status.Listeners = append(status.Listeners, gwapi.ListenerStatus{
			Name: l.Name, SupportedKinds: l.SupportedKinds, AttachedRoutes: l.Attached, Conditions: list,
		})
	}
	return status, passing, again
}

// RouteProgrammed is the type of the condition that says whether the Envoys have a route. The Gateway API has none.
const RouteProgrammed = "gateway.gatehouse.dev/Programmed"

// Route makes the status of a route, of any kind.
func Route(before gwapi.RouteStatus, became *translate.Object, controller string) Shape {
	return route{shape{controller, became}, before}
}

type route struct {
	shape
	before gwapi.RouteStatus
}

func (s route) Before() any { return s.before }

func (s route) Ours() bool {
	result, _ := s.became.API.(*translate.RouteResult)
	return result != nil && len(result.Parents) > 0 || slices.ContainsFunc(s.before.Parents, s.isOurs)
}

func (s route) isOurs(p gwapi.RouteParentStatus) bool {
	return string(p.ControllerName) == s.controller
}

func (s route) Wanted(f conditions.Facts, before any, now time.Time) (any, bool, time.Duration) {
	was, _ := before.(gwapi.RouteStatus)
	status, again, passing := gwapi.RouteStatus{}, time.Duration(0), false
	status.Parents = slices.DeleteFunc(slices.Clone(was.Parents), s.isOurs)
	if status.Parents == nil {
		status.Parents = []gwapi.RouteParentStatus{}
	}
	result, _ := s.became.API.(*translate.RouteResult)
	if result == nil {
		result = &translate.RouteResult{}
	}
	for _, p := range result.Parents {
		if len(status.Parents) == maxParents {
			break
		}
		at := slices.IndexFunc(was.Parents, func(w gwapi.RouteParentStatus) bool {
			return s.isOurs(w) && reflect.DeepEqual(w.ParentRef, p.Ref)
		})
		var had []metav1.Condition
		if at >= 0 {
			had = was.Parents[at].Conditions
		}
		settled := slices.Clone(had) // Programmed has another name here
		for i := range settled {
			if settled[i].Type == RouteProgrammed {
				settled[i].Type = conditions.Programmed
			}
		}
		own := conditionsOf(p.Conditions, f.Generation)
		live, soon, after := liveOf(f, settled)
		if live.Type = RouteProgrammed; own[0].Status != metav1.ConditionTrue {
			live.Status, live.Reason, live.Message, soon = metav1.ConditionFalse, own[0].Reason, own[0].Message, false
		}
		if passing = passing || soon; after > 0 && (again == 0 || after < again) {
			again = after
		}
		list := withOthers(append(own, live), had)
		conditions.Since(list, had, now)
		status.Parents = append(status.Parents, gwapi.RouteParentStatus{
			ParentRef: p.Ref, ControllerName: gwapi.GatewayController(s.controller), Conditions: list,
		})
	}
	return status, passing, again
}

// maxParents is the most that the status of a route may have.
const maxParents = 32

// Policy makes the status of a BackendTLSPolicy.
func Policy(before gwapi.PolicyStatus, became *translate.Object, controller string) Shape {
	return policy{shape{controller, became}, before}
}

type policy struct {
	shape
	before gwapi.PolicyStatus
}

func (s policy) Before() any { return s.before }

func (s policy) isOurs(a gwapi.PolicyAncestorStatus) bool {
	return string(a.ControllerName) == s.controller
}

func (s policy) Ours() bool {
	result, _ := s.became.API.(*translate.PolicyResult)
	return result != nil && len(result.Ancestors) > 0 || slices.ContainsFunc(s.before.Ancestors, s.isOurs)
}

func (s policy) Wanted(f conditions.Facts, before any, now time.Time) (any, bool, time.Duration) {
	was, _ := before.(gwapi.PolicyStatus)
	status := gwapi.PolicyStatus{Ancestors: slices.DeleteFunc(slices.Clone(was.Ancestors), s.isOurs)}
	if status.Ancestors == nil {
		status.Ancestors = []gwapi.PolicyAncestorStatus{}
	}
	result, _ := s.became.API.(*translate.PolicyResult)
	if result == nil {
		result = &translate.PolicyResult{}
	}
	for _, ref := range result.Ancestors {
		if len(status.Ancestors) == maxAncestors {
			break
		}
		at := slices.IndexFunc(was.Ancestors, func(a gwapi.PolicyAncestorStatus) bool {
			return s.isOurs(a) && reflect.DeepEqual(a.AncestorRef, ref)
		})
		var had []metav1.Condition
		if at >= 0 {
			had = was.Ancestors[at].Conditions
		}
		list := withOthers(conditionsOf(result.Conditions, f.Generation), had)
		conditions.Since(list, had, now)
		status.Ancestors = append(status.Ancestors, gwapi.PolicyAncestorStatus{
			AncestorRef: ref, ControllerName: gwapi.GatewayController(s.controller), Conditions: list,
		})
	}
	return status, false, 0
}

// maxAncestors is the most that the status of a policy may have.
const maxAncestors = 16
