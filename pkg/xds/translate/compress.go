package translate

import (
	"net/http"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	brotliv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/brotli/compressor/v3"
	gzipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/compressor/v3"
	zstdv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/zstd/compressor/v3"
	compressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/compressor/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// CompressFilter is the prefix of the names of the filters that compress responses. There is one filter for each
// algorithm, and the client chooses.
const CompressFilter = "envoy.filters.http.compressor"

// minCompressed is in bytes. A smaller response fits in one or two packets.
const minCompressed = 1024

// compressedTypes are the media types that are compressed. Types that are already compressed are not among them.
// Neither are event streams (text/event-stream, gRPC): events would wait in the compressor.
func compressedTypes() []string {
	return []string{
		"application/graphql-response+json", "application/javascript", "application/json", "application/ld+json", "application/manifest+json",
		"application/problem+json", "application/vnd.api+json", "application/wasm", "application/x-javascript", "application/xhtml+xml", "application/xml",
		"application/yaml", "font/otf", "font/ttf", "image/bmp", "image/svg+xml", "text/css", "text/csv", "text/html", "text/javascript", "text/markdown",
		"text/plain", "text/xml",
	}
}

// compressFilters do nothing without a host's or route's message. Among algorithms that a client prefers equally,
// br wins, and then the one that the client names first. A route can set neither types nor the minimum size.
func compressFilters(ir.Listener) []filterConfig {
	var m matchers
	var list []filterConfig
	for _, algorithm := range algorithms() {
		list = append(list, filterConfig{name: CompressFilter + "/" + algorithm, config: &compressorv3.Compressor{
			CompressorLibrary: compressor(&m, algorithm, 0),
			// Only for br: if all filters had it, the algorithm that the client names last would win.
			ChooseFirst: algorithm == "br",
			ResponseDirectionConfig: &compressorv3.Compressor_ResponseDirectionConfig{
				CommonConfig: &compressorv3.Compressor_CommonDirectionConfig{
					MinContentLength: u32(minCompressed), ContentType: compressedTypes(), //nolint:staticcheck // Envoy 1.39 does not know what takes its place
				},
				// The ETag does not match the compressed bytes (RFC 9110 section 8.8.3.3), and a range of a
				// compressed response is not a range of the original.
				WeakenEtagOnCompress: true, UncompressibleResponseCodes: []uint32{http.StatusPartialContent},
			},
		}})
	}
	return list
}

func algorithms() []string { return []string{"br", "gzip", "zstd"} }

// compressor returns the library of an algorithm. Level 0 means its default.
func compressor(m *matchers, algorithm string, level int) *corev3.TypedExtensionConfig {
	var library message
	var set *wrapperspb.UInt32Value
	if level > 0 {
		set = u32(level)
	}
	switch algorithm {
	case "br":
		library = &brotliv3.Brotli{Quality: set}
	case "gzip":
		library = &gzipv3.Gzip{CompressionLevel: gzipv3.Gzip_CompressionLevel(level)} //nolint:gosec // bounded
	default:
		library = &zstdv3.Zstd{CompressionLevel: set}
	}
	packed := m.checked("envoy.compression."+algorithm+".compressor", library)
	return &corev3.TypedExtensionConfig{Name: packed.GetName(), TypedConfig: packed.GetTypedConfig()}
}

func compressOfHost(h *ir.Host) ([]filterConfig, error) { return compress(h.Compress) }

func compressOfRoute(r *ir.Route) ([]filterConfig, error) { return compress(r.Compress) }

// compress turns some algorithms on and the others off, since the host may have turned them on. It uses
// FilterConfig to turn one off: a compressor that is off by its own message still takes part in the choice, and
// if it wins, nothing is compressed.
func compress(c *ir.Compress) ([]filterConfig, error) {
	if c == nil {
		return nil, nil
	}
	var m matchers
	var list []filterConfig
	for _, a := range algorithms() {
		var config message = &routev3.FilterConfig{Disabled: true}
		if slices.Contains(c.Algorithms, a) {
			on := &compressorv3.CompressorOverrides{ResponseDirectionConfig: &compressorv3.ResponseDirectionOverrides{}}
			if c.Level > 0 {
				on.CompressorLibrary = compressor(&m, a, c.Level)
			}
			config = &compressorv3.CompressorPerRoute{Override: &compressorv3.CompressorPerRoute_Overrides{Overrides: on}}
		}
		list = append(list, filterConfig{name: CompressFilter + "/" + a, config: config})
	}
	return list, m.err
}
