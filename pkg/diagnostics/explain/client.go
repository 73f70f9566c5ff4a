package explain

import (
	"fmt"
	"net/netip"
	"strings"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

const forwardedFor = "x-forwarded-for"

// findClient returns the address that Envoy uses as the client's. Behind
// trusted hops, it is the one that the first of them added, if there is one
// (ConnectionManagerUtility::mutateRequestHeaders).
func (a *Answer) findClient(r Request, h headers, l *hcmv3.HttpConnectionManager) string {
	hops := int(l.GetXffNumTrustedHops())
	if hops == 0 {
		return r.client()
	}
	client, ok := forwardedAddress(h.get(forwardedFor), hops)
	if !ok {
		a.step("client", fmt.Sprintf("X-Forwarded-For has no address %d from the right, so the client is %s, the address of the connection", hops, r.client()))
		return r.client()
	}
	a.step("client", fmt.Sprintf("the client is %s, which is %d from the right in X-Forwarded-For", client, hops))
	return client
}

// forwardedAddress returns the nth address from the right
// (Utility::getLastAddressFromXFF).
func forwardedAddress(list string, n int) (string, bool) {
	for range n - 1 {
		i := strings.LastIndexByte(list, ',')
		if i < 0 {
			return "", false
		}
		list = list[:i]
	}
	if i := strings.LastIndexByte(list, ','); i >= 0 {
		list = list[i+1:]
	}
	addr, err := netip.ParseAddr(strings.Trim(list, " \t"))
	if err != nil {
		return "", false
	}
	return addr.String(), true
}
