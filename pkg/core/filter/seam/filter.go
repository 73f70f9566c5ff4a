// Package seam is what a filter is to the rest of the program: one value with a hook for each thing that it does.
//
// Invariants: a nil hook means that the filter does nothing there; hooks change no message and no value that others
// have seen; an error from a hook closes what the filter is on.
package seam

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// Filter is one HTTP filter of Envoy, with all the places where it occurs: a row of pkg/core/filter/order.go.
type Filter struct {
	// Type is the type of filters of the REST API that Config is for. Config says what their configurations do. Envoy may
	// have several filters for one type; only one of them has its Config.
	Type   string
	Config *Config

	// Name is the filter's name on the listener. If the row has several filters, it is the part of their names before
	// the slash. Empty means that a type sets only what routes do.
	Name string
	// Several means that there may be more of the filter, called Name, a slash and a word.
	Several bool
	// Listener returns the row's filters on the listener. It is mostly one, but a filter that supports one domain has
	// one instance for each domain.
	Listener func(ir.Listener) []Message
	// Disabled means that the filter works only for hosts and routes that have a message for it. It is on every
	// listener, so that no listener changes with them. If Envoy cannot read a message, it uses the listener's
	// configuration, which must deny if the filter protects something.
	Disabled bool
	// Host and Route return the messages of a host and of a route. A host's message applies to routes without their
	// own.
	Host  func(*ir.Host) ([]Message, error)
	Route func(*ir.Route) ([]Message, error)
	// ChangeHost and ChangeRoute change the message of a host or route itself, when it is complete.
	ChangeHost  func(*ir.Host, *routev3.VirtualHost) error
	ChangeRoute func(*ir.Route, *routev3.Route) error
	// Replies change the filter's own responses.
	Replies func(ir.Listener) ([]*hcmv3.ResponseMapper, error)
	// Refuses has the words that metrics have for the filter's refusals, by how RefusalDetails begins; mostly the type of
	// the configuration.
	Refuses map[string]string
	// Resources are what the filter needs in addition to the listener.
	Resources func(ir.Listener) (Resources, error)
	// Manager changes the connection manager, before its filters run.
	Manager func(ir.Listener, *hcmv3.HttpConnectionManager) error
	// LogFields are fields in a line of the access log. Logs are logs of their own, which every listener has.
	LogFields func() map[string]string
	Logs      func() (*accesslogv3.AccessLog, error)

	// Refuse returns the filter's response in place of the route's, or nil. Describe says what the filter does with a
	// request that it does not refuse. Both predict what Envoy does, from the messages that it has.
	Refuse   func(Request) (*Refusal, error)
	Describe func(Request) (string, error)
	// Exempt is called in place of Refuse where the filter is off.
	Exempt func(Request)
	// Identifies means that the filter asks who the client is. The answer to a request that comes as far as the first of
	// these lists all filters. Identity is what it then says about the client; nil means nothing.
	Identifies bool
	Identity   *Identity
	// Change returns a request as the filter passes it on. What only Envoy knows stays a command in its headers.
	Change func(Request) (Request, error)
	// Replace returns what a client gets in place of an answer of the gateway with a status: another status and body, and
	// what happened, in words that follow the name of the type. Without words, the answer stays. A client of gRPC gets
	// status 200 for most refusals.
	Replace func(r Request, status int) (Replacement, error)
	// Endpoint returns the address of the endpoint to which a forwarded request goes, if the route has that endpoint;
	// empty means any.
	Endpoint func(Request) (string, error)
	// DescribeForward says what happens to a request that is forwarded, one text for each thing.
	DescribeForward func(*routev3.RouteAction) []string
	// Foreign means that what the filter does cannot be predicted.
	Foreign bool
}

// Message is a message for the filter called Name. Filters of one type have different names, such as rbac/host.
type Message struct {
	Name   string
	Config Proto
	// On means that the listener's filter works for all routes, although its row is Disabled.
	On bool
	// Discovered means that the listener's filter is delivered on its own, under its name (ECDS), as a message of
	// this type. Config is then the default if it does not arrive; nil means that the listener cannot work without
	// it.
	Discovered Proto
}

// Replacement is what a client gets in place of an answer.
type Replacement struct {
	Status        int
	Body, Message string
}

// Identity is what a filter says about the client in the request's metadata, which later filters read.
type Identity struct {
	// Needs says what nothing finds on a route where the filter is off, for filters that count by it.
	Needs string
	// Find returns a value at a path. If there is none, missing is the reason.
	Find func(r Request, path []string) (value, missing string, err error)
}

// Proto is an Envoy message with the validation rules of its .proto file.
type Proto interface {
	proto.Message
	ValidateAll() error
}

// Resources are what filters refer to by name outside listeners and routes.
type Resources struct {
	Clusters []*clusterv3.Cluster
	Secrets  []*tlsv3.Secret
	// Extensions are filters that a listener refers to by name.
	Extensions []*corev3.TypedExtensionConfig
}
