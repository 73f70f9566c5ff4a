package conditions

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// LackGrace is how long an Envoy may lack a generation that every Envoy had, before the object counts as not
	// programmed: an Envoy that has just started needs some seconds to receive everything.
	LackGrace = 10 * time.Second
	// AbsentGrace is how long an object stays programmed without any Envoy: the time in which Envoys usually reconnect.
	AbsentGrace = 30 * time.Second
	// maxNamed is how many problems or Envoys a message names.
	maxNamed = 3
	// maxMessage bounds a message in bytes. The API server allows 32 KiB.
	maxMessage = 2048
)

// Conditions returns the conditions of an object, and the time after which they may differ without a new fact; 0 means
// never. before are the conditions that the object has. Types that Gatehouse does not know stay as they are.
func Conditions(f Facts, before []metav1.Condition, now time.Time) (list []metav1.Condition, again time.Duration) {
	accepted, resolved := acceptedOf(f), resolvedOf(f)
	programmed := accepted
	switch {
	case accepted.Status != metav1.ConditionTrue:
	case resolved.Status != metav1.ConditionTrue:
		programmed = resolved
	default:
		programmed, again = programmedOf(f, isSettled(f, before))
	}
	programmed.Type = Programmed
	own := []metav1.Condition{accepted, resolved, programmed}
	for i := range own {
		own[i].ObservedGeneration = f.Generation
		own[i].Message = shorten(own[i].Message)
	}
	Since(own, before, now)
	for _, c := range before {
		if find(own, c.Type) == nil {
			own = append(own, c)
		}
	}
	return own, again
}

// Equal reports whether two lists of conditions say the same. Only the moment of a transition may differ.
func Equal(a, b []metav1.Condition) bool { return equal(a, b, true) }

// SayTheSame reports whether two lists of conditions differ at most in their messages.
func SayTheSame(a, b []metav1.Condition) bool { return equal(a, b, false) }

func equal(a, b []metav1.Condition, messages bool) bool {
	if len(a) != len(b) {
		return false
	}
	for _, c := range a {
		d := find(b, c.Type)
		if d == nil || c.Status != d.Status || c.Reason != d.Reason || c.ObservedGeneration != d.ObservedGeneration ||
			messages && c.Message != d.Message {
			return false
		}
	}
	return true
}

func find(list []metav1.Condition, name string) *metav1.Condition {
	for i := range list {
		if list[i].Type == name {
			return &list[i]
		}
	}
	return nil
}

// acceptedOf returns whether the object is a part of the configuration; the message includes warnings.
func acceptedOf(f Facts) metav1.Condition {
	c := metav1.Condition{
		Type: Accepted, Status: metav1.ConditionTrue, Reason: Accepted, Message: "it is a part of the configuration",
	}
	if wrong := problemsThat(closes, f.Problems); len(wrong) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, wrong[0].Reason, sentences(wrong)
		return c
	}
	if warnings := problemsThat(warns, f.Problems); len(warnings) > 0 {
		for i := range warnings {
			warnings[i].Message = warnings[i].Reason + ": " + warnings[i].Message
		}
		c.Message += "; " + sentences(warnings)
	}
	return c
}

func resolvedOf(f Facts) metav1.Condition {
	c := metav1.Condition{
		Type: ResolvedRefs, Status: metav1.ConditionTrue, Reason: ResolvedRefs,
		Message: "every object that it names exists and may be used",
	}
	if wrong := problemsThat(refers, f.Problems); len(wrong) > 0 {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, wrong[0].Reason, sentences(wrong)
	}
	return c
}

func problemsThat(e effect, all []Problem) (list []Problem) {
	for _, p := range all {
		if effectOf(p.Reason) == e {
			list = append(list, p)
		}
	}
	return list
}

// sentences joins the first maxNamed problems.
func sentences(list []Problem) string {
	said := make([]string, 0, maxNamed+1)
	for _, p := range list[:min(maxNamed, len(list))] {
		if p.Path != "" {
			p.Message = p.Path + ": " + p.Message
		}
		said = append(said, p.Message)
	}
	if more := len(list) - maxNamed; more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(said, "; ")
}

// isSettled reports whether every Envoy has had this generation.
func isSettled(f Facts, before []metav1.Condition) bool {
	c := find(before, Programmed)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == f.Generation
}

// programmedOf returns whether every Envoy has the object. For a settled object only a refusal counts immediately:
// Envoys and replicas come and go, and may lack the object for a moment.
func programmedOf(f Facts, settled bool) (c metav1.Condition, again time.Duration) {
	no := func(reason, format string, args ...any) metav1.Condition {
		return metav1.Condition{Status: metav1.ConditionFalse, Reason: reason, Message: fmt.Sprintf(format, args...)}
	}
	programmed := metav1.Condition{
		Status: metav1.ConditionTrue, Reason: Programmed, Message: "every connected Envoy has it",
	}
	if len(f.Proxies) == 0 {
		return no(NotUsed, "no GatewayHost uses it"), 0
	}
	if text := refusals(f.Replicas); text != "" {
		return no(Refused, "%s", text), 0
	}
	late, soon := lacking(f.Replicas, settled)
	switch {
	case len(late) > 0:
		return no(Waiting, "%s", strings.Join(late, "; ")), 0
	case soon > 0:
		again = soon
	}
	for _, r := range f.Replicas {
		if !settled && !r.Unheard && !r.Built && r.Envoys > 0 {
			return no(Waiting, "replica %s has not built it yet", r.Name), 0
		}
	}
	for _, r := range f.Replicas {
		switch {
		case r.Unheard && settled:
			return programmed, again // its Envoys may still have it
		case r.Unheard:
			c = no(ReplicaUnheard, "replica %s is not heard: the state of its Envoys is unknown", r.Name)
			c.Status = metav1.ConditionUnknown
			return c, 0
		}
	}
	if connected(f.Replicas) == 0 {
		if !settled || f.Absent >= AbsentGrace {
			return no(NotConnected, "no Envoy of %s is connected", proxies(f.Proxies)), 0
		}
		again = AbsentGrace - f.Absent
	}
	return programmed, again
}

// Live returns whether every Envoy has an object, whatever is wrong with it otherwise, and the time after which that may
// differ without a new fact. before are the conditions that the object has.
func Live(f Facts, before []metav1.Condition) (c metav1.Condition, again time.Duration) {
	c, again = programmedOf(f, isSettled(f, before))
	c.Type, c.Message = Programmed, shorten(c.Message)
	return c, again
}

// Since sets the time of the last transition of conditions.
func Since(list, before []metav1.Condition, now time.Time) {
	for i := range list {
		list[i].LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		if was := find(before, list[i].Type); was != nil && was.Status == list[i].Status {
			list[i].LastTransitionTime = was.LastTransitionTime
		}
	}
}

// Find returns the condition of a type; nil if there is none.
func Find(list []metav1.Condition, name string) *metav1.Condition { return find(list, name) }

// Connected returns how many Envoys of the object's proxies are connected to the replicas that are heard.
func (f Facts) Connected() int { return connected(f.Replicas) }

// Have returns how many Envoys have the object. ok is false for an object that is closed, or that nothing uses.
func (f Facts) Have() (n int, ok bool) {
	if len(f.Proxies) == 0 || len(problemsThat(closes, f.Problems)) > 0 {
		return 0, false
	}
	for _, r := range f.Replicas {
		if r.Unheard {
			continue
		}
		if r.Built {
			n += r.Envoys - len(r.Lacks) - r.Moved
		}
	}
	return max(n, 0), true
}

func connected(replicas []Replica) (n int) {
	for _, r := range replicas {
		if !r.Unheard {
			n += r.Envoys
		}
	}
	return n
}

func proxies(names []string) string {
	if len(names) == 1 {
		return "proxy " + names[0]
	}
	return "the proxies " + strings.Join(names, ", ")
}

// refusals names the Envoys that refused the object; empty if none did.
func refusals(replicas []Replica) string {
	var said []string
	n := 0
	for _, r := range replicas {
		for _, l := range r.Lacks {
			if !l.Refused || r.Unheard {
				continue
			}
			if n++; n <= maxNamed {
				said = append(said, fmt.Sprintf("the Envoy at %s (replica %s) refused it: %s", l.Envoy, r.Name, l.Message))
			}
		}
	}
	return strings.Join(withMore(said, n), "; ")
}

// lacking names the Envoys that have lacked the object for too long. soon is when the next one will be added.
func lacking(replicas []Replica, settled bool) (late []string, soon time.Duration) {
	n := 0
	for _, r := range replicas {
		for _, l := range r.Lacks {
			if r.Unheard {
				continue
			}
			if left := LackGrace - l.For; settled && left > 0 {
				if soon == 0 || left < soon {
					soon = left
				}
				continue
			}
			if n++; n > maxNamed {
				continue
			}
			why := l.Message
			if why == "" {
				why = "has not answered yet"
			}
			late = append(late, fmt.Sprintf("the Envoy at %s (replica %s) %s", l.Envoy, r.Name, why))
		}
	}
	return withMore(late, n), soon
}

func withMore(said []string, n int) []string {
	if more := n - len(said); more > 0 {
		said = append(said, fmt.Sprintf("and %d more", more))
	}
	return said
}

// shorten cuts a message that is too long, between two characters.
func shorten(s string) string {
	if len(s) <= maxMessage {
		return s
	}
	return strings.ToValidUTF8(s[:maxMessage-3], "") + "..."
}
