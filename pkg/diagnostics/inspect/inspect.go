package inspect

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// Sources provide the live state. The zero value is an API without Envoys.
type Sources struct {
	// Status is what is known of the Envoys; nil means nothing, and objects are then read without a
	// status.
	Status *status.Registry
	// Snapshots provides what the Envoys should have; nil means nothing.
	Snapshots Snapshots
	// Certificates returns the names for which a proxy presents certificates; nil means that they are not
	// known.
	Certificates Certificates
	// Explain returns what the Envoys of a proxy do with a request; nil means that there are no Envoys.
	Explain Explain
	// Drafts begins a draft: changes that are explained and not stored; nil means that there are no Envoys.
	Drafts func(context.Context) (Draft, error)
	// Upstreams returns the health of upstreams; nil means that it is not known.
	Upstreams Upstreams
	// RateLimits returns what rate limits have counted; nil means that nothing counts.
	RateLimits RateLimits
	// LimitsBy says who counts requests, for the status; empty means "none".
	LimitsBy string
	// Logins returns why logins failed recently; nil means that it is not known.
	Logins func() []model.Condition
	// Held says why no Envoy is answered; nil or empty means that they are.
	Held func() string
	// Replica is the name of this process in the status.
	Replica string
	// Others returns what the other replicas report; nil means that there are none. Position is what the
	// Envoys of this replica receive, for comparison with theirs.
	Others   func() []replicas.Other
	Position func() replicas.Position
	// Now is the clock of limits; nil means time.Now.
	Now func() time.Time
}

// Snapshots provides what the Envoys should have.
type Snapshots interface {
	// Revision is the newest revision that was built; 0 before the first.
	Revision() int64
	// Wanted is the revision that last changed what a proxy's Envoys should have; 0 if there is nothing
	// yet.
	Wanted(proxy string) int64
	// Resources lists what a proxy's Envoys should have, by type and name, without secrets. types
	// restricts it to these type URLs; empty means all.
	Resources(proxy string, types []string) ([]Resource, error)
}

// Resource is one Envoy resource.
type Resource struct {
	// TypeURL is its type in xDS.
	TypeURL string
	Name    string
	// Version is the version of its content.
	Version string
	// Objects are the objects it was made from; nil means the proxy, or nothing that is stored.
	Objects []model.Key
	// JSON is Envoy's own JSON.
	JSON json.RawMessage
}

// noSnapshots is an API without Envoys.
type noSnapshots struct{}

func (noSnapshots) Revision() int64                                { return 0 }
func (noSnapshots) Wanted(string) int64                            { return 0 }
func (noSnapshots) Resources(string, []string) ([]Resource, error) { return nil, nil }

// The type URLs of the resources that a proxy has.
const (
	ClusterType   = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	EndpointType  = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerType  = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteType     = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	SecretType    = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	ExtensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

// Inspector reports the live state from Sources. Use New.
type Inspector struct {
	Sources
}

// New returns an Inspector. Of its Sources, only Status, Certificates, RateLimits, Upstreams and Logins
// stay nil if they were nil.
func New(s Sources) *Inspector {
	if s.Snapshots == nil {
		s.Snapshots = noSnapshots{}
	}
	if s.Explain == nil {
		s.Explain = explainNothing
	}
	if s.Drafts == nil {
		s.Drafts = draftNothing
	}
	if s.Held == nil {
		s.Held = func() string { return "" }
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	s.LimitsBy = cmp.Or(s.LimitsBy, "none")
	return &Inspector{s}
}

// isApplied reports whether an Envoy has all of the newest configuration that
// was built for its proxy.
func (in *Inspector) isApplied(e status.Envoy) bool {
	wanted := in.Snapshots.Wanted(e.Proxy)
	return wanted > 0 && e.Applied >= wanted
}
