package explain

import (
	"fmt"
	"strings"

	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
)

// authzSpoofFilter removes headers that only an authorization server may set.
const authzSpoofFilter = spoofFilter + "/authz"

func (f *Filter) describeAuthzSpoofed(p passed) error {
	removed, err := requestChanges(f.Name, p)
	f.Message = "removes headers that clients may not set where an authorization server is called: " + strings.Join(removed, ", ")
	return err
}

// describeExtAuthz describes which server is asked. Its answer is unknown: an explanation
// calls no server.
func (f *Filter) describeExtAuthz(p passed) error {
	message, err := messageFor(f.Name, p.vh, p.route, &extauthzv3.ExtAuthzPerRoute{})
	if err != nil {
		return err
	}
	settings := message.GetCheckSettings()
	by := httpCheck(settings.GetHttpService(), p)
	if g := settings.GetGrpcService(); g != nil {
		by = fmt.Sprintf("calls cluster %s by gRPC, for at most %s", g.GetEnvoyGrpc().GetClusterName(), g.GetTimeout().AsDuration())
	}
	away := "503"
	if strings.HasSuffix(f.Name, "/allow") {
		away = "it allows the request"
	}
	f.Message = fmt.Sprintf("%s, and returns its answer unless it allows the request; %s if it is unavailable", by, away)
	if b := settings.GetWithRequestBody(); b != nil {
		f.Message += fmt.Sprintf("; 413 for a body over %d bytes", b.GetMaxRequestBytes())
	}
	return nil
}

func httpCheck(s *extauthzv3.HttpService, p passed) string {
	path := s.GetPathOverride()
	if path == "" {
		path = s.GetPathPrefix() + p.request.path
	}
	return fmt.Sprintf("calls cluster %s for %s %s, for at most %s", s.GetServerUri().GetCluster(), p.request.headers.get(":method"), path, s.GetServerUri().GetTimeout().AsDuration())
}
