// Package compress is route_filter_compress: it compresses responses with what the client chooses.
package compress

import (
	"net/http"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	brotliv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/brotli/compressor/v3"
	gzipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/gzip/compressor/v3"
	zstdv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/compression/zstd/compressor/v3"
	compressorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/compressor/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	// name is the prefix of the names of the filters. There is one filter for each algorithm, and the client chooses.
	name                        = "envoy.filters.http.compressor"
	key  seam.Key[*Compression] = "compress"
)

// Compression sets how responses may be compressed.
type Compression struct {
	// Algorithms are the content codings that a client may choose from.
	Algorithms []string `json:"algorithms"`
	// Level is from 1 (fastest) to 9 (smallest); 0 means the algorithm's default.
	Level int `json:"level,omitempty"`
}

// Filter returns the filters. A route's configuration replaces its service's.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterCompress, Config: seam.Adds(key, replace),
		Name: name, Several: true, Listener: compressors, Disabled: true,
		Host: seam.OfHost(key, messages), Route: seam.OfRoute(key, messages), Describe: describe,
	}
}

func replace(_ *Compression, f *model.CompressFilter, _ seam.Place) (*Compression, error) {
	return &Compression{Algorithms: f.Algorithms, Level: f.Level}, nil
}

// minCompressed is in bytes. A smaller response fits in one or two packets.
const minCompressed = 1024

// compressedTypes are the media types that are compressed. Types that are already compressed are not among them.
// Neither are event streams (text/event-stream, gRPC): events would wait in the compressor.
func compressedTypes() []string {
	return []string{
		"application/graphql-response+json", "application/javascript", "application/json", "application/ld+json",
		"application/manifest+json", "application/problem+json", "application/vnd.api+json", "application/wasm",
		"application/x-javascript", "application/xhtml+xml", "application/xml", "application/yaml", "font/otf",
		"font/ttf", "image/bmp", "image/svg+xml", "text/css", "text/csv", "text/html", "text/javascript",
		"text/markdown", "text/plain", "text/xml",
	}
}

// compressors do nothing without a host's or route's message. Among algorithms that a client prefers equally,
// br wins, and then the one that the client names first. A route can set neither types nor the minimum size.
func compressors(ir.Listener) []seam.Message {
	var list []seam.Message
	for _, algorithm := range algorithms() {
		library, _ := compressor(algorithm, 0) // a library without a level is always valid
		list = append(list, seam.Message{Name: name + "/" + algorithm, Config: &compressorv3.Compressor{
			CompressorLibrary: library,
			// Only for br: if all filters had it, the algorithm that the client names last would win.
			ChooseFirst: algorithm == "br",
			ResponseDirectionConfig: &compressorv3.Compressor_ResponseDirectionConfig{
				CommonConfig: &compressorv3.Compressor_CommonDirectionConfig{
					MinContentLength: wrapperspb.UInt32(minCompressed),
					ContentType:      compressedTypes(), //nolint:staticcheck // Envoy 1.39 does not know what takes its place
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
func compressor(algorithm string, level int) (*corev3.TypedExtensionConfig, error) {
	var library seam.Proto
	var set *wrapperspb.UInt32Value
	if level > 0 {
		set = wrapperspb.UInt32(uint32(level)) //nolint:gosec // at most 9
	}
	switch algorithm {
	case "br":
		library = &brotliv3.Brotli{Quality: set}
	case "gzip":
		library = &gzipv3.Gzip{CompressionLevel: gzipv3.Gzip_CompressionLevel(level)} //nolint:gosec // bounded
	default:
		library = &zstdv3.Zstd{CompressionLevel: set}
	}
	packed, err := seam.Pack(library)
	return &corev3.TypedExtensionConfig{Name: "envoy.compression." + algorithm + ".compressor", TypedConfig: packed}, err
}

// messages turn some algorithms on and the others off, since the host may have turned them on. It uses
// FilterConfig to turn one off: a compressor that is off by its own message still takes part in the choice, and
// if it wins, nothing is compressed.
func messages(c *Compression) ([]seam.Message, error) {
	var list []seam.Message
	for _, a := range algorithms() {
		var config seam.Proto = &routev3.FilterConfig{Disabled: true}
		if slices.Contains(c.Algorithms, a) {
			on := &compressorv3.CompressorOverrides{ResponseDirectionConfig: &compressorv3.ResponseDirectionOverrides{}}
			if c.Level > 0 {
				library, err := compressor(a, c.Level)
				if err != nil {
					return nil, err
				}
				on.CompressorLibrary = library
			}
			config = &compressorv3.CompressorPerRoute{Override: &compressorv3.CompressorPerRoute_Overrides{Overrides: on}}
		}
		list = append(list, seam.Message{Name: name + "/" + a, Config: config})
	}
	return list, nil
}

func describe(r seam.Request) (string, error) {
	if r.Header("accept-encoding") == "" {
		return "leaves the answer as it is: the request has no Accept-Encoding", nil
	}
	algorithm := strings.TrimPrefix(r.On.GetName(), name+"/")
	return "compresses the answer with " + algorithm +
		", if the client prefers it and the answer is a text of at least 1024 bytes", nil
}
