package explain

import (
	"fmt"
	"strings"

	extprocv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_proc/v3"
)

// describeExtProc describes what the processor receives. Its answer is unknown: an explanation
// calls no server.
func (f *Filter) describeExtProc(p passed) error {
	message, err := messageFor(f.Name, p.vh, p.route, &extprocv3.ExtProcPerRoute{})
	if err != nil {
		return err
	}
	o := message.GetOverrides()
	m := o.GetProcessingMode()
	var parts []string
	for _, part := range []struct {
		what string
		sent bool
	}{
		{"the headers of the request", m.GetRequestHeaderMode() == extprocv3.ProcessingMode_SEND},
		{"the body of the request", m.GetRequestBodyMode() != extprocv3.ProcessingMode_NONE},
		{"the headers of the answer", m.GetResponseHeaderMode() == extprocv3.ProcessingMode_SEND},
		{"the body of the answer", m.GetResponseBodyMode() != extprocv3.ProcessingMode_NONE},
	} {
		if part.sent {
			parts = append(parts, part.what)
		}
	}
	away := "503"
	if o.GetFailureModeAllow().GetValue() {
		away = "they pass unchanged"
	}
	f.Message = fmt.Sprintf("sends cluster %s %s, which may change them or answer itself; %s if it is unavailable",
		o.GetGrpcService().GetEnvoyGrpc().GetClusterName(), strings.Join(parts, ", "), away)
	return nil
}
