package translate

import (
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	gzipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/decompressor/v3"
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	decompressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/decompressor/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// DecompressFilter is the name of the filter that decompresses bodies. BufferFilter is the name of the
// filter that bounds them; it counts decompressed bytes.
const (
	DecompressFilter = "envoy.filters.http.decompressor/gzip"
	BufferFilter     = "envoy.filters.http.buffer"
)

// mostInflated is the largest number of bytes that one byte of gzip can become. With a lower bound, Envoy
// would cut a well-compressed body and forward the rest as if it were all.
const mostInflated = 1032

// decompressFilter decompresses request bodies where it is enabled, and no responses.
func decompressFilter(ir.Listener) []filterConfig {
	var m matchers
	library := m.checked("envoy.compression.gzip.decompressor", &gzipv3.Gzip{MaxInflateRatio: u32(mostInflated)})
	never := &corev3.RuntimeFeatureFlag{DefaultValue: wrapperspb.Bool(false), RuntimeKey: "gatehouse.decompress_answers"}
	return []filterConfig{{name: DecompressFilter, config: &decompressorv3.Decompressor{
		DecompressorLibrary: &corev3.TypedExtensionConfig{Name: library.GetName(), TypedConfig: library.GetTypedConfig()},
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

func decompressOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.BodyLimit == nil || !r.BodyLimit.Decompress {
		return nil, nil
	}
	return []filterConfig{{name: DecompressFilter, config: &routev3.FilterConfig{Config: &anypb.Any{}}}}, nil
}

// bufferFilter allows a body of one byte.
func bufferFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: BufferFilter, config: &bufferv3.Buffer{MaxRequestBytes: u32(1)}}}
}

func bufferOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.BodyLimit == nil {
		return nil, nil
	}
	return []filterConfig{{name: BufferFilter, config: &bufferv3.BufferPerRoute{Override: &bufferv3.BufferPerRoute_Buffer{
		Buffer: &bufferv3.Buffer{MaxRequestBytes: u32(r.BodyLimit.Bytes)},
	}}}}, nil
}

func bufferReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	filter, err := celFilter(details + " == 'request_payload_too_large'")
	return []*hcmv3.ResponseMapper{{
		Filter: filter, StatusCode: u32(http.StatusRequestEntityTooLarge), Body: inline("the body of the request is larger than is allowed here\n"),
	}}, err
}
