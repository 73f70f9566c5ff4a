// Package bodylimit is route_filter_bodylimit: it refuses requests whose body is too large.
package bodylimit

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	gzipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/decompressor/v3"
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	decompressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/decompressor/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// name is the filter that bounds bodies. decompressor decompresses them before.
	name         = "envoy.filters.http.buffer"
	decompressor = "envoy.filters.http.decompressor/gzip"
	// details are Envoy's for a refusal.
	details                  = "request_payload_too_large"
	key     seam.Key[*Limit] = "bodyLimit"
)

const refused = "the body of the request is larger than is allowed here\n"

// mostInflated is the largest number of bytes that one byte of gzip can become. With a lower bound, Envoy would cut a
// well-compressed body and forward the rest as if it were all.
const mostInflated = 1032

// Limit refuses requests with a larger body.
type Limit struct {
	Bytes int `json:"bytes"`
	// Decompress decompresses bodies before they are counted.
	Decompress bool `json:"decompress,omitempty"`
}

// Filter returns the filter that bounds bodies.
func Filter() seam.Filter {
	config := seam.LastOf(add, finish)
	config.Conflict = waits
	return seam.Filter{
		Type: model.FilterBodyLimit, Config: config,
		Name: name, Listener: oneByte, Disabled: true, Route: seam.OfRoute(key, messages),
		Refuses: map[string]string{details: model.FilterBodyLimit},
		Replies: seam.ReplyTo(http.StatusRequestEntityTooLarge, details, http.StatusRequestEntityTooLarge, refused),
		Refuse:  refuse, Describe: describe,
	}
}

// Decompressor returns the filter that decompresses bodies, so that Filter counts what was decompressed.
func Decompressor() seam.Filter {
	return seam.Filter{
		Name: decompressor, Listener: requests, Disabled: true, Route: seam.OfRoute(key, decompress),
		Describe: describeDecompressor,
	}
}

// add bounds bodies, and refuses websockets on the route: Envoy would wait for the end of a body that has none.
func add(r *ir.Route, f *model.BodyLimitFilter, _ seam.Place) error {
	r.Filters = key.In(r.Filters, &Limit{Bytes: f.Bytes, Decompress: f.Decompress})
	if r.Forward != nil {
		r.Forward.NoUpgrade = true
	}
	return nil
}

// waits returns the conflict if a route is configured both to limit bodies and to accept websockets.
func waits(t *model.RouteTree) string {
	if w := t.Route.Config.Websocket; w == nil || !*w {
		return ""
	}
	for _, f := range t.Filters {
		if f.Type == model.FilterBodyLimit {
			return fmt.Sprintf("has filter %s, a body limit, and websocket in its Route_config, "+
				"whose requests would wait forever for the end of a body,", f.Name)
		}
	}
	return ""
}

// finish adds the route that refuses bodies by their Content-Length. Over HTTP/2, Envoy does not count a body that
// arrives in one piece. The length of a packed body does not matter if it is unpacked.
func finish(r *ir.Route, _ *model.BodyLimitFilter, _ seam.Place) error {
	limit := key.Of(r.Filters)
	longer := r.Answering(&ir.Respond{Status: http.StatusRequestEntityTooLarge, Body: refused})
	longer.Match.Headers = append(slices.Clone(r.Match.Headers), ir.ValueMatch{Name: "content-length", Above: limit.Bytes})
	if limit.Decompress {
		longer.Match.Headers = append(longer.Match.Headers, ir.ValueMatch{Name: "content-encoding", Invert: true})
	}
	r.Before = append([]*ir.Route{longer}, r.Before...)
	return nil
}

// oneByte allows a body of one byte.
func oneByte(ir.Listener) []seam.Message {
	return []seam.Message{{Name: name, Config: &bufferv3.Buffer{MaxRequestBytes: wrapperspb.UInt32(1)}}}
}

func messages(l *Limit) ([]seam.Message, error) {
	most := wrapperspb.UInt32(uint32(l.Bytes)) //nolint:gosec // bounded by validation
	return []seam.Message{{Name: name, Config: &bufferv3.BufferPerRoute{Override: &bufferv3.BufferPerRoute_Buffer{
		Buffer: &bufferv3.Buffer{MaxRequestBytes: most},
	}}}}, nil
}

// requests decompresses the bodies of requests, and no responses.
func requests(ir.Listener) []seam.Message {
	library, _ := seam.Pack(&gzipv3.Gzip{MaxInflateRatio: wrapperspb.UInt32(mostInflated)}) // Envoy's rules refuse a nil
	never := &corev3.RuntimeFeatureFlag{DefaultValue: wrapperspb.Bool(false), RuntimeKey: "gatehouse.decompress_answers"}
	return []seam.Message{{Name: decompressor, Config: &decompressorv3.Decompressor{
		DecompressorLibrary: &corev3.TypedExtensionConfig{Name: "envoy.compression.gzip.decompressor", TypedConfig: library},
		RequestDirectionConfig: &decompressorv3.Decompressor_RequestDirectionConfig{
			// A client must not turn decompression off with Cache-Control: no-transform.
			CommonConfig:            &decompressorv3.Decompressor_CommonDirectionConfig{IgnoreNoTransformHeader: true},
			AdvertiseAcceptEncoding: wrapperspb.Bool(false),
		},
		ResponseDirectionConfig: &decompressorv3.Decompressor_ResponseDirectionConfig{
			CommonConfig: &decompressorv3.Decompressor_CommonDirectionConfig{Enabled: never},
		},
	}}}
}

func decompress(l *Limit) ([]seam.Message, error) {
	if !l.Decompress {
		return nil, nil
	}
	return []seam.Message{{Name: decompressor, Config: &routev3.FilterConfig{Config: &anypb.Any{}}}}, nil
}

// refuse refuses a request with a larger Content-Length.
func refuse(r seam.Request) (*seam.Refusal, error) {
	limit, err := limitOf(r)
	if err != nil {
		return nil, err
	}
	unpacks := !seam.IsOff(&hcmv3.HttpFilter{Name: decompressor, Disabled: true}, r.VirtualHost, r.Route)
	length, err := strconv.ParseUint(r.Header("content-length"), 10, 64)
	if err != nil || length <= uint64(limit) || unpacks && isGzip(r) { // nobody knows the length of what is unpacked
		return nil, nil //nolint:nilerr // a body of unknown length
	}
	return &seam.Refusal{
		Code:    "body_too_large",
		Message: fmt.Sprintf("the body has %d bytes, and a route_filter_bodylimit allows %d", length, limit),
		Details: details, Status: http.StatusRequestEntityTooLarge, Body: "Payload Too Large",
	}, nil
}

func limitOf(r seam.Request) (uint32, error) {
	m, err := seam.MessageOf(name, r, &bufferv3.BufferPerRoute{})
	return m.GetBuffer().GetMaxRequestBytes().GetValue(), err
}

// isGzip reports whether Envoy treats the body as gzip. Envoy looks at the first coding.
func isGzip(r seam.Request) bool {
	first, _, _ := strings.Cut(r.Header("content-encoding"), ",")
	return strings.EqualFold(strings.TrimSpace(first), "gzip")
}

func describe(r seam.Request) (string, error) {
	limit, err := limitOf(r)
	return fmt.Sprintf("answers 413 to a body of more than %d bytes, "+
		"and holds other bodies until they are complete", limit), err
}

func describeDecompressor(r seam.Request) (string, error) {
	if isGzip(r) {
		return "decompresses the body from gzip, before the limit counts its bytes", nil
	}
	return "leaves the body as it is: it has no Content-Encoding that begins with gzip", nil
}
