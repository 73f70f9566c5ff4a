// Package extauthz is http_filter_extauthz: it asks an authorization server whether a request is allowed.
package extauthz

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// name asks the server. allowing allows requests while the server is unreachable. There are two, since Envoy has that
	// setting only on the listener.
	name     = "envoy.filters.http.ext_authz"
	allowing = name + "/allow"
	// spoofed removes headers that only the server may set. It has its own name, since a login of the proxy has a message
	// for the filter of credentials too.
	spoofed                   = "envoy.filters.http.header_mutation/in/authz"
	key     seam.Key[*Server] = "extAuthz"
)

// These headers tell a server what the client requested. A gRPC call has that in its message, so the server receives
// none of them.
const (
	forwardedURI    = "x-forwarded-uri"
	forwardedMethod = "x-forwarded-method"
	forwardedHost   = "x-forwarded-host"
)

const unavailable = "the authorization server is not available\n"

// Server is an authorization server that is asked about each request.
type Server struct {
	// Cluster is the name of one of the Asked clusters.
	Cluster string `json:"cluster"`
	// GRPC asks with a gRPC call. Otherwise Envoy sends a request to Path, or to PathPrefix plus the request's own path.
	GRPC       bool   `json:"grpc,omitempty"`
	Path       string `json:"path,omitempty"`
	PathPrefix string `json:"pathPrefix,omitempty"`
	// UpstreamHeaders are headers of the server's answer that the upstream receives, in lower case. Nobody else may set
	// them.
	UpstreamHeaders []string `json:"upstreamHeaders,omitempty"`
	// BodyBytes is how much of a body the server receives; 0 means that it receives none.
	BodyBytes int           `json:"bodyBytes,omitempty"`
	Timeout   time.Duration `json:"timeout"`
	// Allow allows a request if the server cannot be asked about it.
	Allow bool `json:"allow,omitempty"`
}

// Filter returns the filter that asks. A route's server replaces its service's.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterExtAuthz, Config: seam.Hooks(addToHost, addToRoute),
		Name: name, Several: true, Listener: nobody, Disabled: true,
		Host: seam.OfHost(key, messages), Route: ofRoute,
		Refuses:  map[string]string{"ext_authz_": model.FilterExtAuthz},
		Replies:  seam.ReplyTo(0, "ext_authz_error", http.StatusServiceUnavailable, unavailable),
		Describe: describe,
	}
}

// Spoofed returns the filter that removes headers from requests that only the server may set.
func Spoofed() seam.Filter {
	return seam.Filter{
		Name: spoofed, Listener: removeNothing, Disabled: true, Host: spoofedOfHost, Route: spoofedOfRoute,
		Describe: describeSpoofed,
	}
}

func addToHost(h *ir.Host, f *model.ExtAuthzFilter, at seam.Place) error {
	s, c, err := serverOf(f, at)
	if err == nil {
		h.Filters, h.Asked = key.In(h.Filters, s), ir.WithCluster(h.Asked, c)
	}
	return err
}

func addToRoute(r *ir.Route, f *model.ExtAuthzFilter, at seam.Place) error {
	s, c, err := serverOf(f, at)
	if err == nil {
		r.Filters, r.Asked = key.In(r.Filters, s), ir.WithCluster(r.Asked, c)
	}
	return err
}

func serverOf(f *model.ExtAuthzFilter, at seam.Place) (*Server, *ir.Cluster, error) {
	c, err := at.Server(f.Upstream, f.Protocol == model.AskGRPC)
	if err != nil {
		return nil, nil, err
	}
	if call := callOf(f); call != nil {
		c = forCall(c, call)
	}
	out := &Server{
		Cluster: c.Name, GRPC: f.Protocol == model.AskGRPC, Path: f.Path, PathPrefix: strings.TrimRight(f.PathPrefix, "/"),
		BodyBytes: f.BodyBytes, Timeout: time.Duration(f.Timeout), Allow: f.OnError == model.OnErrorAllow,
	}
	for _, name := range f.UpstreamHeaders {
		out.UpstreamHeaders = append(out.UpstreamHeaders, strings.ToLower(name))
	}
	slices.Sort(out.UpstreamHeaders)
	return out, c, nil
}

// gatewayHeaders returns the headers that tell a server over HTTP who requested what.
func gatewayHeaders() []string {
	return []string{"x-forwarded-for", forwardedHost, forwardedMethod, "x-forwarded-proto", forwardedURI}
}

// callOf returns what a filter changes in its calls; nil if nothing.
func callOf(f *model.ExtAuthzFilter) *ir.Call {
	call := &ir.Call{OK: f.AllowStatus == model.AllowAny2xx}
	if f.RequestHeaders != nil {
		for _, name := range f.RequestHeaders {
			call.Headers = append(call.Headers, strings.ToLower(name))
		}
		call.Headers = append(call.Headers, gatewayHeaders()...)
		slices.Sort(call.Headers)
		call.Headers = slices.Compact(call.Headers)
	}
	if !call.OK && call.Headers == nil {
		return nil
	}
	return call
}

// forCall returns a cluster with the endpoints of c. Filters that change their calls alike share it.
func forCall(c *ir.Cluster, call *ir.Call) *ir.Cluster {
	out := *c
	sum := sha256.Sum256(fmt.Append(nil, call.OK, call.Headers))
	out.Name, out.Call = c.Name+"/"+hex.EncodeToString(sum[:16]), call
	return &out
}

// nobody names a server that does not exist, so the first filter refuses every request. Without a service, Envoy would
// crash at the first request. Without a list of allowed headers, the server would receive only a few of Envoy's choice.
// A route cannot set which headers it receives.
func nobody(ir.Listener) []seam.Message {
	config := func(allow bool) *extauthzv3.ExtAuthz {
		return &extauthzv3.ExtAuthz{
			Services: &extauthzv3.ExtAuthz_HttpService{HttpService: &extauthzv3.HttpService{
				ServerUri: uri(seam.NoCluster, time.Second),
			}},
			AllowedHeaders: &matcherv3.ListStringMatcher{Patterns: []*matcherv3.StringMatcher{{
				MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: ".*"}},
			}}},
			StatusOnError:    &typev3.HttpStatus{Code: typev3.StatusCode(http.StatusServiceUnavailable)},
			FailureModeAllow: allow, FailureModeAllowHeaderAdd: allow,
			ValidateMutations: true, DecoderHeaderMutationRules: seam.MutationRules(),
		}
	}
	return []seam.Message{{Name: name, Config: config(false)}, {Name: allowing, Config: config(true)}}
}

func messages(s *Server) ([]seam.Message, error) {
	settings := &extauthzv3.CheckSettings{}
	if s.GRPC {
		settings.ServiceOverride = &extauthzv3.CheckSettings_GrpcService{GrpcService: byGRPC(s)}
	} else {
		settings.ServiceOverride = &extauthzv3.CheckSettings_HttpService{HttpService: byHTTP(s)}
	}
	if s.BodyBytes > 0 {
		settings.WithRequestBody = &extauthzv3.BufferSettings{
			MaxRequestBytes: uint32(s.BodyBytes), PackAsBytes: true, //nolint:gosec // bounded
		}
	}
	to := name
	if s.Allow {
		to = allowing
	}
	return []seam.Message{{Name: to, Config: &extauthzv3.ExtAuthzPerRoute{
		Override: &extauthzv3.ExtAuthzPerRoute_CheckSettings{CheckSettings: settings},
	}}}, nil
}

// ofRoute turns off the filter for which the host may have a message.
func ofRoute(r *ir.Route) ([]seam.Message, error) {
	off := func(name string) seam.Message {
		return seam.Message{Name: name, Config: &routev3.FilterConfig{Disabled: true}}
	}
	s := key.Of(r.Filters)
	switch {
	case s == nil && r.Public:
		return []seam.Message{off(name), off(allowing)}, nil
	case s == nil:
		return nil, nil
	}
	list, err := messages(s)
	if s.Allow {
		return append(list, off(name)), err
	}
	return append(list, off(allowing)), err
}

func byHTTP(s *Server) *extauthzv3.HttpService {
	out := &extauthzv3.HttpService{ServerUri: uri(s.Cluster, s.Timeout), PathPrefix: s.PathPrefix, PathOverride: s.Path}
	// Servers read these, whatever the path of the call is. A client could otherwise write them.
	out.AuthorizationRequest = &extauthzv3.AuthorizationRequest{HeadersToAdd: []*corev3.HeaderValue{
		{Key: forwardedURI, Value: "%REQ(:path)%"}, {Key: forwardedMethod, Value: "%REQ(:method)%"},
		{Key: forwardedHost, Value: "%REQ(:authority)%"},
	}}
	if len(s.UpstreamHeaders) > 0 {
		names := &matcherv3.ListStringMatcher{}
		for _, name := range s.UpstreamHeaders {
			names.Patterns = append(names.Patterns, &matcherv3.StringMatcher{
				MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name},
			})
		}
		out.AuthorizationResponse = &extauthzv3.AuthorizationResponse{AllowedUpstreamHeaders: names}
	}
	return out
}

func uri(cluster string, timeout time.Duration) *corev3.HttpUri {
	return &corev3.HttpUri{
		Uri: "http://" + cluster, HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: cluster},
		Timeout: durationpb.New(timeout),
	}
}

func byGRPC(s *Server) *corev3.GrpcService {
	return &corev3.GrpcService{
		TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: s.Cluster}},
		Timeout:         durationpb.New(s.Timeout),
	}
}

func removeNothing(ir.Listener) []seam.Message {
	return []seam.Message{{Name: spoofed, Config: &headermutationv3.HeaderMutation{}}}
}

// spoofedOfHost leaves the headers of the host's Identity to the filter of credentials.
func spoofedOfHost(h *ir.Host) ([]seam.Message, error) {
	return removeSpoofed(key.Of(h.Filters), h.Identity), nil
}

func spoofedOfRoute(r *ir.Route) ([]seam.Message, error) {
	return removeSpoofed(key.Of(r.Filters), nil), nil
}

// removeSpoofed removes the headers that only the server sets or the gateway tells it, except those that are removed
// elsewhere.
func removeSpoofed(s *Server, elsewhere []string) []seam.Message {
	if s == nil {
		return nil
	}
	list := seam.RemoveHeaders(seam.WithoutNames(s.UpstreamHeaders, elsewhere)...)
	if s.GRPC {
		list = append(list, seam.RemoveHeaders(forwardedURI, forwardedMethod)...)
	}
	return seam.RequestMutations(spoofed, list)
}

func describeSpoofed(r seam.Request) (string, error) {
	removed, err := seam.RemovedHeaders(spoofed, r)
	return "removes headers that clients may not set where an authorization server is called: " +
		strings.Join(removed, ", "), err
}

// describe says which server is asked. Its answer is unknown: an explanation calls no server.
func describe(r seam.Request) (string, error) {
	message, err := seam.MessageOf(r.On.GetName(), r, &extauthzv3.ExtAuthzPerRoute{})
	if err != nil {
		return "", err
	}
	settings := message.GetCheckSettings()
	by := httpCall(settings.GetHttpService(), r)
	if g := settings.GetGrpcService(); g != nil {
		by = fmt.Sprintf("calls cluster %s by gRPC, for at most %s",
			g.GetEnvoyGrpc().GetClusterName(), g.GetTimeout().AsDuration())
	}
	away := "503"
	if r.On.GetName() == allowing {
		away = "it allows the request"
	}
	told := fmt.Sprintf("%s, and returns its answer unless it allows the request; %s if it is unavailable", by, away)
	if b := settings.GetWithRequestBody(); b != nil {
		told += fmt.Sprintf("; 413 for a body over %d bytes", b.GetMaxRequestBytes())
	}
	return told, nil
}

func httpCall(s *extauthzv3.HttpService, r seam.Request) string {
	path := s.GetPathOverride()
	if path == "" {
		path = s.GetPathPrefix() + r.Path
	}
	cluster, _, _ := strings.Cut(s.GetServerUri().GetCluster(), "/") // what follows tells calls apart
	return fmt.Sprintf("calls cluster %s for %s %s, for at most %s",
		cluster, r.Header(seam.Method), path, s.GetServerUri().GetTimeout().AsDuration())
}
