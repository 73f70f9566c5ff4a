package grpc

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/grpcjson"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	transcoder                       = "envoy.filters.http.grpc_json_transcoder"
	jsonKey    seam.Key[*Transcoder] = "grpcJSON"
)

// Transcoder translates JSON requests into calls of gRPC services.
type Transcoder struct {
	// DescriptorSet is a serialized FileDescriptorSet. Each file comes after those that it imports.
	DescriptorSet []byte   `json:"descriptorSet"`
	Services      []string `json:"services"`
	AutoMapping   bool     `json:"autoMapping,omitempty"`
	// PassUnknownPaths forwards requests unchanged if no rule matches them.
	PassUnknownPaths bool `json:"passUnknownPaths,omitempty"`
	// IgnoreUnknownParameters ignores query parameters that are not fields. IgnoredParameters are always ignored.
	IgnoreUnknownParameters bool     `json:"ignoreUnknownParameters,omitempty"`
	IgnoredParameters       []string `json:"ignoredParameters,omitempty"`
	// ConvertStatus gives errors a body.
	ConvertStatus bool `json:"convertStatus,omitempty"`
	// The other fields set how messages are written, and how large they may be.
	Whitespace       bool `json:"whitespace,omitempty"`
	Zeros            bool `json:"zeros,omitempty"`
	EnumNumbers      bool `json:"enumNumbers,omitempty"`
	ProtoNames       bool `json:"protoNames,omitempty"`
	Lines            bool `json:"lines,omitempty"`
	MaxRequestBytes  int  `json:"maxRequestBytes"`
	MaxResponseBytes int  `json:"maxResponseBytes"`
}

// JSON returns the filter that translates JSON.
func JSON() seam.Filter {
	config := seam.LastOf(addJSON, nil)
	config.Conflict, config.MaxRoutes = rewritten, maxRoutes
	return seam.Filter{
		Type: model.FilterGRPCJSON, Config: config,
		Name: transcoder, Listener: noService, Disabled: true, Route: messages,
		Refuses: map[string]string{"grpc_json_": model.FilterGRPCJSON, "early_grpc_json_": model.FilterGRPCJSON},
		Refuse:  refuse, Describe: describeJSON, Change: changeJSON,
	}
}

// addJSON checks the descriptor set on every route. It skips routes that answer themselves, and routes that change the
// path, because they would change the path of the call.
func addJSON(r *ir.Route, f *model.GRPCJSONFilter, _ seam.Place) error {
	calls, err := grpcjson.Read(f.Set(), grpcjson.Options{
		Services: f.Services, AutoMapping: f.AutoMapping, ConvertStatus: f.Converts(),
	})
	if err != nil || r.Forward == nil || readsPath(r.Forward) {
		return err
	}
	r.Before = append(r.Before, refuseEscapedNames(r))
	jsonKey.Forward(r, &Transcoder{
		DescriptorSet: calls.Set, Services: f.Services, AutoMapping: f.AutoMapping, ConvertStatus: f.Converts(),
		PassUnknownPaths:        f.UnknownPaths == model.GRPCJSONPass,
		IgnoreUnknownParameters: f.UnknownParameters == model.GRPCJSONIgnore,
		IgnoredParameters:       slices.Concat(f.IgnoredParameters, calls.Ignored),
		Whitespace:              f.Print.Whitespace, Zeros: f.Print.Zeros, EnumNumbers: f.Print.EnumNumbers,
		ProtoNames: f.Print.ProtoNames, Lines: f.Print.Lines,
		MaxRequestBytes: f.MaxRequestBytes, MaxResponseBytes: f.MaxResponseBytes,
	})
	return nil
}

// maxDescriptorSets bounds the descriptor sets of a service-wide filter, in bytes: every route has a copy.
const maxDescriptorSets = 16 << 20

func maxRoutes(f *model.ParsedFilter) (most int, wrong string) {
	spec, is := f.Spec.(*model.GRPCJSONFilter)
	if !is || len(spec.Set()) == 0 {
		return 0, ""
	}
	most = maxDescriptorSets / len(spec.Set())
	return most, fmt.Sprintf("has filter %s, whose descriptor set is copied into every route: at most %d routes may have "+
		"one of this size (attach the filter to the routes that take its calls, or make the set smaller),", f.Name, most)
}

// escapedName matches paths with an escaped name of a query parameter.
const escapedName = `[^?]*\?(?:.*&)?[^=&]*%[^=&]*=.*`

// refuseEscapedNames returns a route that comes before a route with calls. Envoy compares ignored query parameters with
// the raw text and unescapes them afterwards.
func refuseEscapedNames(r *ir.Route) *ir.Route {
	m := r.Match
	m.Headers = append(slices.Clone(m.Headers), ir.ValueMatch{Name: ":path", Regex: escapedName})
	refused := &ir.Respond{Status: http.StatusBadRequest, Body: "the name of a query parameter is escaped\n"}
	return &ir.Route{Name: r.Name, Match: m, Respond: refused}
}

// readsPath reports whether the router changes the path, or derives the Host from it.
func readsPath(f *ir.Forward) bool {
	return f.Rewrite != (ir.Rewrite{Host: f.Rewrite.Host}) || f.HostRewrite != nil && f.HostRewrite.Regex != ""
}

// rewritten returns the conflict if a route is configured both to translate requests into calls and to rewrite their
// paths.
func rewritten(t *model.RouteTree) string {
	if w := t.Route.Config.Rewrite; w == nil || *w == (model.Rewrite{Host: w.Host}) {
		return ""
	}
	for _, f := range t.Filters {
		if f.Type == model.FilterGRPCJSON {
			return fmt.Sprintf("has filter %s, a http_filter_grpcjson, and rewrites paths in its Route_config, which would "+
				"change the path of the call (write the paths that clients send into the http rules),", f.Name)
		}
	}
	return ""
}

// noService knows no service without a route's message.
func noService(ir.Listener) []seam.Message {
	return []seam.Message{{Name: transcoder, Config: &transcoderv3.GrpcJsonTranscoder{
		DescriptorSet: &transcoderv3.GrpcJsonTranscoder_ProtoDescriptorBin{},
	}}}
}

// messages keep the route of the request's own path. If Envoy chose a route again by the path of the call, a client
// could reach a route with stricter access.
func messages(r *ir.Route) ([]seam.Message, error) {
	t := jsonKey.OfForward(r)
	if t == nil {
		return nil, nil
	}
	set := &transcoderv3.GrpcJsonTranscoder_ProtoDescriptorBin{ProtoDescriptorBin: t.DescriptorSet}
	return []seam.Message{{Name: transcoder, Config: &transcoderv3.GrpcJsonTranscoder{
		DescriptorSet:                set,
		Services:                     t.Services,
		MatchIncomingRequestRoute:    true,
		AutoMapping:                  t.AutoMapping,
		ConvertGrpcStatus:            t.ConvertStatus,
		IgnoredQueryParameters:       t.IgnoredParameters,
		IgnoreUnknownQueryParameters: t.IgnoreUnknownParameters,
		RequestValidationOptions: &transcoderv3.GrpcJsonTranscoder_RequestValidationOptions{
			RejectUnknownMethod: !t.PassUnknownPaths, RejectUnknownQueryParameters: !t.IgnoreUnknownParameters,
			// Otherwise the body could contradict the path, which other filters have already checked.
			RejectBindingBodyFieldCollisions: true,
		},
		PrintOptions: &transcoderv3.GrpcJsonTranscoder_PrintOptions{
			AddWhitespace: t.Whitespace, AlwaysPrintPrimitiveFields: t.Zeros, AlwaysPrintEnumsAsInts: t.EnumNumbers,
			PreserveProtoFieldNames: t.ProtoNames, StreamNewlineDelimited: t.Lines,
		},
		MaxRequestBodySize:  wrapperspb.UInt32(uint32(t.MaxRequestBytes)),  //nolint:gosec // bounded by validation
		MaxResponseBodySize: wrapperspb.UInt32(uint32(t.MaxResponseBytes)), //nolint:gosec // bounded by validation
	}}}, nil
}

// callOf returns the path of the call into which the filter translates a request, or why it refuses the request
// (JsonTranscoderFilter::decodeHeaders). Both are empty for a request that it leaves unchanged.
func callOf(r seam.Request) (call string, refused *grpcjson.Refusal, err error) {
	if seam.IsGRPC(r.Header(mimeType)) {
		return "", nil, nil
	}
	m, err := seam.MessageOf(transcoder, r, &transcoderv3.GrpcJsonTranscoder{})
	if err != nil || len(m.GetServices()) == 0 {
		return "", nil, err
	}
	calls, err := grpcjson.Read(m.GetProtoDescriptorBin(), grpcjson.Options{
		Services: m.GetServices(), AutoMapping: m.GetAutoMapping(), ConvertStatus: m.GetConvertGrpcStatus(),
		Ignored: m.GetIgnoredQueryParameters(), IgnoreUnknown: m.GetIgnoreUnknownQueryParameters(),
	})
	if err != nil {
		return "", nil, fmt.Errorf("explaining route %q: %w", r.Route.GetName(), err)
	}
	call, refused = calls.Find(r.Header(seam.Method), r.Path, strings.TrimPrefix(r.Query, "?"))
	passes := !m.GetRequestValidationOptions().GetRejectUnknownMethod()
	if refused != nil && refused.Status == http.StatusNotFound && passes {
		return "", nil, nil
	}
	return call, refused, nil
}

func refuse(r seam.Request) (*seam.Refusal, error) {
	_, refused, err := callOf(r)
	if refused == nil || err != nil {
		return nil, err
	}
	out := &seam.Refusal{
		Code: "unknown_call", Status: refused.Status,
		Message: "an http_filter_grpcjson cannot convert the request to a call: " + refused.Message,
	}
	if refused.Status == http.StatusNotFound {
		out.Body = "Could not resolve " + r.Path + " to a method."
	}
	return out, nil
}

func describeJSON(r seam.Request) (string, error) {
	call, refused, err := callOf(r)
	switch {
	case refused != nil:
		return fmt.Sprintf("refuses the request with %d: %s", refused.Status, refused.Message), err
	case call != "":
		return "converts the request to the call " + call + ", and the answer to JSON", err
	}
	return "leaves the request as it is: it is gRPC, or no http rule matches it", err
}

func changeJSON(r seam.Request) (seam.Request, error) {
	call, _, err := callOf(r)
	if call != "" {
		r.Headers = maps.Clone(r.Headers)
		r.Headers[seam.Method] = []string{http.MethodPost}
		r.Path, r.Query = call, ""
	}
	return r, err
}
