package status

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// ListenerSet makes the status of a ListenerSet.
func ListenerSet(o *gwapi.ListenerSet, became *translate.Object) Shape {
	return listenerSet{shape{became: became}, o}
}

type listenerSet struct {
	shape
	object *gwapi.ListenerSet
}

func (s listenerSet) Before() any { return s.object.Status }

func (s listenerSet) Ours() bool { return s.became.API != nil }

func (s listenerSet) Wanted(f conditions.Facts, before any, now time.Time) (any, bool, time.Duration) {
	was, _ := before.(gwapi.ListenerSetStatus)
	result, ok := s.became.API.(*translate.SetResult)
	if !ok {
		return was, false, 0
	}
	live, passing, again := liveOf(f, was.Conditions)
	status := gwapi.ListenerSetStatus{Conditions: withLive(result.Conditions, live, was.Conditions, f.Generation, now)}
	for _, l := range result.Listeners {
		at := slices.IndexFunc(was.Listeners, func(w gwapi.ListenerEntryStatus) bool { return w.Name == l.Name })
		var had []metav1.Condition
		if at >= 0 {
			had = was.Listeners[at].Conditions
		}
		c := live
		if !l.Served {
			c.Status, c.Reason, c.Message = metav1.ConditionFalse, string(gwapi.ListenerEntryReasonInvalid), "it serves nothing: see its other conditions"
		}
		status.Listeners = append(status.Listeners, gwapi.ListenerEntryStatus{
			Name: l.Name, SupportedKinds: l.SupportedKinds, AttachedRoutes: l.Attached,
			Conditions: withLive(l.Conditions, c, had, f.Generation, now),
		})
	}
	return status, passing, again
}

// withLive returns conditions with Programmed, which is not true without the first one and then has its reason.
func withLive(list []translate.Verdict, live metav1.Condition, before []metav1.Condition, generation int64, now time.Time) []metav1.Condition {
	own := conditionsOf(list, generation)
	if accepted := own[0]; accepted.Status != metav1.ConditionTrue {
		live.Status, live.Reason, live.Message = metav1.ConditionFalse, accepted.Reason, accepted.Message
	}
	own = withOthers(append(own, live), before)
	conditions.Since(own, before, now)
	return own
}
