package conditions

import (
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// Facts is what is known of one object.
type Facts struct {
	// Generation is that of the object that the facts are about.
	Generation int64
	// Proxies are the proxies of this installation that the object is for, sorted; none means that nothing uses it.
	Proxies []string
	// Problems are what is wrong with it, in the order of the object's fields.
	Problems []Problem
	// Replicas are all replicas of the control plane, sorted by name.
	Replicas []Replica
	// Absent is how long no Envoy of the proxies has been connected to any replica; 0 if one is.
	Absent time.Duration
}

// Problem is one thing that is wrong with an object.
type Problem struct {
	// Path is the field that it is about, such as spec.routes[1].services[0].name; empty means the whole object.
	Path string
	// Reason is a code in upper camel case. It decides which condition tells of the problem.
	Reason string
	// Message is a sentence without a full stop.
	Message string
}

// Replica is what one replica of the control plane says about an object.
type Replica struct {
	Name string
	// Unheard says that the replica was not heard of lately: nobody knows what its Envoys have.
	Unheard bool
	// Envoys is how many Envoys of the object's proxies are connected to it.
	Envoys int
	// Moved is how many of these have the object, and are connected to another replica by now, as it seems: this one was not
	// heard since. They count once, and what this one has not built is not said to be theirs before it is known.
	Moved int
	// Built says that the replica has built the configuration that has the object's generation.
	Built bool
	// Lacks are the Envoys that do not have the object as it was built, sorted by address.
	Lacks []Lack
}

// Lack is an Envoy that does not have an object as it is.
type Lack struct {
	Envoy string
	// Refused says that the Envoy refused it, and gets it again only when it changes.
	Refused bool
	// Message is why: Envoy's words of a refusal, or what it waits for; empty means that it has not answered yet.
	Message string
	// For is how long the Envoy has lacked it.
	For time.Duration
}

// The reasons that Gatehouse gives, beside the codes of model.Condition.
const (
	// Accepted: the object is a part of the configuration.
	Accepted = "Accepted"
	// Invalid: a field cannot be used. What it would have opened is closed.
	Invalid = "Invalid"
	// ResolvedRefs: every object that this one names is there and may be used.
	ResolvedRefs = "ResolvedRefs"
	// RefNotFound: an object that this one names is not there.
	RefNotFound = "RefNotFound"
	// RefNotPermitted: no ReferenceGrant of the other namespace permits the reference.
	RefNotPermitted = "RefNotPermitted"
	// Programmed: every Envoy has it.
	Programmed = "Programmed"
	// Refused: an Envoy refused it.
	Refused = "Refused"
	// Waiting: an Envoy does not have it yet.
	Waiting = "Waiting"
	// NotConnected: no Envoy of its proxy is connected.
	NotConnected = "NotConnected"
	// ReplicaUnheard: a replica is not heard of, so nobody knows what its Envoys have.
	ReplicaUnheard = "ReplicaUnheard"
	// NotUsed: no GatewayHost of this installation uses it.
	NotUsed = "NotUsed"
)

// effect is the condition that a problem makes false.
type effect int

const (
	closes  effect = iota // Accepted
	refers                // ResolvedRefs
	warns                 // none: it is a part of the message of Accepted
	ignored               // not said in Kubernetes: it changes without a change of the object
)

// effectOf returns what a reason means. A reason that is not known closes: it is never silent.
func effectOf(reason string) effect {
	switch reason {
	case RefNotFound, RefNotPermitted, model.NoUpstream, model.NoCertificate:
		return refers
	case model.NoRateLimitEngine, model.NoRates, model.UnknownDomain, model.NoMatchingRate, model.NotForwarded,
		model.UpstreamUnverified, model.CertificateExpires, model.CertificateExpired, model.CertificateNotForHost,
		model.ProviderFailing, model.TLSDirectory:
		return warns
	case model.LoginFailing, model.Failing, model.Answering, model.NotChecked, model.Accepted, model.Programmed,
		model.Rejected, model.Unattached:
		return ignored
	}
	return closes
}

// FromMirror returns the problem that a condition of the model tells of. Path is the field of the Kubernetes object that
// the condition's object was made from. Ok is false where Kubernetes is not told.
func FromMirror(c model.Condition, path string) (p Problem, ok bool) {
	return Problem{Path: path, Reason: c.Code, Message: c.Message}, effectOf(c.Code) != ignored
}

// WithMirror adds the problems of the mirror to those of the translation. A route without an upstream says nothing new
// where a reference is missing.
func WithMirror(translated, mirrored []Problem) []Problem {
	broken := slices.ContainsFunc(translated, func(p Problem) bool { return effectOf(p.Reason) == refers })
	list := slices.Clone(translated)
	for _, p := range mirrored {
		if broken && p.Reason == model.NoUpstream || slices.Contains(list, p) {
			continue
		}
		list = append(list, p)
	}
	return list
}
