package model

import "slices"

// CompressFilter compresses answers for clients that accept it: text of at least 1024 bytes, with one of the
// media types in compress.md. A route's filter replaces its service's.
// +page=compress.md
// +example={algorithms: [br, gzip]}
type CompressFilter struct {
	// The algorithms that a client can choose from; absent means all. If a client prefers several equally, br is
	// used, otherwise the first that it names.
	// +minItems=1
	// +items={type: string, enum: [br, gzip, zstd]}
	Algorithms []string `json:"algorithms"`
	// The level of gzip and zstd and the quality of br: 1 is fast, 9 makes answers small. 0 means the algorithm's default.
	// +minimum=0
	// +maximum=maxCompressLevel
	Level int `json:"level,omitempty"`
}

// maxCompressLevel is the highest of gzip. Higher ones of br and zstd take more time than a gateway has.
const maxCompressLevel = 9

// compressAlgorithms are the content codings of compressed answers.
func compressAlgorithms() []string { return []string{"br", "gzip", "zstd"} }

func readCompress(v *validator, at, _ string, config JSON) Spec {
	var f CompressFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	if f.Algorithms != nil && len(f.Algorithms) == 0 {
		v.add(at+".algorithms", "is empty, so nothing would be compressed; name at least one, or omit algorithms for all")
	}
	for i, a := range f.Algorithms {
		v.oneOf(at+".algorithms", a, compressAlgorithms())
		if slices.Contains(f.Algorithms[:i], a) {
			v.add(at+".algorithms", "names %q twice", a)
		}
	}
	v.checkRange(at+".level", f.Level, 0, maxCompressLevel)
	if f.Algorithms == nil {
		f.Algorithms = compressAlgorithms()
	}
	return &f
}

func (f *CompressFilter) uses() []Key { return nil }
