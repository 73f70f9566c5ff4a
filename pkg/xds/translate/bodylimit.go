package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	gzipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/decompressor/v3"
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	decompressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/decompressor/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// DecompressFilter is the name of the filter that unpacks bodies. BufferFilter, which bounds
// them, counts what comes out of it.
const (
	DecompressFilter = "envoy.filters.http.decompressor/gzip"
	BufferFilter     = "envoy.filters.http.buffer"
)

// decompressFilter unpacks what requests bring, where it is on.
func decompressFilter(ir.Listener) []filterConfig {
	var m matchers
	library := m.checked("envoy.compression.gzip.decompressor", &gzipv3.Gzip{})
	return []filterConfig{{name: DecompressFilter, config: &decompressorv3.Decompressor{
		DecompressorLibrary: &corev3.TypedExtensionConfig{Name: library.GetName(), TypedConfig: library.GetTypedConfig()},
	}}}
}

// bufferFilter lets a byte pass.
func bufferFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: BufferFilter, config: &bufferv3.Buffer{MaxRequestBytes: u32(1)}}}
}
