package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// The types of resources, as they are named on the wire.
const (
	ClusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	ListenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	EndpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	SecretType   = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	// ExtensionType is the type of HTTP filters that a listener names and does not
	// contain.
	ExtensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

// ObjectRef names an object of the configuration that a resource was made from: its
// kind and its name.
type ObjectRef struct {
	Kind, Name string
}

// Resource is one named resource as it goes on the wire.
type Resource struct {
	Name string
	// Version is a hash of the content.
	Version string
	// Body shares its bytes with Wire.
	Body *anypb.Any
	// Warms says that Envoy does not use the resource as soon as it has read
	// it: a cluster with a health check or with names to resolve.
	Warms bool
	// Discovered says that a cluster has its endpoints in an assignment of its name, and that
	// Envoy does not use it without one.
	Discovered bool
	// Objects are the objects that it was made from; nil means the proxy, or
	// nothing that is stored.
	Objects []ObjectRef
	// Endpoints are the objects of a cluster's endpoints, in the order of the endpoints.
	Endpoints []ObjectRef

	wire []byte
}

// Wire is the resource as a field of a delta response, its tag included. All
// streams share the bytes, so nobody changes them. It is nil for a resource that
// was not made by a function of this package.
func (r *Resource) Wire() []byte { return r.wire }

// NewCluster makes a resource of a cluster that Envoy's constraints allow.
func NewCluster(c *clusterv3.Cluster, objects ...ObjectRef) (*Resource, error) {
	r, err := newResource("cluster", ClusterType, c, objects)
	if err != nil {
		return nil, err
	}
	r.Discovered = c.GetType() == clusterv3.Cluster_EDS
	r.Warms = len(c.GetHealthChecks()) > 0 || c.GetType() != clusterv3.Cluster_STATIC && !r.Discovered
	return r, nil
}

// assignment is one with the name that all other resources have.
type assignment struct {
	*endpointv3.ClusterLoadAssignment
}

// GetName returns the name of the cluster.
func (a assignment) GetName() string { return a.GetClusterName() }

// NewAssignment makes a resource of the endpoints of a cluster that Envoy's constraints allow.
// object is what all of them are of.
func NewAssignment(a *endpointv3.ClusterLoadAssignment, object ObjectRef) (*Resource, error) {
	r, err := newResource("assignment", EndpointType, assignment{a}, []ObjectRef{object})
	if err != nil {
		return nil, err
	}
	for _, locality := range a.GetEndpoints() {
		for range locality.GetLbEndpoints() {
			r.Endpoints = append(r.Endpoints, object)
		}
	}
	return r, nil
}

// NewListener makes a resource of a listener that Envoy's constraints allow.
func NewListener(l *listenerv3.Listener, objects ...ObjectRef) (*Resource, error) {
	return newResource("listener", ListenerType, l, objects)
}

// NewSecret makes a resource of a secret that Envoy's constraints allow.
func NewSecret(s *tlsv3.Secret, objects ...ObjectRef) (*Resource, error) {
	return newResource("secret", SecretType, s, objects)
}

// NewExtension makes a resource of an HTTP filter that Envoy's constraints
// allow. Whoever packs its configuration checks that.
func NewExtension(e *corev3.TypedExtensionConfig, objects ...ObjectRef) (*Resource, error) {
	return newResource("extension", ExtensionType, e, objects)
}

func newResource(what, typeURL string, m interface {
	validated
	GetName() string
}, objects []ObjectRef) (*Resource, error) {
	body, sum, err := encode(m)
	if err != nil {
		return nil, fmt.Errorf("encoding %s %q: %w", what, m.GetName(), err)
	}
	r := startResource(typeURL, m.GetName(), sum, len(body))
	r.Objects = objects
	r.setBody(append(r.wire, body...))
	return r, nil
}

// Route is one route of a virtual host, as bytes.
type Route struct {
	body     []byte
	sum      hash
	clusters []string
}

// NewRoute makes the bytes of a route that Envoy's constraints allow. Its filters ask the clusters
// of the names asked.
func NewRoute(r *routev3.Route, asked ...string) (*Route, error) {
	body, sum, err := encode(r)
	if err != nil {
		return nil, fmt.Errorf("encoding route %q: %w", r.GetName(), err)
	}
	return &Route{body: body, sum: sum, clusters: append(clustersOf(r), asked...)}, nil
}

func clustersOf(r *routev3.Route) []string {
	action := r.GetRoute()
	if name := action.GetCluster(); name != "" {
		return []string{name}
	}
	var names []string
	for _, c := range action.GetWeightedClusters().GetClusters() {
		names = append(names, c.GetName())
	}
	return names
}

// Host is the piece of a route configuration that one virtual host is.
type Host struct {
	Name string
	// Version is a hash of the content.
	Version string
	// Clusters are the names that its routes forward to and that its filters use,
	// Secrets and Providers those that its filters use; sorted.
	Clusters, Secrets, Providers []string
	// Domains are the hosts that it takes requests for.
	Domains []string
	// Unavailable says that the host answers 503 to everything, in place of
	// what an Envoy refused.
	Unavailable bool
	// Object is the object that it was made from.
	Object ObjectRef

	// bare is the host without its routes and filters, body the whole.
	bare, body []byte
	sum        hash
	pairs      []string // see Pairs
}

// Needs are the names of what a host uses beside the clusters of its routes: clusters,
// secrets and jwt providers.
type Needs struct {
	Clusters, Secrets, Providers []string
}

// NewHost puts a virtual host that has no routes yet and its routes together.
// object is what it is made from.
func NewHost(vh *routev3.VirtualHost, routes []*Route, object ObjectRef, needs ...Needs) (*Host, error) {
	head, _, err := encode(vh)
	if err != nil {
		return nil, fmt.Errorf("encoding virtual host %q: %w", vh.GetName(), err)
	}
	host := hostOf(vh.GetName(), vh.GetDomains(), head, routes)
	host.Object = object
	for _, n := range needs {
		host.need(n)
	}
	if len(vh.GetTypedPerFilterConfig()) > 0 {
		host.bare, _, err = encode(&routev3.VirtualHost{Name: vh.GetName(), Domains: vh.GetDomains()})
	}
	return host, err
}

// Pairs are the pairs of secrets that a keeper keeps, sorted; nil for any other host.
func (h *Host) Pairs() []string { return h.pairs }

// VirtualHost decodes the whole host, each time again.
func (h *Host) VirtualHost() (*routev3.VirtualHost, error) {
	vh := &routev3.VirtualHost{}
	if err := proto.Unmarshal(h.body, vh); err != nil {
		return nil, fmt.Errorf("decoding virtual host %q: %w", h.Name, err)
	}
	return vh, nil
}

func hostOf(name string, domains []string, head []byte, routes []*Route) *Host {
	size := len(head)
	for _, r := range routes {
		size += len(r.body) + approximateFieldOverhead
	}
	body := append(make([]byte, 0, size), head...)
	sums := sha256.New()
	sums.Write(head)
	names := map[string]struct{}{}
	for _, r := range routes {
		body = appendMessage(body, virtualHostRoutesField, r.body)
		sums.Write(r.sum[:])
		for _, c := range r.clusters {
			names[c] = struct{}{}
		}
	}
	host := &Host{Name: name, Domains: domains, bare: body[:len(head):len(head)], body: body, sum: hash(sums.Sum(nil))}
	host.Version = host.sum.String()
	for name := range names {
		host.Clusters = append(host.Clusters, name)
	}
	slices.Sort(host.Clusters)
	return host
}

// need adds names to what the host needs.
func (h *Host) need(n Needs) {
	h.Clusters = union(h.Clusters, n.Clusters)
	h.Secrets = union(h.Secrets, n.Secrets)
	h.Providers = union(h.Providers, n.Providers)
}

// union returns the names of both lists, sorted, in a list of its own.
func union(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// WithFirst is the host with routes before its own.
func (h *Host) WithFirst(routes []*Route) *Host {
	if len(routes) == 0 {
		return h
	}
	return h.withParts(routes, nil)
}

// With is the host with more filters, with routes before its own, and with what both
// need. Of vh only the filters and the metadata count; nil means none. Of a filter that the host has too
// it has what counts: the message for both.
func (h *Host) With(vh *routev3.VirtualHost, first []*Route, needs Needs) (*Host, error) {
	filters := &routev3.VirtualHost{Name: h.Name, Domains: h.Domains, TypedPerFilterConfig: vh.GetTypedPerFilterConfig(), Metadata: vh.GetMetadata()}
	if _, _, err := encode(filters); err != nil {
		return nil, fmt.Errorf("encoding virtual host %q: %w", h.Name, err)
	}
	filters.Name, filters.Domains = "", nil
	head, err := proto.MarshalOptions{Deterministic: true}.Marshal(filters)
	if err != nil {
		return nil, fmt.Errorf("encoding virtual host %q: %w", h.Name, err)
	}
	out := h.withParts(first, head)
	out.need(needs)
	return out, nil
}

func (h *Host) withParts(routes []*Route, filters []byte) *Host {
	first := hostOf(h.Name, h.Domains, nil, routes)
	out := *h
	// The parts of a message may come in any order, and repeated ones add up in theirs.
	// Of two entries of a map with one key the last one counts.
	out.body = slices.Concat(first.body, h.body, filters)
	sums := sha256.New()
	sums.Write(first.sum[:])
	sums.Write(h.sum[:])
	sums.Write(filters)
	out.sum = hash(sums.Sum(nil))
	out.Version = out.sum.String()
	out.need(Needs{Clusters: first.Clusters})
	return &out
}

// The numbers of two repeated fields (route.proto, route_components.proto): a
// protobuf message is extended by appending them.
const (
	virtualHostRoutesField   = 3
	routeConfigHostsField    = 2
	approximateFieldOverhead = 6
)

// RouteHead is a route configuration without its hosts.
type RouteHead struct {
	config      *routev3.RouteConfiguration
	body        []byte
	sum         hash
	unavailable *Route
	keeper      *keeper // nil: none
}

// NewRouteHead makes the bytes of a route configuration that has no hosts yet.
// The route unavailable is what a host consists of that an Envoy refused. Without a
// keeper the secrets of logins are kept nowhere.
func NewRouteHead(rc *routev3.RouteConfiguration, unavailable *routev3.Route, by *Keeper) (*RouteHead, error) {
	body, sum, err := encode(rc)
	if err != nil {
		return nil, fmt.Errorf("encoding route configuration %q: %w", rc.GetName(), err)
	}
	fixed, err := NewRoute(unavailable)
	if err != nil {
		return nil, err
	}
	kept, err := newKeeper(by)
	return &RouteHead{config: rc, body: body, sum: sum, unavailable: fixed, keeper: kept}, err
}

// Unavailable is the host with a fixed answer in place of its routes, and without
// filters: they may be what an Envoy refused.
func (h *RouteHead) Unavailable(host *Host) *Host {
	u := hostOf(host.Name, host.Domains, host.bare, []*Route{h.unavailable})
	u.Unavailable, u.Object = true, host.Object
	return u
}

// Name is the name of the route configuration.
func (h *RouteHead) Name() string { return h.config.GetName() }

// Join joins pieces, sorted by name, to a route configuration.
func (h *RouteHead) Join(hosts []*Host) *Resource {
	size := len(h.body)
	sums := sha256.New()
	sums.Write(h.sum[:])
	for _, host := range hosts {
		size += protowire.SizeTag(routeConfigHostsField) + protowire.SizeBytes(len(host.body))
		sums.Write(host.sum[:])
	}
	r := startResource(RouteType, h.Name(), hash(sums.Sum(nil)), size)
	wire := r.wire
	wire = append(wire, h.body...)
	for _, host := range hosts {
		wire = appendMessage(wire, routeConfigHostsField, host.body)
	}
	r.setBody(wire)
	return r
}

// hash is the SHA-256 of a message, or of the hashes of its parts.
type hash [sha256.Size]byte

// String is the hash in a length that is still unique.
func (h hash) String() string { return hex.EncodeToString(h[:16]) }

// validated is a message with the constraints of its .proto file.
type validated interface {
	proto.Message
	ValidateAll() error
}

func encode(m validated) ([]byte, hash, error) {
	if err := m.ValidateAll(); err != nil {
		return nil, hash{}, err
	}
	body, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	return body, sha256.Sum256(body), err
}

func appendMessage(to []byte, field protowire.Number, body []byte) []byte {
	to = protowire.AppendTag(to, field, protowire.BytesType)
	return protowire.AppendBytes(to, body)
}
