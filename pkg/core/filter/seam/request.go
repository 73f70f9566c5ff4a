package seam

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// Authority is the name of Host among the headers of a Request, Method that of the method.
const (
	Authority = ":authority"
	Method    = ":method"
)

// Request is a request that passes a filter in an Envoy, as pkg/diagnostics/explain predicts it.
type Request struct {
	// Headers are in lower case. Path has no query, which begins with a question mark.
	Headers     map[string][]string
	Path, Query string
	// Client is the address of the client.
	Client string
	// Where returns what the Envoy's databases say of an address, empty for what they do not have. Nil means that this
	// is not known here.
	Where func(netip.Addr) (country, network string)
	// VirtualHost and Route are those of the request. On is the filter of the listener.
	VirtualHost *routev3.VirtualHost
	Route       *routev3.Route
	On          *hcmv3.HttpFilter
	// Listener is the connection manager with all filters.
	Listener *hcmv3.HttpConnectionManager
	// Discovered reads the Envoy's configuration of a filter that is delivered on its own. It reports whether the Envoy has
	// one.
	Discovered func(filter string, into proto.Message) (bool, error)
	// Step tells what happens to the request, under a code. An answer has the steps in their order.
	Step func(code, message string)
}

// Refusal is a response of a filter in place of the route's.
type Refusal struct {
	// Code and Message are for the answer of explain.
	Code, Message string
	// Details are those with which the listener finds its reply; empty means that the response stays as it is. Status and
	// Body are the filter's own.
	Details string
	Status  int
	Body    string
	// Step is the code of the step of explain; empty means "refused".
	Step string
	// Type is the type of the filter's configuration, if it is not that of its row.
	Type string
	// Location is where a browser is sent. Direct means that a client of gRPC gets the response as it is too.
	Location string
	Direct   bool
}

// Header returns the values of a header, joined; empty if there is none.
func (r Request) Header(name string) string { return strings.Join(r.Headers[name], ",") }

// Passes reports whether a request passes another filter: the listener has it, and it is on.
func (r Request) Passes(name string) bool {
	at := slices.IndexFunc(r.Listener.GetHttpFilters(), func(f *hcmv3.HttpFilter) bool { return f.GetName() == name })
	return at >= 0 && !IsOff(r.Listener.GetHttpFilters()[at], r.VirtualHost, r.Route)
}

// IsGRPC reports whether a Content-Type is that of gRPC.
func IsGRPC(contentType string) bool {
	rest, ok := strings.CutPrefix(contentType, "application/grpc")
	return ok && (rest == "" || rest[0] == '+')
}

// MessageOf returns the message for a filter: the route's, or else the host's.
func MessageOf[T proto.Message](name string, r Request, into T) (T, error) {
	for _, config := range []map[string]*anypb.Any{
		r.Route.GetTypedPerFilterConfig(), r.VirtualHost.GetTypedPerFilterConfig(),
	} {
		if packed := config[name]; packed != nil {
			if err := packed.UnmarshalTo(into); err != nil {
				return into, fmt.Errorf("decoding filter %q: %w", name, err)
			}
			return into, nil
		}
	}
	return into, nil
}

// IsOff reports whether a filter does nothing for a route. The route's setting overrides the service's, and that
// overrides the listener's. A message for the filter turns it on. Without a route, Envoy does not use the service's
// setting either.
func IsOff(f *hcmv3.HttpFilter, vh *routev3.VirtualHost, r *routev3.Route) bool {
	if r == nil {
		return f.GetDisabled()
	}
	for _, config := range []map[string]*anypb.Any{r.GetTypedPerFilterConfig(), vh.GetTypedPerFilterConfig()} {
		packed := config[f.GetName()]
		if packed == nil {
			continue
		}
		var out routev3.FilterConfig
		return packed.UnmarshalTo(&out) == nil && out.GetDisabled()
	}
	return f.GetDisabled()
}
