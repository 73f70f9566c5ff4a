package model

import "fmt"

// BodyLimitFilter answers 413 to requests with a larger body, before an upstream receives any part of
// them. A route's filter replaces its service's. It refuses websockets.
// +page=bodylimit.md
// +example={bytes: 1048576}
type BodyLimitFilter struct {
	// The maximum size of a body, in bytes. An Envoy buffers the whole body before it forwards the request.
	// +required
	// +minimum=1
	// +maximum=maxBodyLimit
	Bytes int `json:"bytes"`
	// Decompresses a body with Content-Encoding gzip, counts the result, and forwards it.
	Decompress bool `json:"decompress"`
}

const (
	// maxBodyLimit is in bytes: each request may make an Envoy hold as much.
	maxBodyLimit = 104857600
	// manyBytes are worth a thought of Envoy's memory.
	manyBytes = 10 << 20
	// oneFrame is the most that a frame of HTTP/2 has (RFC 9113 section 4.2). Envoy's buffer does not see a body of
	// which the first frame is the last.
	oneFrame = 16384
)

func readBodyLimit(v *validator, at, _ string, config JSON) Spec {
	var f BodyLimitFilter
	if v.decode(at, config, &f) {
		v.checkRange(at+".bytes", f.Bytes, 1, maxBodyLimit)
	}
	return &f
}

func (f *BodyLimitFilter) uses() []Key { return nil }

// Advice says what the filter costs, and does not do.
func (f *BodyLimitFilter) Advice() []string {
	var list []string
	if f.Bytes < oneFrame {
		list = append(list, fmt.Sprintf("limits bodies to %d bytes only over HTTP/1.1 or with a Content-Length: "+
			"over HTTP/2, Envoy does not count a body without one that fits in one frame, of up to %d bytes", f.Bytes, oneFrame))
	}
	if f.Bytes > manyBytes {
		list = append(list, fmt.Sprintf("allows bodies of %d bytes, "+
			"and an Envoy holds each whole body in memory until it is complete: "+
			"send larger uploads to separate storage", f.Bytes))
	}
	if f.Decompress {
		list = append(list, "decompresses gzip: of a body that is damaged or has several gzip members, "+
			"the upstream receives only what could be decompressed, without an error")
	}
	return list
}
