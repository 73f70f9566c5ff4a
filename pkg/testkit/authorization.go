package testkit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// AuthServer is an authorization server over HTTP and over gRPC (envoy.service.auth.v3). It allows
// a request as x-user alice, unless a header of the request says otherwise: X-Deny is the status of
// its answer, X-Delay how long it waits, X-Answer a header of its answer, "name=value".
type AuthServer struct {
	// HTTP and GRPC are the ports on 127.0.0.1.
	HTTP, GRPC int

	http *http.Server
	grpc *grpc.Server
	mu   sync.Mutex
	list []AuthRequest
}

// AuthRequest is a request that the server received.
type AuthRequest struct {
	// Protocol is http or grpc.
	Protocol, Method, Host, Path, Body string
	Headers                            http.Header
}

// StartAuthServer runs the server on two free ports until Close.
func StartAuthServer() (*AuthServer, error) {
	var ports [2]int
	var listeners [2]net.Listener
	for i := range ports {
		port, err := FreePort()
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // is there at once
		if err != nil {
			return nil, fmt.Errorf("starting the authorization server: %w", err)
		}
		ports[i], listeners[i] = port, l
	}
	s := &AuthServer{HTTP: ports[0], GRPC: ports[1], grpc: grpc.NewServer()}
	s.http = &http.Server{Handler: http.HandlerFunc(s.answer), ReadHeaderTimeout: time.Minute}
	authv3.RegisterAuthorizationServer(s.grpc, authCalls{s})
	go func() { _ = s.http.Serve(listeners[0]) }()
	go func() { _ = s.grpc.Serve(listeners[1]) }()
	return s, nil
}

// Close closes all connections and stops the server.
func (s *AuthServer) Close() error {
	s.grpc.Stop()
	return s.http.Close()
}

// Asked returns the requests that the server received since the last call, in order.
func (s *AuthServer) Asked() []AuthRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.list
	s.list = nil
	return list
}

// verdict is the decision about a request.
type verdict struct {
	status  int
	headers http.Header
	body    string
}

func (s *AuthServer) judge(ctx context.Context, r AuthRequest) verdict {
	s.mu.Lock()
	s.list = append(s.list, r)
	s.mu.Unlock()
	if d, err := time.ParseDuration(r.Headers.Get("X-Delay")); err == nil {
		select {
		case <-ctx.Done(): // a check that timed out must not allow the request
			return verdict{status: http.StatusServiceUnavailable}
		case <-time.After(d):
		}
	}
	v := verdict{status: http.StatusOK, headers: http.Header{"X-User": {"alice"}}}
	for _, pair := range r.Headers.Values("X-Answer") {
		name, value, _ := strings.Cut(pair, "=")
		v.headers.Add(name, value)
	}
	status, err := strconv.Atoi(r.Headers.Get("X-Deny"))
	if err != nil {
		return v
	}
	v.status, v.body = status, "the server says no\n"
	switch status {
	case http.StatusUnauthorized:
		v.headers.Set("Www-Authenticate", `Bearer realm="shop"`)
	case http.StatusFound:
		v.headers.Set("Location", "https://login.test/?rd="+r.Path)
	}
	return v
}

func (s *AuthServer) answer(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	v := s.judge(r.Context(), AuthRequest{"http", r.Method, r.Host, r.URL.RequestURI(), string(body), r.Header})
	maps.Copy(w.Header(), v.headers)
	w.WriteHeader(v.status)
	_, _ = io.WriteString(w, v.body)
}

type authCalls struct{ *AuthServer }

// Check implements authv3.AuthorizationServer.
func (s authCalls) Check(ctx context.Context, r *authv3.CheckRequest) (*authv3.CheckResponse, error) {
	req := r.GetAttributes().GetRequest().GetHttp()
	headers := http.Header{}
	for name, value := range req.GetHeaders() {
		headers.Set(name, value)
	}
	v := s.judge(ctx, AuthRequest{
		"grpc", req.GetMethod(), req.GetHost(), req.GetPath(), cmp.Or(string(req.GetRawBody()), req.GetBody()), headers,
	})
	var list []*corev3.HeaderValueOption
	for _, name := range slices.Sorted(maps.Keys(v.headers)) {
		for _, value := range v.headers[name] {
			list = append(list, &corev3.HeaderValueOption{Header: &corev3.HeaderValue{Key: name, Value: value}})
		}
	}
	switch {
	case v.status == http.StatusOK:
		return &authv3.CheckResponse{
			Status:       &statuspb.Status{},
			HttpResponse: &authv3.CheckResponse_OkResponse{OkResponse: &authv3.OkHttpResponse{Headers: list}},
		}, nil
	case v.status >= http.StatusInternalServerError:
		return nil, errors.New(v.body)
	}
	return &authv3.CheckResponse{
		Status: &statuspb.Status{Code: int32(codes.PermissionDenied)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode(v.status)}, Headers: list, Body: v.body, //nolint:gosec // a status code
		}},
	}, nil
}
