package model

import "fmt"

// BodyLimitFilter refuses requests whose body is larger, with 413, before an upstream sees anything of
// them. The filter of a route takes the place of the service's. Websockets are refused where it is.
// +page=bodylimit.md
// +example={bytes: 1048576}
type BodyLimitFilter struct {
	// The most bytes that a body may have. An Envoy holds a whole body before it sends it on.
	// +required
	// +minimum=1
	// +maximum=maxBodyLimit
	Bytes int `json:"bytes"`
	// Unpacks a body with Content-Encoding gzip, counts what comes out, and sends that on.
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
		list = append(list, fmt.Sprintf("limits bodies to %d bytes over HTTP/1.1 only: over HTTP/2, Envoy does not count a body of one frame, which has up to %d", f.Bytes, oneFrame))
	}
	if f.Bytes > manyBytes {
		list = append(list, fmt.Sprintf("lets bodies of %d bytes pass, and an Envoy holds each whole body in memory until it is complete: "+
			"let larger uploads go to storage of their own", f.Bytes))
	}
	if f.Decompress {
		list = append(list, "unpacks gzip: of a body that is damaged, or made of several gzip members, the upstream gets what could be unpacked, and nobody is told")
	}
	return list
}
