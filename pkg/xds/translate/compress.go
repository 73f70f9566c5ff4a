package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	brotliv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/brotli/compressor/v3"
	gzipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/compressor/v3"
	zstdv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/zstd/compressor/v3"
	compressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/compressor/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// CompressFilter begins the names of the filters that compress answers: one for each algorithm, of
// which the client chooses.
const CompressFilter = "envoy.filters.http.compressor"

// compressFilters do nothing without the message of a host or route.
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
		}})
	}
	return list
}
