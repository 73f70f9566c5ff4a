package model

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// ExtAuthzFilter asks an authorization server whether a request is allowed. A route's filter replaces
// its service's.
// +page=extauthz.md
// +example={upstream: auth, path: /check, upstream_headers: [x-user], timeout: 500ms}
type ExtAuthzFilter struct {
	// Name of the upstream that is the authorization server.
	// +required
	Upstream string `json:"upstream"`
	// How the server is called: with a copy of the request without its body, or with Envoy's gRPC call
	// envoy.service.auth.v3.Authorization/Check. Default: http.
	// +enum=[AskHTTP, AskGRPC]
	Protocol string `json:"protocol,omitempty"`
	// The path of the call, instead of the request's path. The request's own path, method and host are in x-forwarded-uri,
	// x-forwarded-method and x-forwarded-host. For http only.
	// +maxLength=maxAskedPath
	// +example=/check
	Path string `json:"path,omitempty"`
	// Precedes the request's path in the path of the call. For http only.
	// +maxLength=maxAskedPath
	// +example=/authz
	PathPrefix string `json:"path_prefix,omitempty"`
	// Headers of the client's request that the server receives; without the list, it receives all. Always: method, path,
	// host, the x-forwarded-* headers of the gateway, and what frames the body. For http only.
	// +minItems=1
	// +maxItems=maxHeaders
	// +items={type: string, minLength: 1, maxLength: maxHeaderName}
	// +example=[authorization]
	RequestHeaders []string `json:"request_headers,omitempty"`
	// Which status of the server's answer allows a request: 200, or any from 200 to 299. For http only. Default: 200.
	// +enum=[AllowOK, AllowAny2xx]
	AllowStatus string `json:"allow_status,omitempty"`
	// Headers of the server's answer that the upstream of the route receives. The gateway removes these headers from
	// clients' requests, on all routes of the service.
	// +maxItems=maxHeaders
	// +items={type: string, minLength: 1, maxLength: maxHeaderName}
	// +example=[x-user]
	UpstreamHeaders []string `json:"upstream_headers,omitempty"`
	// The maximum size of the body that the server receives, in bytes; a larger body gets 413. 0 means no body.
	// +minimum=0
	// +maximum=maxAskedBody
	BodyBytes int `json:"body_bytes,omitempty"`
	// Timeout of the call, 1ms to 1m. Default: 1s.
	// +anyOf=[{type: string}]
	// +example=500ms
	Timeout Duration `json:"timeout,omitempty"`
	// What happens to a request while the server is unavailable, too slow, or answers with 5xx: deny answers 503. Default:
	// deny.
	// +enum=[OnErrorDeny, OnErrorAllow]
	OnError string `json:"on_error,omitempty"`
}

// How a server is asked.
const (
	AskHTTP = "http"
	AskGRPC = "grpc"
)

// Which answers of a server allow a request.
const (
	AllowOK     = "200"
	AllowAny2xx = "2xx"
)

// What becomes of a request that a server cannot be asked about.
const (
	OnErrorDeny  = "deny"
	OnErrorAllow = "allow"
)

const (
	maxAskedPath = 1024
	// maxAskedBody bounds what an Envoy holds for each request.
	maxAskedBody = 8388608
	// askedTimeout is the default.
	askedTimeout = Duration(time.Second)
)

func readExtAuthz(v *validator, at, _ string, config JSON) Spec {
	f := ExtAuthzFilter{Protocol: AskHTTP, Timeout: askedTimeout, OnError: OnErrorDeny}
	if !v.decode(at, config, &f) {
		return &f
	}
	v.checkServer(at, f.Upstream, f.Timeout, f.OnError)
	v.oneOf(at+".protocol", f.Protocol, []string{AskHTTP, AskGRPC})
	v.checkServerPaths(at, &f)
	v.checkServerHTTP(at, &f)
	v.upstreamHeaders(at, f.UpstreamHeaders, v.headerName)
	v.checkRange(at+".body_bytes", f.BodyBytes, 0, maxAskedBody)
	return &f
}

// upstreamHeaders checks the names of headers that only a server or a script may set.
func (v *validator) upstreamHeaders(at string, names []string, check func(field, name string, seen map[string]bool)) {
	if len(names) > maxHeaders {
		v.add(at+".upstream_headers", "has %d headers; at most %d are allowed", len(names), maxHeaders)
	}
	seen := map[string]bool{}
	for _, name := range names {
		check(at+".upstream_headers", name, seen)
	}
}

// checkServer checks the fields of a filter that calls a server.
func (v *validator) checkServer(at, upstream string, timeout Duration, onError string) {
	v.name(at+".upstream", upstream, true)
	if d := time.Duration(timeout); d < time.Millisecond || d > time.Minute {
		v.add(at+".timeout", "%s is not between 1ms and 1m", d)
	}
	v.oneOf(at+".on_error", onError, []string{OnErrorDeny, OnErrorAllow})
}

func (v *validator) checkServerPaths(at string, f *ExtAuthzFilter) {
	for _, p := range []struct{ field, path string }{{".path", f.Path}, {".path_prefix", f.PathPrefix}} {
		switch {
		case p.path == "":
		case f.Protocol == AskGRPC:
			v.add(at+p.field, "requires protocol http; a gRPC call has the path of the request in its message")
		case len(p.path) > maxAskedPath || !strings.HasPrefix(p.path, "/") || strings.ContainsFunc(p.path, isNoASCIIText) ||
			strings.ContainsAny(p.path, " #%"):
			v.add(at+p.field, "%q is not a path such as /check", p.path)
		case p.field == ".path_prefix" && strings.Contains(p.path, "?"):
			v.add(at+p.field, "%q must have no query, because the path of the request follows it", p.path)
		}
	}
	if f.Path != "" && f.PathPrefix != "" {
		v.add(at+".path_prefix", "cannot be combined with path")
	}
}

// checkServerHTTP checks the other fields of calls over HTTP.
func (v *validator) checkServerHTTP(at string, f *ExtAuthzFilter) {
	if f.AllowStatus != "" {
		v.oneOf(at+".allow_status", f.AllowStatus, []string{AllowOK, AllowAny2xx})
	}
	names := at + ".request_headers"
	switch {
	case f.RequestHeaders != nil && len(f.RequestHeaders) == 0:
		v.add(names, "names no header; leave it out if the server may receive all headers")
	case len(f.RequestHeaders) > maxHeaders:
		v.add(names, "has %d headers; at most %d are allowed", len(f.RequestHeaders), maxHeaders)
	}
	seen := map[string]bool{}
	for _, name := range f.RequestHeaders {
		switch lower := strings.ToLower(name); {
		case strings.HasPrefix(name, ":") || lower == "host":
			v.add(names, "%q need not be named; the server always receives method, path and host", name)
		case slices.Contains(connectionHeaders(), lower):
			v.add(names, "%q belongs to the connection and cannot be passed on", name)
		case seen[lower]:
			v.add(names, "%q is named twice", name)
		case len(name) > maxHeaderName:
			v.add(names, "has more than %d characters", maxHeaderName)
		default:
			v.token(names, name)
		}
		seen[strings.ToLower(name)] = true
	}
	if f.Protocol != AskGRPC {
		return
	}
	if f.RequestHeaders != nil {
		v.add(names, "requires protocol http; a gRPC call has all headers of the request in its message")
	}
	if f.AllowStatus != "" {
		v.add(at+".allow_status", "requires protocol http; over gRPC, the status OK allows a request")
	}
}

func (f *ExtAuthzFilter) uses() []Key { return askedUpstream(f.Upstream) }

func askedUpstream(name string) []Key {
	if name == "" {
		return nil
	}
	return []Key{UpstreamKey(name)}
}

// serverNames are the paths of what uses lists.
func serverNames() map[string]Kind { return map[string]Kind{"upstream": KindUpstream} }

// Advice says what is open.
func (f *ExtAuthzFilter) Advice() []string {
	var list []string
	if f.OnError == OnErrorAllow {
		list = append(list, "has on_error allow: while upstream "+f.Upstream+
			" is unavailable, too slow, or answers with 5xx, every request is allowed without a check")
	}
	for _, name := range f.UpstreamHeaders {
		if slices.Contains([]string{"Authorization", "Cookie"}, http.CanonicalHeaderKey(name)) {
			list = append(list, "has "+name+" in upstream_headers: the gateway removes it from requests first, "+
				"so the authorization server never sees the client's value")
		}
	}
	return list
}
