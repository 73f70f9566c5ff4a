package explain

import (
	"cmp"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// State is what an Envoy has.
type State struct {
	// Listeners are the plain HTTP and HTTPS listeners, and those of services of another mode.
	Listeners, Clusters []*snapshot.Resource
	// Endpoints are the assignments of discovered clusters, sorted by name.
	Endpoints []*snapshot.Resource
	// Secrets are the secrets that a listener names, sorted by name.
	Secrets []*snapshot.Resource
	// Extensions are the filters that a listener names but does not contain.
	Extensions []*snapshot.Resource
	// Certificates returns the certificates for the host name that a client requests. The
	// first one is served (Snapshot.Candidates). A nil function means none.
	Certificates func(asked string) []*snapshot.Certificate
	// Routes is the route configuration without its hosts; nil without a listener.
	Routes *routev3.RouteConfiguration
	Hosts  []*snapshot.Host
	// Refused are the listeners whose version in Listeners the Envoy refused.
	Refused []RefusedListener
	// Limits returns the limits that the descriptors of one request meet in a domain of
	// the rate-limit engine, in the order of the descriptors, nil for none. A nil
	// function means that the limits are unknown.
	Limits func(domain string, descriptors [][]Entry) ([]*Limit, error)
	// Where is that of seam.Request.
	Where func(netip.Addr) (country, network string)
}

// Explain returns what the Envoy does with the request. An error means that the state
// contains something that this package does not know.
func Explain(have State, r Request) (Answer, error) {
	if r.L4 != "" {
		return explainL4(have, r)
	}
	path, query := cutQuery(r.Target)
	a := Answer{
		Request: Seen{Method: r.Method, Path: path, Query: strings.TrimPrefix(query, "?")},
		Steps:   []Step{}, Hosts: []Host{}, Routes: []Route{}, Filters: []Filter{},
	}
	for _, h := range r.Headers {
		if seam.LowerASCII(h.Name) == "host" {
			a.Request.Host = h.Value
		}
	}
	l, err := a.connect(have, r)
	if err != nil || l == nil {
		return a, err
	}
	h, message := readHeaders(r, l)
	if message != "" {
		a.endWith(BadRequest, http.StatusBadRequest, "refused", message)
		return a, nil
	}
	if err := h.applyEarlyMutation(l); err != nil {
		return a, err
	}
	if s, ok := a.readRequest(r, h, l); ok {
		if ok, err = a.passHost(s, l); ok {
			err = a.route(have, s, l)
		}
	}
	if len(a.UnknownFilters) > 0 {
		a.Message += "; explain does not know " + listOf(a.UnknownFilters) + ", so it may be different"
	}
	if a.Status > 0 && !a.direct && seam.IsGRPC(h.get("content-type")) {
		a.GRPCStatus, a.Status = grpcStatus(a.Status), http.StatusOK
	}
	return a, err
}

// grpcStatus returns the status that a gRPC client receives in place of an HTTP status
// (Grpc::Utility::httpToGrpcStatus).
func grpcStatus(status int) int {
	known := map[int]int{
		http.StatusBadRequest: 13, http.StatusUnauthorized: 16, http.StatusForbidden: 7, http.StatusNotFound: 12,
		http.StatusTooManyRequests: 14, http.StatusBadGateway: 14, http.StatusServiceUnavailable: 14, http.StatusGatewayTimeout: 14,
	}
	if code, ok := known[status]; ok {
		return code
	}
	return 2 // unknown
}

// readRequest normalizes the request. ok is false if Envoy answers before it chooses a
// route.
func (a *Answer) readRequest(r Request, h headers, l *hcmv3.HttpConnectionManager) (s subject, ok bool) {
	if len(h[authority]) == 0 {
		a.endWith(BadRequest, http.StatusBadRequest, "refused", "the request has no Host")
		return s, false
	}
	a.readHost(h, l)
	plain, redirect, err := plainPath(r.Target, l)
	switch {
	case err != nil:
		a.endWith(BadRequest, http.StatusBadRequest, "refused", err.Error())
		return s, false
	case redirect && seam.IsGRPC(h.get("content-type")):
		a.endWith(BadRequest, http.StatusBadRequest, "refused", "the path has escaped slashes, and gRPC has no redirects")
		return s, false
	case redirect:
		a.Location = plain
		a.endWith(Redirected, http.StatusTemporaryRedirect, "redirect", "the path has escaped slashes; the client is sent to "+plain)
		return s, false
	}
	s = subject{headers: h, client: a.findClient(r, h, l), serverName: seam.LowerASCII(r.ServerName), secure: r.TLS, port: a.port}
	h.mutateRequestHeaders(r, plain, s.client, l.GetXffNumTrustedHops() > 0)
	s.path, s.query = cutQuery(plain)
	if before := a.Request.Path; before != s.path {
		a.step("path", fmt.Sprintf("path %q is read as %q", before, s.path))
	}
	a.Request.Path = s.path
	return s, true
}

// route chooses the host and the route.
func (a *Answer) route(have State, s subject, l *hcmv3.HttpConnectionManager) error {
	name := bareHost(a.Request.Host)
	hosts := findHosts(have.Hosts, name)
	a.describeHosts(hosts)
	var vh *routev3.VirtualHost
	var chosen *routev3.Route
	if len(hosts) > 0 {
		a.Service, a.Envoy.VirtualHost = hosts[0].host.Name, hosts[0].host.Name
		a.step("host", fmt.Sprintf("host %q belongs to service %s (%s %s)", name, a.Service, hosts[0].kind, hosts[0].domain))
		var err error
		if vh, err = hosts[0].host.VirtualHost(); err != nil {
			return err
		}
		if chosen, err = a.findRoute(s, vh); err != nil {
			return err
		}
	}
	a.noteUnknown(l, vh, chosen)
	if protocol, wanted := s.headers.upgrade(); wanted && chosen != nil && !mayUpgrade(protocol, chosen, l) {
		a.Route, a.Envoy.Route = chosen.GetName(), chosen.GetName()
		a.UnknownFilters = nil // they do not run
		a.endWith(NoUpgrade, http.StatusForbidden, "upgrade", fmt.Sprintf("route %s does not allow an upgrade to %q", a.Route, protocol))
		return nil
	}
	if refused, err := s.isMisdirected(l); err != nil { // without an upgrade, passHost has checked this
		return err
	} else if refused {
		return a.endMisdirected(s, l)
	}
	const noRoute = "no route of service %s matches, and no other service is tried"
	switch by := findClosing(l, vh, chosen); {
	case by != nil && vh != nil && chosen == nil:
		return a.endRefused(l, closedPolicy, NoRoute, fmt.Sprintf(noRoute+" (403 in place of 404, since the service verifies clients)", a.Service))
	case by != nil:
		return a.endClosed(s, l, by)
	case vh == nil:
		a.endWith(NoHost, http.StatusNotFound, "host", noHost(have.Hosts, name))
		return nil
	case chosen == nil:
		a.endWith(NoRoute, http.StatusNotFound, "route", fmt.Sprintf(noRoute, a.Service))
		return nil
	}
	a.Route, a.Envoy.Route = chosen.GetName(), chosen.GetName()
	a.step("route", fmt.Sprintf("route %s is the first that matches", a.Route))
	p := passed{have: have, request: s, l: l, vh: vh, route: chosen}
	p.request.metadata = p.metadata
	received := p
	passes, err := a.passFilters(&p)
	if passes && err == nil {
		err = a.applyRoute(have, p.request, vh, chosen, l)
	}
	if err != nil {
		return err
	}
	return a.replace(received)
}

// replace turns the gateway's own answer into what its filters make of it, the first of them last.
func (a *Answer) replace(received passed) error {
	if a.Status == 0 || !a.direct && seam.IsGRPC(received.request.headers.get("content-type")) {
		return nil
	}
	for _, on := range slices.Backward(received.l.GetHttpFilters()) {
		known, _ := findKnown(on.GetName())
		if known.replace == nil || seam.IsOff(on, received.vh, received.route) {
			continue
		}
		received.on = on
		by, err := known.replace(received.seen(nil), a.Status)
		if err != nil {
			return err
		}
		if by.Message != "" {
			a.Status, a.Body = by.Status, by.Body
			a.step("answer", "a "+known.filterType+" "+by.Message)
		}
	}
	return nil
}

// passFilters reports whether a request passes all filters of the listener, in their order. If not, it ends with the
// answer of the first that answers.
func (a *Answer) passFilters(p *passed) (bool, error) {
	described := false
	for _, on := range p.l.GetHttpFilters() {
		known, _ := findKnown(on.GetName())
		if known.identifies && !described {
			described = true
			if err := a.describeFilters(*p); err != nil {
				return false, err
			}
		}
		p.on = on
		if known.pass != nil {
			if passes, err := known.pass(a, p); !passes {
				a.FilterType = cmp.Or(a.FilterType, known.filterType)
				return false, err
			}
		}
		if err := known.passOn(p); err != nil {
			return false, err
		}
	}
	if !described {
		return true, a.describeFilters(*p)
	}
	return true, nil
}

func (a *Answer) findRoute(s subject, vh *routev3.VirtualHost) (*routev3.Route, error) {
	if s.headers.get("x-forwarded-proto") == "" { // VirtualHostImpl::getRouteFromEntries
		a.step("route", "the proxy in front sent an empty X-Forwarded-Proto, so Envoy looks for no route")
		return nil, nil
	}
	for i, r := range vh.GetRoutes() {
		tried, err := s.tryRoute(r)
		if err != nil {
			return nil, err
		}
		a.Routes = append(a.Routes, tried)
		if tried.Matches {
			return r, a.describeLater(s, vh.GetRoutes()[i+1:])
		}
	}
	return nil, nil
}

// mayUpgrade reports whether the connection may change its protocol. The route's setting
// overrides the listener's.
func mayUpgrade(protocol string, r *routev3.Route, l *hcmv3.HttpConnectionManager) bool {
	for _, u := range r.GetRoute().GetUpgradeConfigs() {
		if seam.LowerASCII(u.GetUpgradeType()) == protocol {
			return u.GetEnabled() == nil || u.GetEnabled().GetValue()
		}
	}
	for _, u := range l.GetUpgradeConfigs() {
		if seam.LowerASCII(u.GetUpgradeType()) == protocol {
			return u.GetEnabled() == nil || u.GetEnabled().GetValue()
		}
	}
	return false
}

// describeFilters lists the filters and describes the known ones.
func (a *Answer) describeFilters(p passed) error {
	received := p.request
	for _, on := range p.l.GetHttpFilters() {
		f, off := Filter{Name: on.GetName()}, seam.IsOff(on, p.vh, p.route)
		p.on = on
		known, ok := findKnown(f.Name)
		switch {
		case !ok || known.foreign && !off:
			f.describeUnknown(p, off)
		case off || known.describe == nil:
			continue
		default:
			if err := known.describe(&f, p); err != nil {
				return err
			}
		}
		a.Filters = append(a.Filters, f)
		if err := known.passOn(&p); err != nil {
			return err
		}
	}
	return a.describeAbsentDomains(received, p.l, p.route)
}

// applyRoute performs the action of the route.
func (a *Answer) applyRoute(have State, s subject, vh *routev3.VirtualHost, r *routev3.Route, l *hcmv3.HttpConnectionManager) error {
	switch action := r.GetAction().(type) {
	case *routev3.Route_DirectResponse:
		a.Body = action.DirectResponse.GetBody().GetInlineString()
		status := int(action.DirectResponse.GetStatus())
		if isForPlain(r) && status == http.StatusForbidden {
			a.endWith(DirectResponse, status, "answer", fmt.Sprintf(
				"service %s is served over HTTPS only (its field Https is only), so plain HTTP gets %d: request https://%s", a.Service, status, a.Request.Host))
			return nil
		}
		a.FilterType = model.FilterDirectResponse
		a.endWith(DirectResponse, status, "answer", fmt.Sprintf("the route answers %d by itself: %s", status, strings.TrimSpace(a.Body)))
		return nil
	case *routev3.Route_Redirect:
		return a.redirect(s, r)
	case *routev3.Route_Route:
	default:
		return fmt.Errorf("explaining route %q: action %T is not known", r.GetName(), action)
	}
	f, missing, err := forward(have, s, vh, r, l)
	if err != nil {
		return err
	}
	a.Forward = f
	for _, c := range f.Clusters {
		a.Envoy.Clusters = append(a.Envoy.Clusters, c.Name)
	}
	switch nobody := f.reachesNobody(); {
	case nobody && missing != "":
		a.endWith(NoCluster, http.StatusServiceUnavailable, "answer", "the Envoy does not have cluster "+missing)
		return nil
	case nobody:
		a.endWith(NoEndpoints, http.StatusServiceUnavailable, "answer", strings.Join(a.Envoy.Clusters, " and ")+" has no endpoint that receives requests")
		return nil
	}
	a.Code = Forwarded
	a.Message = fmt.Sprintf("service %s, route %s: %s %s%s goes to %s", a.Service, a.Route, s.headers.get(":method"), f.Host, f.Path,
		strings.Join(a.Envoy.Clusters, " or "))
	a.step("forward", "it goes to "+strings.Join(a.Envoy.Clusters, " or ")+" as "+s.headers.get(":method")+" "+f.Path+" with Host "+f.Host)
	a.describeForward(r)
	return nil
}
