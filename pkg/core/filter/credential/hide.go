package credential

import (
	_ "embed"
	"maps"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// This file keeps API keys and tokens from backends. A script removes those in the query: Envoy's own removal decodes
// all other parameters, where a space would end the request line, and "%26" would begin another parameter.

const (
	// hideKeyFilter is the name of the filter that removes a key from headers. It has its own row, since a
	// route may keep what its host removes.
	hideKeyFilter = "envoy.filters.http.header_mutation/key"
	// hideFilter is the name of the filter that removes credentials from the query and from cookies.
	hideFilter = seam.LuaFilter + "/hide"
)

//go:embed hide.lua
var hideScript string

// keepsKey reports whether a route passes on a key that it reads.
func (d demands) keepsKey() bool { return d.allKeys() != nil && d.allKeys().Forward }

// hideKey removes a key from the headers that the filter reads.
func hideKey(d demands) []seam.Message {
	a := d.allKeys()
	if a == nil || a.Forward {
		return nil
	}
	return seam.RequestMutations(hideKeyFilter, seam.RemoveHeaders(namesIn(a.From, headerOf)...))
}

func headerOf(s model.KeySource) string { return s.Header }
func queryOf(s model.KeySource) string  { return s.Query }
func cookieOf(s model.KeySource) string { return s.Cookie }

// namesIn returns the names of places of one kind.
func namesIn(from []model.KeySource, nameOf func(model.KeySource) string) (names []string) {
	for _, s := range from {
		if name := nameOf(s); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// hider is the script, which no configuration changes. The route of a request stays the one whose filters it has passed.
func hider(ir.Listener) []seam.Message {
	return []seam.Message{{Name: hideFilter, Config: &luav3.Lua{
		DefaultSourceCode: seam.Inline(hideScript), ClearRouteCache: wrapperspb.Bool(false),
	}}}
}

func hide(d demands) []seam.Message {
	for _, names := range d.hidden() {
		if names != "" {
			return []seam.Message{{Name: hideFilter, Config: &routev3.FilterConfig{Config: &anypb.Any{}}}}
		}
	}
	return nil
}

// hidden returns the names of query parameters and cookies to remove, by what they are. An empty text is for what is
// passed on.
func (d demands) hidden() map[string]string {
	out := map[string]string{}
	add := func(kind string, forward bool, names ...string) {
		if text := strings.Join(names, " "); text != "" {
			out[kind] = text
			if forward {
				out[kind] = ""
			}
		}
	}
	if a := d.allKeys(); a != nil {
		add("key_query", a.Forward, namesIn(a.From, queryOf)...)
		add("key_cookie", a.Forward, namesIn(a.From, cookieOf)...)
	}
	if t := d.allTokens(); t != nil {
		add("token_query", t.Check.Forward, t.Check.Query)
		add("token_cookie", t.Check.Forward, t.Check.Cookie)
	}
	return out
}

func hideOfHost(h *ir.Host, out *routev3.VirtualHost) error {
	out.Metadata = hiding(out.GetMetadata(), ofHost(h).hidden())
	return nil
}

func hideOfRoute(r *ir.Route, out *routev3.Route) error {
	out.Metadata = hiding(out.GetMetadata(), ofRoute(r).hidden())
	return nil
}

// hiding returns metadata that also has the names to remove.
func hiding(m *corev3.Metadata, names map[string]string) *corev3.Metadata {
	if len(names) == 0 {
		return m
	}
	fields := map[string]*structpb.Value{}
	for kind, text := range names {
		fields[kind] = structpb.NewStringValue(text)
	}
	all := map[string]*structpb.Struct{hideFilter: {Fields: fields}}
	maps.Copy(all, m.GetFilterMetadata())
	return &corev3.Metadata{FilterMetadata: all, TypedFilterMetadata: m.GetTypedFilterMetadata()}
}

func describeKeyRemoved(seam.Request) (string, error) {
	return "removes the API key from the headers of the request to the backend", nil
}

func describeHidden(seam.Request) (string, error) {
	return "removes credentials from the query and the cookies of the request to the backend", nil
}
