package explain

import (
	"encoding/base64"
	"fmt"
	"net"
	"strconv"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	statefulv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	cookiev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/cookie/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

// exactCookie returns the name of the cookie that names an endpoint; empty if there is none.
func exactCookie(r *routev3.Route) (string, error) {
	config := r.GetTypedPerFilterConfig()[affinityFilter]
	if config == nil {
		return "", nil
	}
	var of statefulv3.StatefulSessionPerRoute
	var state cookiev3.CookieBasedSessionState
	if err := config.UnmarshalTo(&of); err != nil {
		return "", fmt.Errorf("decoding the affinity of route %q: %w", r.GetName(), err)
	}
	if err := of.GetStatefulSession().GetSessionState().GetTypedConfig().UnmarshalTo(&state); err != nil {
		return "", fmt.Errorf("decoding the affinity of route %q: %w", r.GetName(), err)
	}
	return state.GetCookie().GetName(), nil
}

func (f *Filter) describeAffinity(p passed) error {
	name, err := exactCookie(p.route)
	f.Message = fmt.Sprintf("sends a client back to the endpoint that its cookie %s names, while the endpoint is healthy", name)
	return err
}

// stay sends all requests to the endpoint that a cookie names, if the route has only one cluster and that
// contains it.
func (f *Forward) stay(s subject, r *routev3.Route) error {
	name, err := exactCookie(r)
	if name == "" || err != nil || len(f.Clusters) != 1 {
		return err
	}
	value, _ := s.cookieOf(name)
	address := cookieAddress(value)
	endpoints := f.Clusters[0].Endpoints
	for i := range endpoints {
		if endpointAddress(endpoints[i]) != address || endpoints[i].Draining {
			continue
		}
		for j := range endpoints {
			endpoints[j].Percent = 0
		}
		endpoints[i].Percent = 100
	}
	return nil
}

// cookieAddress returns the address in a cookie (CookieBasedSessionStateFactory::parseAddress): the first field
// of a message, or the whole value; empty if Envoy cannot read it.
func cookieAddress(value string) string {
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return ""
	}
	address := ""
	for rest := decoded; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return string(decoded)
		}
		rest = rest[n:]
		if number == 1 && kind == protowire.BytesType {
			text, _ := protowire.ConsumeString(rest)
			address = text
		}
		if n = protowire.ConsumeFieldValue(number, kind, rest); n < 0 {
			return string(decoded)
		}
		rest = rest[n:]
	}
	return address
}

func endpointAddress(e Endpoint) string {
	return net.JoinHostPort(e.Address, strconv.FormatUint(uint64(e.Port), 10))
}

// describeChoice describes what the choice of an upstream depends on, and which upstream receives a copy.
func (a *Answer) describeChoice(r *routev3.Route) {
	for _, h := range r.GetRoute().GetHashPolicy() {
		switch {
		case h.GetCookie() != nil:
			a.step("forward", fmt.Sprintf("requests with the same cookie %s go to the same endpoint", h.GetCookie().GetName()))
		case h.GetHeader() != nil:
			a.step("forward", fmt.Sprintf("requests with the same header %s go to the same endpoint", h.GetHeader().GetHeaderName()))
		}
	}
	for _, m := range r.GetRoute().GetRequestMirrorPolicies() {
		const percent = 10_000
		a.step("forward", fmt.Sprintf("a copy of %g%% of the requests goes to %s, whose answers are discarded",
			float64(m.GetRuntimeFraction().GetDefaultValue().GetNumerator())/percent, m.GetCluster()))
	}
}
