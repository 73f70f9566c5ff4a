package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
)

// answer is what the answers of all calls have.
type answer interface {
	StatusCode() int
	GetBody() []byte
}

// want ends the program unless a call was made and answered with a status.
func want[R answer](status int, r R, err error) R {
	_, _, line, _ := runtime.Caller(2)
	switch {
	case err != nil:
		fail("line %d: %s", line, err)
	case r.StatusCode() != status:
		fail("line %d: status %d: %s", line, r.StatusCode(), r.GetBody())
	}
	return r
}

func made[R answer](r R, err error) { want(201, r, err) }

func done[R answer](r R, err error) { want(200, r, err) }

func got[R answer](r R, err error) R { return want(200, r, err) }

// same ends the program unless the values are equal.
func same(got, expected any) {
	if !reflect.DeepEqual(got, expected) {
		_, _, line, _ := runtime.Caller(1)
		fail("line %d: %#v, not %#v", line, got, expected)
	}
}

// union returns a value that is one of several types: from is its method for T.
func union[U, T any](from func(*U, T) error, v T) *U {
	u := new(U)
	if err := from(u, v); err != nil {
		fail("%s", err)
	}
	return u
}

func file(name string) string {
	b, err := os.ReadFile(name)
	if err != nil {
		fail("%s", err)
	}
	return string(b)
}

var tags = union((*TagsField).FromTags, Tags{"clients"})

// kinds creates, attaches, reads, patches, detaches and deletes objects of every kind.
func kinds(ctx context.Context, api *ClientWithResponses) {
	h2c := UpstreamCreateUpstreamProtocolH2c
	for name, protocol := range map[string]*UpstreamCreateUpstreamProtocol{"blue": nil, "green": nil, "grpc": &h2c} {
		made(api.CreateUpstreamWithResponse(ctx, nil, UpstreamCreate{
			UpstreamName: name, UpstreamIp: "192.0.2.1", UpstreamPort: 8081, UpstreamProtocol: protocol,
		}))
	}
	secrets(ctx, api)
	keys(ctx, api)
	proxy(ctx, api)
	service(ctx, api)
	list := filters()
	for _, f := range list {
		f.attach(ctx, api)
	}
	for _, f := range list {
		f.detach(ctx, api)
	}
	done(api.DetachProxyServiceWithResponse(ctx, "gw", "shop", nil))
	done(api.DetachProxyGlobalconfigWithResponse(ctx, "gw", "rates", nil))
	done(api.DetachServiceSecretWithResponse(ctx, "shop", "shop-tls", nil))
	done(api.DetachRouteUpstreamWithResponse(ctx, "shop", "root", "blue", nil))
	done(api.DeleteProxyWithResponse(ctx, "gw", nil))
	done(api.DeleteGlobalconfigWithResponse(ctx, "rates", nil))
	done(api.DeleteRouteWithResponse(ctx, "shop", "root", nil))
	done(api.DeleteServiceWithResponse(ctx, "shop", nil))
	done(api.DeleteKeyWithResponse(ctx, "partners", "mobile", nil))
	done(api.DeleteKeysetWithResponse(ctx, "partners", nil))
	for _, name := range []string{"value", "shop-tls"} {
		done(api.DeleteSecretWithResponse(ctx, name, nil))
	}
	for _, name := range []string{"blue", "green", "grpc"} {
		done(api.DeleteUpstreamWithResponse(ctx, name, nil))
	}
}

func secrets(ctx context.Context, api *ClientWithResponses) {
	value, cert, key := "0123456789abcdef0123456789abcdef", file("cert.pem"), file("key.pem")
	made(api.CreateSecretWithResponse(ctx, nil, SecretCreate{SecretName: "value", SecretValue: &value}))
	made(api.CreateSecretWithResponse(ctx, nil, SecretCreate{SecretName: "shop-tls", SecretCert: &cert, SecretKey: &key}))
	done(api.PatchSecretWithResponse(ctx, "shop-tls", nil, SecretPatch{Tags: tags}))
	read := got(api.ReadSecretWithResponse(ctx, "shop-tls", nil)).JSON200.Data.CoreDbSecret[0]
	same(read.HostNames, []string{"shop.example.com"})
	same(read.Tags, Tags{"clients"})
}

func keys(ctx context.Context, api *ClientWithResponses) {
	made(api.CreateKeysetWithResponse(ctx, nil, KeysetCreate{KeysetName: "partners"}))
	done(api.PatchKeysetWithResponse(ctx, "partners", nil, KeysetPatch{Tags: tags}))
	same(got(api.ReadKeysetWithResponse(ctx, "partners", nil)).JSON200.Data.CoreDbKeyset[0].Tags, Tags{"clients"})
	made(api.CreateKeyWithResponse(ctx, "partners", nil, KeyCreate{KeyName: "mobile"}))
	who := "the app"
	done(api.PatchKeyWithResponse(ctx, "partners", "mobile", nil, KeyPatch{KeyDescription: &who}))
	same(got(api.ReadKeyWithResponse(ctx, "partners", "mobile", nil)).JSON200.Data.CoreDbKey[0].KeyDescription, "the app")
}

func proxy(ctx context.Context, api *ClientWithResponses) {
	port, hops, old, tls13, keep := 8444, 1, TLSMinVersionN12, TLSMinVersionN13, EscapedSlashesKeep
	made(api.CreateProxyWithResponse(ctx, nil, ProxyCreate{Name: "gw", HttpsPort: &port, TrustedHops: &hops, TlsMinVersion: &tls13}))
	same(got(api.ReadProxyWithResponse(ctx, "gw", nil)).JSON200.Data.CoreDbProxy[0].TlsMinVersion, tls13)
	done(api.PatchProxyWithResponse(ctx, "gw", nil, ProxyPatch{TlsMinVersion: &old, EscapedSlashes: &keep}))
	gw := got(api.ReadProxyWithResponse(ctx, "gw", nil)).JSON200.Data.CoreDbProxy[0]
	same([]any{gw.HttpsPort, gw.TrustedHops, gw.TlsMinVersion, gw.EscapedSlashes}, []any{8444, 1, old, keep})
	done(api.PutProxyWithResponse(ctx, "gw", nil, ProxyPut{HttpsPort: &port}))
	rates(ctx, api)
}

// rates creates a global config and attaches it to the proxy.
func rates(ctx context.Context, api *ClientWithResponses) {
	unit, count := RateLimitUnit("second"), int64(10)
	rules := []RateLimitRule{{Key: "remote_address", RateLimit: &RateLimit{Unit: &unit, RequestsPerUnit: &count}}}
	made(api.CreateGlobalconfigWithResponse(ctx, nil, GlobalconfigCreate{
		GlobalconfigName: "rates", GlobalconfigType: "globalconfig_ratelimit",
		Config: *union((*GlobalconfigCreate_Config).FromRateLimitConfig, RateLimitConfig{Domain: "shop", Descriptors: &rules}),
	}))
	done(api.PatchGlobalconfigWithResponse(ctx, "rates", nil, GlobalconfigPatch{Tags: tags}))
	read := got(api.ReadGlobalconfigWithResponse(ctx, "rates", nil)).JSON200.Data.CoreDbGlobalconfig[0]
	same([]any{read.Config["domain"], read.Tags}, []any{"shop", Tags{"clients"}})
	made(api.AttachProxyGlobalconfigWithResponse(ctx, "gw", "rates", nil))
}

func service(ctx context.Context, api *ClientWithResponses) {
	redirect, seconds := HTTPS("redirect"), 3600
	made(api.CreateServiceWithResponse(ctx, nil, ServiceCreate{ServiceName: "shop", Fqdn: "shop.example.com", Https: &redirect}))
	done(api.PatchServiceWithResponse(ctx, "shop", nil, ServicePatch{HstsSeconds: &seconds}))
	shop := got(api.ReadServiceWithResponse(ctx, "shop", nil)).JSON200.Data.CoreDbService[0]
	same([]any{shop.Fqdn, shop.Https, shop.HstsSeconds}, []any{"shop.example.com", redirect, 3600})
	made(api.AttachServiceSecretWithResponse(ctx, "shop", "shop-tls", nil))
	made(api.AttachProxyServiceWithResponse(ctx, "gw", "shop", nil))
	made(api.CreateRouteWithResponse(ctx, "shop", nil, RouteCreate{RouteName: "root", RoutePrefix: "/"}))
	segment := RouteConfigMatch("segment")
	done(api.PatchRouteWithResponse(ctx, "shop", "root", nil, RoutePatch{
		RouteConfig: union((*RoutePatch_RouteConfig).FromRouteConfig, RouteConfig{Match: &segment}),
	}))
	same(*got(api.ReadRouteWithResponse(ctx, "shop", "root", nil)).JSON200.Data.CoreDbRoute[0].RouteConfig.Match, segment)
	made(api.AttachRouteUpstreamWithResponse(ctx, "shop", "root", "blue", nil))
}

// filter is an element of filters.json.
type filter struct {
	Type, Schema, On string
	Config           json.RawMessage
}

func filters() (list []filter) {
	if err := json.Unmarshal([]byte(file("filters.json")), &list); err != nil {
		fail("%s", err)
	}
	return list
}

func (f filter) name() string { return strings.ToLower(f.Schema) }

// typed returns a configuration that went through the type T, which must know all of it.
func typed[T any](from func(*FilterCreate_FilterConfig, T) error) func([]byte) *FilterCreate_FilterConfig {
	return func(text []byte) *FilterCreate_FilterConfig {
		var v T
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			fail("%T: %s", v, err)
		}
		return union(from, v)
	}
}

var schemas = map[string]func([]byte) *FilterCreate_FilterConfig{
	"RateLimitFilter":      typed((*FilterCreate_FilterConfig).FromRateLimitFilter),
	"StatedLimit":          typed((*FilterCreate_FilterConfig).FromStatedLimit),
	"OIDCFilter":           typed((*FilterCreate_FilterConfig).FromOIDCFilter),
	"JWTFilter":            typed((*FilterCreate_FilterConfig).FromJWTFilter),
	"APIKeyFilter":         typed((*FilterCreate_FilterConfig).FromAPIKeyFilter),
	"BasicAuthFilter":      typed((*FilterCreate_FilterConfig).FromBasicAuthFilter),
	"AnyOfFilter":          typed((*FilterCreate_FilterConfig).FromAnyOfFilter),
	"ConsumerFilter":       typed((*FilterCreate_FilterConfig).FromConsumerFilter),
	"RBACFilter":           typed((*FilterCreate_FilterConfig).FromRBACFilter),
	"ExtAuthzFilter":       typed((*FilterCreate_FilterConfig).FromExtAuthzFilter),
	"ExtProcFilter":        typed((*FilterCreate_FilterConfig).FromExtProcFilter),
	"HeadersFilter":        typed((*FilterCreate_FilterConfig).FromHeadersFilter),
	"IPAccessFilter":       typed((*FilterCreate_FilterConfig).FromIPAccessFilter),
	"AffinityFilter":       typed((*FilterCreate_FilterConfig).FromAffinityFilter),
	"CanaryFilter":         typed((*FilterCreate_FilterConfig).FromCanaryFilter),
	"MirrorFilter":         typed((*FilterCreate_FilterConfig).FromMirrorFilter),
	"HostRewriteFilter":    typed((*FilterCreate_FilterConfig).FromHostRewriteFilter),
	"CORSFilter":           typed((*FilterCreate_FilterConfig).FromCORSFilter),
	"CSRFFilter":           typed((*FilterCreate_FilterConfig).FromCSRFFilter),
	"RequestIDFilter":      typed((*FilterCreate_FilterConfig).FromRequestIDFilter),
	"TracingFilter":        typed((*FilterCreate_FilterConfig).FromTracingFilter),
	"AccessLogFilter":      typed((*FilterCreate_FilterConfig).FromAccessLogFilter),
	"RedirectFilter":       typed((*FilterCreate_FilterConfig).FromRedirectFilter),
	"DirectResponseFilter": typed((*FilterCreate_FilterConfig).FromDirectResponseFilter),
	"BodyLimitFilter":      typed((*FilterCreate_FilterConfig).FromBodyLimitFilter),
	"CompressFilter":       typed((*FilterCreate_FilterConfig).FromCompressFilter),
	"ErrorPageFilter":      typed((*FilterCreate_FilterConfig).FromErrorPageFilter),
	"FaultFilter":          typed((*FilterCreate_FilterConfig).FromFaultFilter),
	"MaintenanceFilter":    typed((*FilterCreate_FilterConfig).FromMaintenanceFilter),
	"LuaFilter":            typed((*FilterCreate_FilterConfig).FromLuaFilter),
	"GRPCWebFilter":        typed((*FilterCreate_FilterConfig).FromGRPCWebFilter),
	"GRPCJSONFilter":       typed((*FilterCreate_FilterConfig).FromGRPCJSONFilter),
}

// attach creates the filter and a service for it, and attaches both.
func (f filter) attach(ctx context.Context, api *ClientWithResponses) {
	name := f.name()
	config := schemas[f.Schema](f.Config)
	made(api.CreateFilterWithResponse(ctx, nil, FilterCreate{FilterName: name, FilterType: FilterType(f.Type), FilterConfig: config}))
	done(api.PatchFilterWithResponse(ctx, name, nil, FilterPatch{Tags: tags}))
	read := got(api.ReadFilterWithResponse(ctx, name, nil)).JSON200.Data.CoreDbFilter[0]
	var sent map[string]any
	if err := json.Unmarshal(f.Config, &sent); err != nil {
		fail("%s", err)
	}
	same([]any{read.FilterConfig, read.Tags}, []any{sent, Tags{"clients"}})
	made(api.CreateServiceWithResponse(ctx, nil, ServiceCreate{ServiceName: name, Fqdn: fmt.Sprintf("%s.example.com", name)}))
	made(api.CreateRouteWithResponse(ctx, name, nil, RouteCreate{RouteName: "root", RoutePrefix: "/"}))
	made(api.AttachRouteUpstreamWithResponse(ctx, name, "root", "grpc", nil))
	if f.On == "service" {
		made(api.AttachServiceFilterWithResponse(ctx, name, name, nil))
	} else {
		made(api.AttachRouteFilterWithResponse(ctx, name, "root", name, nil))
	}
	made(api.AttachProxyServiceWithResponse(ctx, "gw", name, nil))
}

// detach deletes what attach made.
func (f filter) detach(ctx context.Context, api *ClientWithResponses) {
	name := f.name()
	done(api.DetachProxyServiceWithResponse(ctx, "gw", name, nil))
	if f.On == "service" {
		done(api.DetachServiceFilterWithResponse(ctx, name, name, nil))
	} else {
		done(api.DetachRouteFilterWithResponse(ctx, name, "root", name, nil))
	}
	done(api.DeleteServiceWithResponse(ctx, name, nil))
	done(api.DeleteFilterWithResponse(ctx, name, nil))
}
