package conditions

import (
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Facts are what is known of one object.
type Facts struct {
	// Generation is the generation of the object that the facts are about.
	Generation int64
	// Proxies are the proxies of this installation that the object is for, sorted; none means that nothing uses it.
	Proxies []string
	// Problems lists what is wrong with it, in the order of the object's fields.
	Problems []Problem
	// Replicas are all replicas of the control plane, sorted by name.
	Replicas []Replica
	// Absent is how long no Envoy of the proxies has been connected to any replica; 0 if one is.
	Absent time.Duration
}

// Problem is one thing that is wrong with an object.
type Problem struct {
	// Path is the field with the problem, such as spec.routes[1].services[0].name; empty means the whole object.
	Path string
	// Reason is a code in upper camel case. It determines which condition reports the problem.
	Reason string
	// Message is a sentence without a full stop.
	Message string
}

// Replica is what one replica of the control plane reports about an object.
type Replica struct {
	Name string
	// Unheard says that the replica was not heard recently: the state of its Envoys is unknown.
	Unheard bool
	// Envoys is how many Envoys of the object's proxies are connected to it.
	Envoys int
	// Moved is how many of these have the object, and have probably connected to another replica since this one was last
	// heard. They count once. What this replica has not built is not attributed to them before it is known.
	Moved int
	// Built says that the replica has built the configuration that has the object's generation.
	Built bool
	// Lacks lists the Envoys that do not have the object as it was built, sorted by address.
	Lacks []Lack
}

// Lack is an Envoy that does not have the current object.
type Lack struct {
	Envoy string
	// Refused says that the Envoy refused the object. It receives it again only when the object changes.
	Refused bool
	// Message is the reason: Envoy's error message, or what it waits for; empty means that it has not answered yet.
	Message string
	// For is how long the Envoy has lacked it.
	For time.Duration
}

// The reasons that Gatehouse sets, in addition to the codes of model.Condition.
const (
	// Accepted: the object is a part of the configuration.
	Accepted = "Accepted"
	// Invalid: a field cannot be used. What depends on it is closed.
	Invalid = "Invalid"
	// ResolvedRefs: every object that this one names exists and may be used.
	ResolvedRefs = "ResolvedRefs"
	// RefNotFound: an object that this one names does not exist.
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
	// ReplicaUnheard: a replica is not heard, so the state of its Envoys is unknown.
	ReplicaUnheard = "ReplicaUnheard"
	// NotUsed: no GatewayHost of this installation uses it.
	NotUsed = "NotUsed"
)

// effect is the condition that a problem makes false.
type effect int

const (
	closes  effect = iota // Accepted
	refers                // ResolvedRefs
	warns                 // none: it is added to the message of Accepted
	ignored               // not reported in Kubernetes: it changes without a change of the object
)

// effectOf returns what a reason means. An unknown reason closes: it is never silent.
func effectOf(reason string) effect {
	switch reason {
	case RefNotFound, RefNotPermitted, model.NoUpstream, model.NoCertificate:
		return refers
	case model.NoRateLimitEngine, model.NoRates, model.UnknownDomain, model.NoMatchingRate, model.NotForwarded,
		model.UpstreamUnverified, model.CertificateExpires, model.CertificateExpired, model.CertificateNotForHost,
		model.KeyExpires, model.KeyExpired,
		model.ProviderFailing, model.TLSDirectory, model.NoHTTP3:
		return warns
	case model.LoginFailing, model.Failing, model.Answering, model.NotChecked, model.Accepted, model.Programmed,
		model.Rejected, model.Unattached, model.NoDatabase, model.NoLogDirectory, model.CertificatePending,
		model.CertificateFailing, model.CertificateIssued, model.CertificateTested:
		return ignored
	}
	return closes
}

// FromMirror returns the problem that a condition of the model reports. path is the field of the Kubernetes object that
// the condition's object was made from. ok is false if Kubernetes does not report the condition.
func FromMirror(c model.Condition, path string) (p Problem, ok bool) {
	return Problem{Path: path, Reason: c.Code, Message: c.Message}, effectOf(c.Code) != ignored
}

// WithMirror adds the mirror's problems to the problems of the translation. It does not report that a route has no
// upstream if one of the route's references is missing anyway.
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
