package translate

import (
	"cmp"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Ref names an object of Kubernetes.
type Ref struct{ Kind, Namespace, Name string }

func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// Compare orders references by kind, namespace and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// Kubernetes' own kinds that are read. Those of Gatehouse are in api/gateway/v1.
const (
	KindService       = "Service"
	KindEndpointSlice = "EndpointSlice"
	KindSecret        = "Secret"
)

// Step is what changed since the previous step.
type Step struct {
	// Ops bring a store from the previous step to this one, in order.
	Ops []Op
	// Endpoints are the endpoints of new upstreams and of upstreams whose endpoints changed. Nil means that the
	// upstream is not discovered, or is gone.
	Endpoints map[model.Key]*model.Endpoints
	// Objects are the GatewayHosts, RouteFilters and GlobalConfigs whose Object changed. Nil means that
	// the object is gone.
	Objects map[Ref]*Object
}

// IsEmpty reports whether nothing changed.
func (s Step) IsEmpty() bool { return len(s.Ops)+len(s.Endpoints)+len(s.Objects) == 0 }

// Op is one operation on a store.
type Op struct {
	Key model.Key
	// Object is created, or replaces the object with the same key. Nil means that the object with the
	// key is deleted. It belongs to the receiver. A new global config has an ID: it is the same in
	// every replica, as the domains of rate limits require (Writer.Restore keeps it).
	Object model.Object
}

// Object is the result for a GatewayHost, RouteFilter or GlobalConfig. It is immutable.
type Object struct {
	Generation int64
	// Ignored says that the object names a proxy of another installation, or that only GatewayHosts of
	// other installations name the RouteFilter: its status must not be written.
	Ignored bool
	// Proxies are the object's proxies, sorted; for a RouteFilter, those of the GatewayHosts that name
	// it.
	Proxies []string
	// Made are the objects of the store that it became, and the upstreams and secrets that it needs,
	// each once.
	Made []Made
	// API is the result for an object of the Gateway API, a ClassResult, GatewayResult or RouteResult; nil for others.
	API any
	// Problems lists what is wrong with it: problems of the host and of the conditions of routes come
	// first. There are at most maxProblems, plus one that counts the others.
	Problems []Problem
}

// Made is an object of the store that a Kubernetes object became.
type Made struct {
	Key model.Key
	// Path is the field of the Kubernetes object that it comes from, such as spec.routes[1]; empty
	// means the whole object.
	Path string
}

// Problem is one thing that is wrong with an object.
type Problem struct {
	// Path is the field, such as spec.routes[1].services[0].name.
	Path string
	// Reason is one of the codes below.
	Reason string
	// Message is a sentence without a full stop.
	Message string
}

// The reasons of problems, as conditions have them.
const (
	// Invalid: a field, or what it names, cannot be used. What depends on it is closed.
	Invalid = "Invalid"
	// RefNotFound: an object that is named does not exist.
	RefNotFound = "RefNotFound"
	// RefNotPermitted: no ReferenceGrant permits the reference.
	RefNotPermitted = "RefNotPermitted"
	// HostConflict: an older GatewayHost of the proxy has the host name.
	HostConflict = "HostConflict"
	// HostNotAllowed: the installation does not allow the host name in the object's namespace.
	HostNotAllowed = "HostNotAllowed"
	// LoginConflict: an older GlobalConfig has the login of the proxy.
	LoginConflict = "LoginConflict"
	// CredentialConflict: an older Consumer has the credential.
	CredentialConflict = "CredentialConflict"
)

// maxProblems bounds the problems of one object.
const maxProblems = 20

// ordered sorts operations into an order that the rules of a store accept: first links are removed,
// then objects are written, each after those that it refers to, and then objects are deleted that
// nothing refers to anymore.
func ordered(ops []Op) []Op {
	ranks := map[model.Kind]int{}
	for i, kind := range model.Kinds() {
		ranks[kind] = i + 1
	}
	rank := func(op Op) int {
		switch {
		case op.Object != nil:
			return ranks[op.Key.Kind]
		case op.Key.Attached() != model.Key{}:
			return 0
		}
		return 2*len(ranks) - ranks[op.Key.Kind]
	}
	slices.SortFunc(ops, func(a, b Op) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Key.Text(), b.Key.Text()),
			cmp.Compare(a.Key.Kind, b.Key.Kind))
	})
	return ops
}
