package translate

import (
	"net"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// RouteConfigName is the name of the only route configuration of a proxy. All
// its listeners share it.
const RouteConfigName = "gatehouse"

// more is in the name of a listener at one more port.
const more = "more-"

// IsMore reports whether the name of a listener is that of one at one more port.
func IsMore(listener string) bool { return strings.Contains(listener, "-"+more) }

// ListenerName contains the address, so that a change of the address makes a
// new listener, which must work before the old one is removed.
func ListenerName(l ir.Listener) string {
	scheme := "http-"
	switch {
	case l.HTTP3:
		scheme = "http3-"
	case l.TLS != nil:
		scheme = "https-"
	}
	if l.More {
		scheme += more
	}
	return scheme + net.JoinHostPort(l.Address, strconv.Itoa(l.Port))
}
