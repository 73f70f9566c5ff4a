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
	for _, c := range []struct {
		algorithm string
		library   message
	}{{"br", &brotliv3.Brotli{}}, {"gzip", &gzipv3.Gzip{}}, {"zstd", &zstdv3.Zstd{}}} {
		packed := m.checked("envoy.compression."+c.algorithm+".compressor", c.library)
		list = append(list, filterConfig{name: CompressFilter + "/" + c.algorithm, config: &compressorv3.Compressor{
			CompressorLibrary: &corev3.TypedExtensionConfig{Name: packed.GetName(), TypedConfig: packed.GetTypedConfig()},
			// Only for br: if all filters had it, the algorithm that the client names last would win.
			ChooseFirst: c.algorithm == "br",
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

func compressOfHost(h *ir.Host) ([]filterConfig, error) { return compress(h.Compress), nil }

func compressOfRoute(r *ir.Route) ([]filterConfig, error) { return compress(r.Compress), nil }

// compress turns some algorithms on and the others off, since the host may have turned them on. It uses
// FilterConfig to turn one off: a compressor that is off by its own message still takes part in the choice, and
// if it wins, nothing is compressed.
func compress(c *ir.Compress) []filterConfig {
	if c == nil {
		return nil
	}
	var list []filterConfig
	for _, a := range []string{"br", "gzip", "zstd"} {
		var config message = &routev3.FilterConfig{Disabled: true}
		if slices.Contains(c.Algorithms, a) {
			config = &compressorv3.CompressorPerRoute{Override: &compressorv3.CompressorPerRoute_Overrides{Overrides: &compressorv3.CompressorOverrides{
				ResponseDirectionConfig: &compressorv3.ResponseDirectionOverrides{},
			}}}
		}
		list = append(list, filterConfig{name: CompressFilter + "/" + a, config: config})
	}
	return list
}
