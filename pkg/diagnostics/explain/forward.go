package explain

import (
	"cmp"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

const none = "none"

// forward describes where a route sends the request. missing is a cluster that the Envoy does not
// have.
func forward(have State, s subject, vh *routev3.VirtualHost, r *routev3.Route, l *hcmv3.HttpConnectionManager) (f *Forward, missing string, err error) {
	action := r.GetRoute()
	f = &Forward{Timeout: "15s", IdleTimeout: duration(l.GetStreamIdleTimeout())}
	if action.GetTimeout() != nil {
		f.Timeout = duration(action.GetTimeout())
	}
	limits := action.GetMaxStreamDuration()
	if stream, whole := limits.GetMaxStreamDuration(), action.GetTimeout().AsDuration(); stream != nil && (whole == 0 || whole > stream.AsDuration()) {
		f.Timeout = duration(stream)
	}
	if asked, ok := grpcTimeout(s.headers.get("grpc-timeout")); ok && limits.GetGrpcTimeoutHeaderMax() != nil {
		f.Timeout = min(asked, limits.GetGrpcTimeoutHeaderMax().AsDuration()).String()
	}
	if action.GetIdleTimeout() != nil {
		f.IdleTimeout = duration(action.GetIdleTimeout())
	}
	if f.Host, err = rewrittenHost(s, r); err != nil {
		return nil, "", err
	}
	if f.Path, err = rewrittenPath(s, r); err != nil {
		return nil, "", err
	}
	f.Path += s.query
	if missing, err = f.addClusters(have, action); err != nil {
		return nil, "", err
	}
	// The clusters of a route have the same retries.
	if f.Retries, err = retries(s, f.Clusters[0].retries, vh, r); err != nil {
		return nil, "", err
	}
	return f, missing, f.stay(passed{request: s, vh: vh, route: r}.seen(nil))
}

// stay sends all requests to the endpoint that a filter names, if the route has only one cluster and that contains it.
func (f *Forward) stay(r seam.Request) error {
	for _, known := range catalog {
		if known.endpoint == nil || len(f.Clusters) != 1 {
			continue
		}
		address, err := known.endpoint(r)
		if err != nil {
			return err
		}
		endpoints := f.Clusters[0].Endpoints
		for i := range endpoints {
			if endpointAddress(endpoints[i]) != address || endpoints[i].Draining {
				continue
			}
			f.Clusters[0].stays = true
			for j := range endpoints {
				endpoints[j].Percent = 0
			}
			endpoints[i].Percent = 100
		}
	}
	return nil
}

func endpointAddress(e Endpoint) string {
	return net.JoinHostPort(e.Address, strconv.FormatUint(uint64(e.Port), 10))
}

// describeForward says what filters do with a forwarded request.
func (a *Answer) describeForward(r *routev3.Route) {
	for _, f := range catalog {
		if f.describeForward == nil {
			continue
		}
		for _, told := range f.describeForward(r.GetRoute()) {
			a.step("forward", told)
		}
	}
	for _, c := range a.Forward.Clusters {
		if c.zoneMin > 0 {
			a.step("forward", fmt.Sprintf("an Envoy with a zone keeps the requests of cluster %s in it while at least %d of its upstreams there "+
				"are healthy; the percentages are those without a zone", c.Name, c.zoneMin))
		}
	}
}

// rewrittenPath returns the path that the upstream receives, without the query.
func rewrittenPath(s subject, r *routev3.Route) (string, error) {
	action := r.GetRoute()
	if action.GetPathRewritePolicy() == nil {
		return rewritePath(s, r, action.GetPrefixRewrite(), action.GetRegexRewrite())
	}
	return rewriteByTemplate(s, r)
}

// rewritePath returns the path of the request after a rewrite: to replaces what the route
// matches, or re changes it.
func rewritePath(s subject, r *routev3.Route, to string, re *matcherv3.RegexMatchAndSubstitute) (string, error) {
	if re != nil {
		path, err := replaceAll(s.path, r.GetName(), re)
		return cmp.Or(path, s.path), err // Envoy treats an empty path as no rewrite
	}
	if to == "" {
		return s.path, nil
	}
	m := r.GetMatch()
	matched := m.GetPrefix() + m.GetPathSeparatedPrefix() // at most one of them is set
	if matched == "" {
		matched = s.path
	}
	return to + s.path[len(matched):], nil
}

// replaceAll replaces the matches in a path. route is the name of the route.
func replaceAll(path, route string, re *matcherv3.RegexMatchAndSubstitute) (string, error) {
	pattern, err := regexp.Compile(seam.Latin1(re.GetPattern().GetRegex()))
	if err != nil {
		return "", fmt.Errorf("reading the rewrite of route %q: %w", route, err)
	}
	text := seam.Latin1(path)
	var out strings.Builder
	last := 0
	for _, at := range pattern.FindAllStringSubmatchIndex(text, -1) {
		out.WriteString(text[last:at[0]])
		out.WriteString(substitute(seam.Latin1(re.GetSubstitution()), text, at))
		last = at[1]
	}
	return fromLatin1(out.String() + text[last:]), nil
}

// substitute replaces \1 with the first group, and so on.
func substitute(template, text string, at []int) string {
	var out strings.Builder
	for i := 0; i < len(template); i++ {
		c := template[i]
		if c != '\\' || i+1 == len(template) {
			out.WriteByte(c)
			continue
		}
		i++
		group := int(template[i]) - '0'
		switch {
		case group < 0 || group > 9:
			out.WriteByte(template[i])
		case 2*group+1 < len(at) && at[2*group] >= 0:
			out.WriteString(text[at[2*group]:at[2*group+1]])
		}
	}
	return out.String()
}

// addClusters sets the clusters of the action.
func (f *Forward) addClusters(have State, action *routev3.RouteAction) (missing string, err error) {
	switch spec := action.GetClusterSpecifier().(type) {
	case *routev3.RouteAction_Cluster:
		f.Clusters = []Cluster{{Name: spec.Cluster, Weight: 1}}
	case *routev3.RouteAction_WeightedClusters:
		for _, c := range spec.WeightedClusters.GetClusters() {
			f.Clusters = append(f.Clusters, Cluster{Name: c.GetName(), Weight: c.GetWeight().GetValue()})
		}
	default:
		return "", fmt.Errorf("choice of a cluster %T is not known", spec)
	}
	return f.readClusters(have)
}

// readClusters sets what the clusters have.
func (f *Forward) readClusters(have State) (missing string, err error) {
	total := f.weights()
	for i := range f.Clusters {
		c := &f.Clusters[i]
		resource := findResource(have.Clusters, c.Name)
		if resource == nil {
			missing = c.Name
			continue
		}
		if err := c.read(resource, findResource(have.Endpoints, c.Name), float64(c.Weight)/total); err != nil {
			return "", err
		}
	}
	return missing, nil
}

// weights returns the sum of the clusters' weights.
func (f *Forward) weights() (sum float64) {
	for _, c := range f.Clusters {
		sum += float64(c.Weight)
	}
	return sum
}

// read sets what the cluster's resource contains, and its assignment if it is discovered. share
// is its share of the requests.
func (c *Cluster) read(r, assignment *snapshot.Resource, share float64) error {
	var cluster clusterv3.Cluster
	if err := r.Body.UnmarshalTo(&cluster); err != nil {
		return fmt.Errorf("decoding cluster %q: %w", c.Name, err)
	}
	endpoints, of := cluster.GetLoadAssignment(), r.Endpoints
	if r.Discovered && assignment != nil {
		endpoints, of = &endpointv3.ClusterLoadAssignment{}, assignment.Endpoints
		if err := assignment.Body.UnmarshalTo(endpoints); err != nil {
			return fmt.Errorf("decoding the endpoints of cluster %q: %w", c.Name, err)
		}
	}
	c.Policy, c.HealthCheck = strings.ToLower(cluster.GetLbPolicy().String()), len(cluster.GetHealthChecks()) > 0
	var options httpv3.HttpProtocolOptions
	const name = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
	if packed := cluster.GetTypedExtensionProtocolOptions()[name]; packed != nil {
		if err := packed.UnmarshalTo(&options); err != nil {
			return fmt.Errorf("decoding cluster %q: %w", c.Name, err)
		}
	}
	c.retries = options.GetRetryPolicy()
	c.Protocol, c.Panics = protocolOf(&cluster, &options), cluster.GetCommonLbConfig().GetHealthyPanicThreshold().GetValue() > 0
	for _, locality := range endpoints.GetEndpoints() {
		for _, e := range locality.GetLbEndpoints() {
			address := e.GetEndpoint().GetAddress().GetSocketAddress()
			endpoint := Endpoint{
				Address: address.GetAddress(), Port: address.GetPortValue(), Weight: 1, DNS: e.GetEndpoint().GetHostname() != "",
			}
			if pipe := e.GetEndpoint().GetAddress().GetPipe(); pipe != nil {
				endpoint.Address = model.SocketPrefix + pipe.GetPath()
			}
			if w := e.GetLoadBalancingWeight(); w != nil {
				endpoint.Weight = w.GetValue()
			}
			if endpoint.Port > 0 { // nobody but Envoy reaches a socket
				endpoint.TLS = tlsOf(&cluster, e)
			}
			endpoint.Zone, endpoint.Priority = locality.GetLocality().GetZone(), locality.GetPriority()
			endpoint.Draining = e.GetHealthStatus() == corev3.HealthStatus_DRAINING
			c.Endpoints = append(c.Endpoints, endpoint)
		}
	}
	for i := range min(len(c.Endpoints), len(of)) {
		c.Endpoints[i].Upstream = of[i].Name
	}
	c.zoneMin = zoneMinOf(&cluster)
	c.setPercents(share)
	return nil
}

// reachesNobody reports whether no endpoint receives requests.
func (f *Forward) reachesNobody() bool {
	for _, c := range f.Clusters {
		if c.Weight > 0 && slices.ContainsFunc(c.Endpoints, func(e Endpoint) bool { return !e.Draining }) {
			return false
		}
	}
	return true
}

// ReadCluster describes a cluster's resource as if it were alone on its route. assignments are
// those of the proxy, sorted by name.
func ReadCluster(r *snapshot.Resource, assignments []*snapshot.Resource) (Cluster, error) {
	c := Cluster{Name: r.Name, Weight: 1}
	err := c.read(r, findResource(assignments, r.Name), 1)
	return c, err
}

// protocolOf returns the protocol of a cluster as upstreams name it.
func protocolOf(c *clusterv3.Cluster, options *httpv3.HttpProtocolOptions) string {
	h2, tls := options.GetExplicitHttpConfig().GetHttp2ProtocolOptions() != nil, socketOf(c, nil).GetTypedConfig().MessageIs(&tlsv3.UpstreamTlsContext{})
	return map[[2]bool]string{{false, false}: "http", {true, false}: "h2c", {false, true}: "tls", {true, true}: "h2"}[[2]bool{h2, tls}]
}

func findResource(list []*snapshot.Resource, name string) *snapshot.Resource {
	for _, r := range list {
		if r.Name == name {
			return r
		}
	}
	return nil
}

// grpcTimeout parses a grpc-timeout (Grpc::Common::getGrpcTimeout): up to eight digits and a
// unit.
func grpcTimeout(text string) (time.Duration, bool) {
	if len(text) < 2 || len(text) > 9 {
		return 0, false
	}
	unit := map[byte]time.Duration{
		'H': time.Hour, 'M': time.Minute, 'S': time.Second, 'm': time.Millisecond, 'u': time.Microsecond, 'n': time.Nanosecond,
	}[text[len(text)-1]]
	n, err := strconv.ParseUint(text[:len(text)-1], 10, 32)
	return time.Duration(n) * unit, err == nil && unit > 0
}

func duration(d *durationpb.Duration) string {
	if d.AsDuration() == 0 {
		return none
	}
	return d.AsDuration().String()
}
