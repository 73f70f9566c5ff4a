// Package affinity is route_filter_affinity: it keeps a client at one endpoint. Envoy's router does that with a hash,
// and a filter if the cookie names the endpoint.
package affinity

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	statefulv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	cookiev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/cookie/v3"
	httptypev3 "github.com/envoyproxy/go-control-plane/envoy/type/http/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name                     = "envoy.filters.http.stateful_session"
	key  seam.Key[*Affinity] = "affinity"
)

// Affinity keeps a client at one endpoint. Without Cookie and Header, the client's address identifies it.
type Affinity struct {
	Cookie string `json:"cookie,omitempty"`
	// TTL is the lifetime of the cookie; 0 means until the browser closes.
	TTL    time.Duration `json:"ttl,omitempty"`
	Header string        `json:"header,omitempty"`
	// Exact means that the cookie names the endpoint.
	Exact bool `json:"exact,omitempty"`
}

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterAffinity, Config: seam.LastOf(set, adaptClusters),
		Name: name, Listener: nothing, Disabled: true, Route: messages, ChangeRoute: hash,
		Describe: describe, DescribeForward: describeHash, Endpoint: endpoint,
	}
}

func set(r *ir.Route, f *model.AffinityFilter, _ seam.Place) error {
	key.Forward(r, &Affinity{
		Cookie: f.Cookie, TTL: time.Duration(f.TTL), Header: strings.ToLower(f.Header),
		Exact: f.Mode == model.AffinityExact,
	})
	return nil
}

// adaptClusters lets clusters hash, those of the routes before r too.
func adaptClusters(r *ir.Route, _ *model.AffinityFilter, _ seam.Place) error {
	for _, one := range r.All() {
		if a := key.OfForward(one); a != nil && !a.Exact {
			one.Forward.Clusters = slices.Clone(one.Forward.Clusters)
			for i, c := range one.Forward.Clusters {
				one.Forward.Clusters[i].Cluster = hashing(c.Cluster)
			}
		}
	}
	return nil
}

// hashing returns a cluster that can keep a client at one endpoint. If the strategy of c does not hash, the result has
// another name, because other routes use c as it is. A discovered cluster stays as it is: its assignment has its name.
func hashing(c *ir.Cluster) *ir.Cluster {
	if c.Discovered || c.Strategy == "ring_hash" || c.Strategy == "maglev" {
		return c
	}
	out := *c
	out.Name, out.Strategy, out.ZoneMin, out.SlowStart = c.Name+"/hash", "ring_hash", 0, 0
	return &out
}

// nothing happens without a route's message.
func nothing(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &statefulv3.StatefulSession{}}}
}

func messages(r *ir.Route) ([]seam.Message, error) {
	a := key.OfForward(r)
	if a == nil || !a.Exact {
		return nil, nil
	}
	state, err := seam.Pack(&cookiev3.CookieBasedSessionState{
		Cookie: &httptypev3.Cookie{Name: a.Cookie, Path: "/", Ttl: durationpb.New(a.TTL)},
	})
	if err != nil {
		return nil, err
	}
	session := &statefulv3.StatefulSession{
		SessionState: &corev3.TypedExtensionConfig{Name: "envoy.http.stateful_session.cookie", TypedConfig: state},
	}
	return []seam.Message{{Name: name, Config: &statefulv3.StatefulSessionPerRoute{
		Override: &statefulv3.StatefulSessionPerRoute_StatefulSession{StatefulSession: session},
	}}}, nil
}

// hash sets the hash policies for the choice of an endpoint, and of a cluster if there are several.
func hash(r *ir.Route, out *routev3.Route) error {
	a := key.OfForward(r)
	if a == nil || a.Exact {
		return nil
	}
	policy := &routev3.RouteAction_HashPolicy{}
	switch {
	case a.Cookie != "":
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: &routev3.RouteAction_HashPolicy_Cookie{
			Name: a.Cookie, Path: "/", Ttl: durationpb.New(a.TTL),
			Attributes: []*routev3.RouteAction_HashPolicy_CookieAttribute{{Name: "SameSite", Value: "Lax"}},
		}}
	case a.Header != "":
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{
			Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: a.Header},
		}
	default:
		policy = seam.AddressHash()
	}
	action := out.GetRoute()
	action.HashPolicy = []*routev3.RouteAction_HashPolicy{policy}
	if w := action.GetWeightedClusters(); w != nil {
		w.RandomValueSpecifier = &routev3.WeightedCluster_UseHashPolicy{UseHashPolicy: wrapperspb.Bool(true)}
	}
	return nil
}

// cookie returns the name of the cookie that names an endpoint; empty if there is none.
func cookie(r seam.Request) (string, error) {
	of, err := seam.MessageOf(name, r, &statefulv3.StatefulSessionPerRoute{})
	packed := of.GetStatefulSession().GetSessionState().GetTypedConfig()
	if packed == nil || err != nil {
		return "", err
	}
	var state cookiev3.CookieBasedSessionState
	if err := packed.UnmarshalTo(&state); err != nil {
		return "", fmt.Errorf("decoding the affinity of route %q: %w", r.Route.GetName(), err)
	}
	return state.GetCookie().GetName(), nil
}

func describe(r seam.Request) (string, error) {
	named, err := cookie(r)
	const told = "sends a client back to the endpoint that its cookie %s names, while the endpoint is healthy"
	return fmt.Sprintf(told, named), err
}

func describeHash(r *routev3.RouteAction) []string {
	const same = "requests with the same %s %s go to the same endpoint"
	var told []string
	for _, h := range r.GetHashPolicy() {
		switch {
		case h.GetCookie() != nil:
			told = append(told, fmt.Sprintf(same, "cookie", h.GetCookie().GetName()))
		case h.GetHeader() != nil:
			told = append(told, fmt.Sprintf(same, "header", h.GetHeader().GetHeaderName()))
		}
	}
	return told
}

func endpoint(r seam.Request) (string, error) {
	named, err := cookie(r)
	if named == "" || err != nil {
		return "", err
	}
	value, _ := r.Cookie(named)
	return address(value), nil
}

// address returns the address in a cookie (CookieBasedSessionStateFactory::parseAddress): the first field of a message,
// or the whole value; empty if Envoy cannot read it.
func address(value string) string {
	decoded, err := base64.StdEncoding.DecodeString(value)
	if err != nil {
		return ""
	}
	found := ""
	for rest := decoded; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return string(decoded)
		}
		rest = rest[n:]
		if number == 1 && kind == protowire.BytesType {
			text, _ := protowire.ConsumeString(rest)
			found = text
		}
		if n = protowire.ConsumeFieldValue(number, kind, rest); n < 0 {
			return string(decoded)
		}
		rest = rest[n:]
	}
	return found
}
