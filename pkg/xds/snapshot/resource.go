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

// These are the type URLs of resources on the wire.
const (
	ClusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	ListenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	RouteType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
	EndpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	SecretType   = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
	// ExtensionType is the type of HTTP filters that a listener names but does not contain.
	ExtensionType = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig"
)

// ObjectRef is the kind and name of an object that a resource is made from.
type ObjectRef struct {
	Kind, Name string
}

// EndpointRef is the object that an endpoint is made from, and where the endpoint is.
type EndpointRef struct {
	ObjectRef
	// Address is an IP address; with DNS, it is a host name.
	Address string
	Port    int
	DNS     bool
}

// Resource is one named resource as it is sent.
type Resource struct {
	Name string
	// Version is a hash of the content.
	Version string
	// Body shares its bytes with Wire.
	Body *anypb.Any
	// Warms means that Envoy does not use the resource immediately: a cluster with a health check or
	// with names to resolve.
	Warms bool
	// Discovered means that a cluster has its endpoints in an assignment with its name. Envoy does not
	// use the cluster without one.
	Discovered bool
	// Clusters are those that a listener names itself, sorted: it is sent when they are usable.
	Clusters []string
	// Objects are the objects that it is made from; nil means the proxy, or nothing stored.
	Objects []ObjectRef
	// Endpoints are the objects of the endpoints of a cluster or an assignment, in their order.
	Endpoints []EndpointRef

	wire []byte
}

// Wire returns the resource as a field of a delta response, including its tag. All streams share the
// bytes, so callers must not change them. It is nil for a resource that was not made by this package.
func (r *Resource) Wire() []byte { return r.wire }

// NewCluster makes a resource from a cluster. It returns an error if the cluster is invalid for Envoy.
func NewCluster(c *clusterv3.Cluster, objects ...ObjectRef) (*Resource, error) {
	r, err := newResource("cluster", ClusterType, c, objects)
	if err != nil {
		return nil, err
	}
	r.Discovered = c.GetType() == clusterv3.Cluster_EDS
	r.Warms = len(c.GetHealthChecks()) > 0 || c.GetType() != clusterv3.Cluster_STATIC && !r.Discovered
	return r, nil
}

// assignment adds the GetName method that all other resources have.
type assignment struct {
	*endpointv3.ClusterLoadAssignment
}

// GetName returns the name of the cluster.
func (a assignment) GetName() string { return a.GetClusterName() }

// NewAssignment makes a resource from the endpoints of a cluster. It returns an error if they are
// invalid for Envoy.
func NewAssignment(a *endpointv3.ClusterLoadAssignment, objects ...ObjectRef) (*Resource, error) {
	return newResource("assignment", EndpointType, assignment{a}, objects)
}

// named returns an assignment for another cluster; r itself if it has the name, or is nil.
func (r *Resource) named(cluster string) *Resource {
	if r == nil || r.Name == cluster {
		return r
	}
	a := &endpointv3.ClusterLoadAssignment{}
	if err := r.Body.UnmarshalTo(a); err != nil {
		return nil // it was encoded here
	}
	a.ClusterName = cluster
	out, err := NewAssignment(a, r.Objects...)
	if err != nil {
		return nil // r is valid for Envoy
	}
	out.Endpoints = r.Endpoints
	return out
}

// NewListener makes a resource from a listener. It returns an error if the listener is invalid for
// Envoy.
func NewListener(l *listenerv3.Listener, objects ...ObjectRef) (*Resource, error) {
	return newResource("listener", ListenerType, l, objects)
}

// NewSecret makes a resource from a secret. It returns an error if the secret is invalid for Envoy.
func NewSecret(s *tlsv3.Secret, objects ...ObjectRef) (*Resource, error) {
	return newResource("secret", SecretType, s, objects)
}

// NewExtension makes a resource from an HTTP filter. It returns an error if the message is invalid for
// Envoy. It does not validate the packed configuration; the caller does.
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

// NewRoute encodes a route. It returns an error if the route is invalid for Envoy. asked are the names
// of clusters that the route's filters use.
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

// Host is one virtual host, a piece of a route configuration.
type Host struct {
	Name string
	// Version is a hash of the content.
	Version string
	// Clusters are the names that its routes forward to and that its filters use. Secrets and Providers
	// are those that its filters use. All are sorted.
	Clusters, Secrets, Providers []string
	// Parts are the parts of extensions that its filters name.
	Parts []Part
	// Domains are the hosts whose requests it receives.
	Domains []string
	// Unavailable means that the host answers every request with 503, in place of what an Envoy refused.
	Unavailable bool
	// Object is the object that it was made from.
	Object ObjectRef

	// bare is the host without its routes and filters. body is the whole host.
	bare, body []byte
	sum        hash
	pairs      []string // see Pairs
}

// Needs are the names of what a host uses in addition to the clusters of its routes: clusters, secrets,
// jwt providers and parts of extensions.
type Needs struct {
	Clusters, Secrets, Providers []string
	Parts                        []Part
}

// NewHost joins a virtual host without routes and its routes. object is what it is made from.
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

// Pairs returns the pairs of secrets that a keeper keeps, sorted; nil for any other host.
func (h *Host) Pairs() []string { return h.pairs }

// VirtualHost decodes the whole host at each call.
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

// need adds n to the names that the host needs.
func (h *Host) need(n Needs) {
	h.Clusters = union(h.Clusters, n.Clusters)
	h.Secrets = union(h.Secrets, n.Secrets)
	h.Providers = union(h.Providers, n.Providers)
	h.Parts = append(slices.Clip(h.Parts), n.Parts...)
}

// union returns the names of both lists, sorted. If b is empty, it returns a itself.
func union(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// WithFirst returns the host with routes before its own.
func (h *Host) WithFirst(routes []*Route) *Host {
	if len(routes) == 0 {
		return h
	}
	return h.withParts(routes, nil)
}

// With returns the host with more filters, with routes before its own, and with the needs of both. Only
// the filters and the metadata of vh are used; nil means none. For a filter that the host already has,
// the message of vh applies, so it must cover both.
func (h *Host) With(vh *routev3.VirtualHost, first []*Route, needs Needs) (*Host, error) {
	filters := &routev3.VirtualHost{
		Name: h.Name, Domains: h.Domains, TypedPerFilterConfig: vh.GetTypedPerFilterConfig(), Metadata: vh.GetMetadata(),
	}
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
	// The parts of a message may come in any order, and repeated fields are concatenated. If a map has
	// two entries with one key, the last one applies.
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

// These are the numbers of two repeated fields (route.proto, route_components.proto). Appending to the
// bytes of a protobuf message extends them.
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
	keeper      *secretHost // nil: none
}

// NewRouteHead encodes a route configuration without hosts. The route unavailable replaces the routes of
// a host that an Envoy refused. Without a keeper, nothing keeps the secrets of logins.
func NewRouteHead(rc *routev3.RouteConfiguration, unavailable *routev3.Route, by *SecretHost) (*RouteHead, error) {
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

// Unavailable returns the host with a fixed answer in place of its routes, and without filters, since an
// Envoy may have refused those.
func (h *RouteHead) Unavailable(host *Host) *Host {
	u := hostOf(host.Name, host.Domains, host.bare, []*Route{h.unavailable})
	u.Unavailable, u.Object = true, host.Object
	return u
}

// Name returns the name of the route configuration.
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

// String returns the first half of the hash, which is still unique.
func (h hash) String() string { return hex.EncodeToString(h[:16]) }

// validated is a message with the validation rules of its .proto file.
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
