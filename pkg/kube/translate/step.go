package translate

import (
	"cmp"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// Ref names an object of Kubernetes.
type Ref struct{ Kind, Namespace, Name string }

func (r Ref) String() string { return r.Kind + " " + r.Namespace + "/" + r.Name }

// Compare orders references by kind, namespace and name.
func (r Ref) Compare(o Ref) int {
	return cmp.Or(cmp.Compare(r.Kind, o.Kind), cmp.Compare(r.Namespace, o.Namespace), cmp.Compare(r.Name, o.Name))
}

// The kinds of Kubernetes' own that are read. Those of Gatehouse are in api/gateway/v1.
const (
	KindService       = "Service"
	KindEndpointSlice = "EndpointSlice"
	KindSecret        = "Secret"
)

// Step is what changed since the step before.
type Step struct {
	// Ops bring a store from the step before to this one, one after the other.
	Ops []Op
	// Endpoints are those of the upstreams whose endpoints changed, and of new upstreams. Nil
	// means that the upstream is not discovered, or is gone.
	Endpoints map[model.Key]*model.Endpoints
	// Objects are the GatewayHosts, RouteFilters and GlobalConfigs of which something in their
	// Object changed. Nil means that the object is gone.
	Objects map[Ref]*Object
}

// IsEmpty reports whether nothing changed.
func (s Step) IsEmpty() bool { return len(s.Ops)+len(s.Endpoints)+len(s.Objects) == 0 }

// Op is one operation on a store.
type Op struct {
	Key model.Key
	// Object is created, or replaces the object of the same key. Nil means that the object of
	// the key is deleted. It belongs to the receiver. The ID of a new global config is set: it
	// is the same in every replica, as the domains of rate limits need it (Writer.Restore
	// keeps it).
	Object model.Object
}

// Object is what became of a GatewayHost, RouteFilter or GlobalConfig. It is immutable.
type Object struct {
	Generation int64
	// Ignored says that the object names a proxy of another installation, or that only GatewayHosts
	// that do name the RouteFilter: nothing may be written to it.
	Ignored bool
	// Proxies are those that it is for, sorted; of a RouteFilter, those of the GatewayHosts
	// that name it.
	Proxies []string
	// Made are the objects of the store that it became, and the upstreams and secrets that it
	// leads to, each once.
	Made []Made
	// Problems are what is wrong with it: what is wrong with the host and with the conditions of routes
	// comes first. They are at most maxProblems, and one that counts the others.
	Problems []Problem
}

// Made is an object of the store that a Kubernetes object became.
type Made struct {
	Key model.Key
	// Path is the field of the Kubernetes object that it is of, such as spec.routes[1]; empty
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
	// Invalid: a field, or what it names, cannot be used. What it would have opened is closed.
	Invalid = "Invalid"
	// RefNotFound: an object that is named does not exist.
	RefNotFound = "RefNotFound"
	// RefNotPermitted: no ReferenceGrant permits the reference.
	RefNotPermitted = "RefNotPermitted"
	// HostConflict: an older GatewayHost of the proxy has the host name.
	HostConflict = "HostConflict"
	// LoginConflict: an older GlobalConfig asks for the login of the proxy.
	LoginConflict = "LoginConflict"
)

// maxProblems bounds the list of one object.
const maxProblems = 20

// ordered puts operations into the order that the rules of a store accept: what is detached
// goes first, then comes what is there, an object after what it refers to, and then goes what
// nobody refers to any more.
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
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Key.Text(), b.Key.Text()), cmp.Compare(a.Key.Kind, b.Key.Kind))
	})
	return ops
}
