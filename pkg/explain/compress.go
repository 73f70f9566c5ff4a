package explain

import "strings"

// compressFilter is the prefix of the filters that compress responses. A slash and the
// algorithm follow.
const compressFilter = "envoy.filters.http.compressor"

func (f *Filter) describeCompress(p passed) error {
	algorithm := strings.TrimPrefix(f.Name, compressFilter+"/")
	f.Message = "compresses the answer with " + algorithm + ", if the client prefers it and the answer is a text of at least 1024 bytes"
	if p.request.headers.get("accept-encoding") == "" {
		f.Message = "leaves the answer as it is: the request has no Accept-Encoding"
	}
	return nil
}
