package explain

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	transcoderv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/grpc_json_transcoder/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/grpcjson"
)

// grpcWebFilter translates gRPC-Web into gRPC. grpcJSONFilter translates JSON into gRPC.
const (
	grpcWebFilter  = "envoy.filters.http.grpc_web"
	grpcJSONFilter = "envoy.filters.http.grpc_json_transcoder"
)

// isGRPCWeb reports whether Envoy treats a request as gRPC-Web (GrpcWebFilter::isGrpcWebRequest).
func isGRPCWeb(s subject) bool {
	return slices.Contains([]string{"application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text", "application/grpc-web-text+proto"},
		s.headers.get("content-type"))
}

func (f *Filter) describeGRPCWeb(p passed) error {
	f.Message = "leaves the request as it is: its Content-Type is not one of gRPC-Web"
	if isGRPCWeb(p.request) {
		f.Message = "converts the request to gRPC, and the answer to gRPC-Web"
	}
	return nil
}

// callOf returns the path of the call into which http_filter_grpcjson translates a request, or why it refuses the
// request (JsonTranscoderFilter::decodeHeaders). Both are empty for a request that it leaves unchanged.
func callOf(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (call string, refused *grpcjson.Refusal, err error) {
	f := findFilter(l, grpcJSONFilter)
	if f == nil || isOff(f, vh, r) || isGRPC(s.headers.get("content-type")) {
		return "", nil, nil
	}
	if web := findFilter(l, grpcWebFilter); web != nil && !isOff(web, vh, r) && isGRPCWeb(s) {
		return "", nil, nil
	}
	m, err := messageFor(grpcJSONFilter, vh, r, &transcoderv3.GrpcJsonTranscoder{})
	if err != nil || len(m.GetServices()) == 0 {
		return "", nil, err
	}
	calls, err := grpcjson.Read(m.GetProtoDescriptorBin(), grpcjson.Options{
		Services: m.GetServices(), AutoMapping: m.GetAutoMapping(), ConvertStatus: m.GetConvertGrpcStatus(),
		Ignored: m.GetIgnoredQueryParameters(), IgnoreUnknown: m.GetIgnoreUnknownQueryParameters(),
	})
	if err != nil {
		return "", nil, fmt.Errorf("explaining route %q: %w", r.GetName(), err)
	}
	call, refused = calls.Find(s.headers.get(":method"), s.path, strings.TrimPrefix(s.query, "?"))
	if refused != nil && refused.Status == http.StatusNotFound && !m.GetRequestValidationOptions().GetRejectUnknownMethod() {
		return "", nil, nil
	}
	return call, refused, nil
}

func (f *Filter) describeGRPCJSON(p passed) error {
	call, refused, err := callOf(p.request, p.l, p.vh, p.route)
	switch {
	case refused != nil:
		f.Message = fmt.Sprintf("refuses the request with %d: %s", refused.Status, refused.Message)
	case call != "":
		f.Message = "converts the request to the call " + call + ", and the answer to JSON"
	default:
		f.Message = "leaves the request as it is: it is gRPC, or no http rule matches it"
	}
	return err
}

// passTranscoder returns the request as a call if http_filter_grpcjson translates it. If the filter refuses the
// request, it ends with the answer.
func (a *Answer) passTranscoder(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (subject, bool, error) {
	call, refused, err := callOf(s, l, vh, r)
	switch {
	case err != nil:
		return s, false, err
	case refused != nil:
		a.endWith(UnknownCall, refused.Status, "refused", "an http_filter_grpcjson converts the request to no call: "+refused.Message)
		if refused.Status == http.StatusNotFound {
			a.Body = "Could not resolve " + s.path + " to a method."
		}
		return s, false, nil
	case call != "":
		s.headers = maps.Clone(s.headers)
		s.headers[":method"] = []string{http.MethodPost}
		s.path, s.query = call, ""
	}
	return s, true, nil
}
