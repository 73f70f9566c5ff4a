package inspect

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/status"
)

// Sources are where the live state is known. The zero value is an API without
// Envoys.
type Sources struct {
	// Status is what is known of the Envoys; nil means nothing, and that
	// objects are read without a status.
	Status *status.Registry
	// Snapshots tells what the Envoys should have; nil means nothing.
	Snapshots Snapshots
	// Certificates says for which names the certificates of secrets answer on a
	// proxy; nil means that nobody knows.
	Certificates Certificates
	// Explain says what the Envoys of a proxy do with a request; nil means that
	// there are no Envoys.
	Explain Explain
	// Upstreams tells how upstreams are; nil means that nobody knows.
	Upstreams Upstreams
	// RateLimits tells what rate limits have counted; nil means that nobody
	// counts.
	RateLimits RateLimits
	// LimitsBy is who counts requests, for the status; empty means "none".
	LimitsBy string
	// Logins says why logins failed lately; nil means that nobody knows.
	Logins func() []model.Condition
	// Held says why no Envoy is answered; nil or empty means that they are.
	Held func() string
	// Replica is the name of this process in the status.
	Replica string
	// Others tells of the other replicas; nil means that there are none. Position is
	// what the Envoys of this replica receive, to compare with theirs.
	Others   func() []replicas.Other
	Position func() replicas.Position
	// Now is the clock of limits; nil means time.Now.
	Now func() time.Time
}

// Snapshots tells what the Envoys should have.
type Snapshots interface {
	// Revision is the newest revision that was built; 0 before the first.
	Revision() int64
	// Wanted is the revision in which what a proxy's Envoys should have became
	// what it is; 0 if there is nothing yet.
	Wanted(proxy string) int64
	// Resources lists what a proxy's Envoys should have, by type and name.
	// Nothing in it is secret. Types restricts it to these type URLs; empty
	// means all.
	Resources(proxy string, types []string) ([]Resource, error)
}

// Resource is one Envoy resource.
type Resource struct {
	// TypeURL is its type as on the wire.
	TypeURL string
	Name    string
	// Version is the version of its content.
	Version string
	// Objects are what it was made from; nil means the proxy, or nothing that is stored.
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

// Inspector answers from Sources. Use New.
type Inspector struct {
	Sources
}

// New returns an Inspector. Only Status, Certificates, RateLimits, Upstreams and Logins of its Sources may
// be nil afterwards.
func New(s Sources) *Inspector {
	if s.Snapshots == nil {
		s.Snapshots = noSnapshots{}
	}
	if s.Explain == nil {
		s.Explain = explainNothing
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
