package translate

import (
	"net"
	"strconv"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// RouteConfigName is the name of the one route configuration that all
// listeners of a proxy share.
const RouteConfigName = "gatehouse"

// ListenerName holds the address, so that a change of the address is a new
// listener, which must work before the old one goes.
func ListenerName(l ir.Listener) string {
	scheme := "http-"
	if l.TLS != nil {
		scheme = "https-"
	}
	return scheme + net.JoinHostPort(l.Address, strconv.Itoa(l.Port))
}
