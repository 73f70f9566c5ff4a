package explain

import (
	"fmt"
	"slices"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// RefusedListener is a listener that an Envoy refused.
type RefusedListener struct {
	Name string
	// Text is Envoy's reason.
	Text string
	// Open is the listener that the Envoy still uses: an older version with the
	// same name, or the one that should have been replaced. Empty means none.
	Open string
}

// listenerFor returns the listener at the port of a request or, if the proxy has none there, that of the proxy's own
// port: a load balancer may map it. Nil means none.
func listenerFor(have State, r Request) (*snapshot.Resource, *listenerv3.Listener, error) {
	var found *snapshot.Resource
	var best *listenerv3.Listener
	for _, resource := range have.Listeners {
		l := &listenerv3.Listener{}
		if err := resource.Body.UnmarshalTo(l); err != nil {
			return nil, nil, fmt.Errorf("decoding listener %q: %w", resource.Name, err)
		}
		if !isHTTP(l) || isSecure(l) != r.TLS || isHTTP3(l) {
			continue
		}
		if int(l.GetAddress().GetSocketAddress().GetPortValue()) == r.Port || best == nil && !translate.IsMore(l.GetName()) {
			found, best = resource, l
		}
	}
	return found, best, nil
}

// takeConnection describes which listener accepts the connection in place of a
// refused one. It returns false if there is none.
func (a *Answer) takeConnection(have State, name string) bool {
	at := slices.IndexFunc(have.Refused, func(r RefusedListener) bool { return r.Name == name })
	if at < 0 {
		a.Envoy.Listener = name
		a.step("listener", fmt.Sprintf("listener %s accepts the connection", name))
		return true
	}
	refused := have.Refused[at]
	switch refused.Open {
	case "":
		a.endWith(NoListener, 0, "listener", fmt.Sprintf("Envoy refused listener %s, so nothing accepts the connection: %s", name, refused.Text))
		return false
	case name:
		a.step("listener", fmt.Sprintf("listener %s accepts the connection in an older form, since Envoy refused the newest: %s", name, refused.Text))
	default:
		a.step("listener", fmt.Sprintf("listener %s accepts the connection; Envoy refused %s, which is to replace it: %s", refused.Open, name, refused.Text))
	}
	a.Envoy.Listener = refused.Open
	return true
}
