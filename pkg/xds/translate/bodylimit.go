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

// DecompressFilter is the name of the filter that unpacks bodies. BufferFilter, which bounds
// them, counts what comes out of it.
const (
	DecompressFilter = "envoy.filters.http.decompressor/gzip"
	BufferFilter     = "envoy.filters.http.buffer"
)

// mostInflated is the most that a byte of gzip can become. With less, Envoy would cut what is packed well
// and send that on as if it were all.
const mostInflated = 1032

// decompressFilter unpacks what requests bring, where it is on, and leaves answers alone.
func decompressFilter(ir.Listener) []filterConfig {
	var m matchers
	library := m.checked("envoy.compression.gzip.decompressor", &gzipv3.Gzip{MaxInflateRatio: u32(mostInflated)})
	never := &corev3.RuntimeFeatureFlag{DefaultValue: wrapperspb.Bool(false), RuntimeKey: "gatehouse.decompress_answers"}
	return []filterConfig{{name: DecompressFilter, config: &decompressorv3.Decompressor{
		DecompressorLibrary: &corev3.TypedExtensionConfig{Name: library.GetName(), TypedConfig: library.GetTypedConfig()},
		RequestDirectionConfig: &decompressorv3.Decompressor_RequestDirectionConfig{
			// A client must not choose what is counted, with Cache-Control: no-transform.
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

// bufferFilter lets a byte pass.
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
