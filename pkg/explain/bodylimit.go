package explain

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// bufferFilter bounds bodies. decompressFilter decompresses them first.
const (
	decompressFilter = "envoy.filters.http.decompressor/gzip"
	bufferFilter     = "envoy.filters.http.buffer"
)

// passBodyLimit reports whether a body with the length of Content-Length is allowed. If not, it ends with the
// answer.
func (a *Answer) passBodyLimit(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	f := findFilter(l, bufferFilter)
	if f == nil || isOff(f, vh, r) {
		return true, nil
	}
	limit, err := messageFor(bufferFilter, vh, r, &bufferv3.BufferPerRoute{})
	if err != nil {
		return false, err
	}
	if unpack := findFilter(l, decompressFilter); unpack != nil && !isOff(unpack, vh, r) && isGzip(s) {
		return true, nil // the decompressed length is unknown
	}
	length, err := strconv.ParseUint(s.headers.get("content-length"), 10, 64)
	if most := uint64(limit.GetBuffer().GetMaxRequestBytes().GetValue()); err == nil && length > most {
		return false, a.endReplied(l, "request_payload_too_large", reply{http.StatusRequestEntityTooLarge, "Payload Too Large"}, BodyTooLarge, fmt.Sprintf(
			"the body has %d bytes, and a route_filter_bodylimit allows %d", length, most))
	}
	return true, nil
}

// isGzip reports whether Envoy treats the body as gzip. Envoy looks at the first coding.
func isGzip(s subject) bool {
	first, _, _ := strings.Cut(s.headers.get("content-encoding"), ",")
	return strings.EqualFold(strings.TrimSpace(first), "gzip")
}

func (f *Filter) describeBodyLimit(p passed) error {
	limit, err := messageFor(bufferFilter, p.vh, p.route, &bufferv3.BufferPerRoute{})
	f.Message = fmt.Sprintf("answers 413 to a body of more than %d bytes, and holds other bodies until they are complete", limit.GetBuffer().GetMaxRequestBytes().GetValue())
	return err
}

func (f *Filter) describeDecompress(p passed) error {
	f.Message = "leaves the body as it is: it has no Content-Encoding that begins with gzip"
	if isGzip(p.request) {
		f.Message = "decompresses the body from gzip, before the limit counts its bytes"
	}
	return nil
}
