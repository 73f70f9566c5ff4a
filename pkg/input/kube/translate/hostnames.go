package translate

import (
	"fmt"
	"strings"
)

// HostNames are the host names that the GatewayHosts of a namespace may have, by namespace: a name, a wildcard such
// as *.example.com for each name and wildcard below it, or * for all. Those of the namespace "*" are for the
// namespaces that are not named. Nil allows every host name in every namespace.
type HostNames map[string][]string

// of returns what is allowed in a namespace.
func (h HostNames) of(namespace string) []string {
	if list, named := h[namespace]; named {
		return list
	}
	return h["*"]
}

// allow reports whether a GatewayHost of a namespace may have an fqdn.
func (h HostNames) allow(namespace, fqdn string) bool {
	if h == nil {
		return true
	}
	fqdn = strings.ToLower(fqdn)
	for _, pattern := range h.of(namespace) {
		suffix, wild := strings.CutPrefix(strings.ToLower(pattern), "*")
		// The wildcard *.example.com is below itself, but example.com is not.
		if fqdn == suffix && !wild || wild && len(fqdn) > len(suffix) && strings.HasSuffix(fqdn, suffix) {
			return true
		}
	}
	return false
}

// refusal says why an fqdn is not allowed. It does not name what other namespaces may have.
func (h HostNames) refusal(namespace, fqdn string) string {
	allowed := "no host name"
	if list := h.of(namespace); len(list) > 0 {
		allowed = strings.Join(list, ", ")
	}
	return fmt.Sprintf("namespace %s may not have the host %s; it may have %s: change the host, "+
		"or ask whoever runs the gateway to allow it", namespace, fqdn, allowed)
}
