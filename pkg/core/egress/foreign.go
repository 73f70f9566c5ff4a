package egress

import (
	"strings"
)

// DefaultClusterDomain is the domain of the names in a Kubernetes cluster, unless it was installed with another.
const DefaultClusterDomain = "cluster.local"

// Foreign are the rules for addresses that the tenants of a cluster write, who must not reach with the gateway what
// they cannot reach themselves. A nil Foreign refuses nothing.
type Foreign struct {
	// Allow has addresses and names that the operator allows all the same.
	Allow []Entry
	// Machine is the machine that the program runs on. OwnAddresses returns where it listens; nil means nowhere.
	Machine      Machine
	OwnAddresses func() []OwnAddress
	// ClusterDomain is the domain of the cluster's names; empty means the default.
	ClusterDomain string
}

// Endpoint says why an endpoint must not have an address; "" if it may. The text follows the address in a sentence.
func (f *Foreign) Endpoint(address string, port int) string {
	if f != nil && strings.HasPrefix(address, socketPrefix) {
		return "is a Unix socket"
	}
	if f == nil || Contains(f.Allow, address) {
		return ""
	}
	for _, addr := range KnownAddrs(address) {
		if what := Special(addr); what != "" {
			return "is " + what
		}
	}
	if f.OwnAddresses != nil {
		if p := f.Machine.Find(f.OwnAddresses(), address, port); p != nil {
			return "is that of " + p.What
		}
	}
	return ""
}

// Name does the same for an address that must be a DNS name outside the cluster: an IP address, or a name in the
// cluster, would go round the rules for references between namespaces.
func (f *Foreign) Name(address string, port int) string {
	if f == nil || Contains(f.Allow, address) {
		return ""
	}
	if why := f.Endpoint(address, port); why != "" {
		return why
	}
	name := normalize(address)
	switch {
	case len(KnownAddrs(address)) > 0:
		return "is an IP address, which may belong to another namespace: use a host name, or a Service with an EndpointSlice"
	case !strings.Contains(name, "."):
		return "is not a complete host name"
	case inCluster(name, f.ClusterDomain):
		return "is a name in the cluster: use the Service itself"
	case isMetadataName(name):
		return "is the name of a cloud's metadata service"
	}
	return ""
}

// ServiceOf returns the namespace and name of the Service that a DNS name in the cluster means, such as
// web.shop.svc.cluster.local.
func ServiceOf(address, clusterDomain string) (namespace, name string, ok bool) {
	service, found := strings.CutSuffix(withoutDomain(normalize(address), clusterDomain), ".svc")
	name, namespace, ok = strings.Cut(service, ".")
	return namespace, name, ok && found && !strings.Contains(namespace, ".")
}

func inCluster(name, domain string) bool {
	short := withoutDomain(name, domain)
	return short != name || strings.HasSuffix(short, ".svc") || strings.HasSuffix(short, ".pod")
}

// withoutDomain returns a normalized name without the cluster's domain.
func withoutDomain(name, domain string) string {
	if short, ok := strings.CutSuffix(name, "."+DefaultClusterDomain); ok || domain == "" {
		return short
	}
	return strings.TrimSuffix(name, "."+normalize(domain))
}

// isMetadataName reports whether a name is one under which Google's or Amazon's clouds serve metadata.
func isMetadataName(name string) bool {
	return name == "metadata.google.internal" || strings.HasSuffix(name, ".metadata.google.internal") ||
		strings.HasPrefix(name, "instance-data.") && strings.HasSuffix(name, ".internal")
}

// ClusterDomainOf returns the domain of the cluster from the text of a Pod's /etc/resolv.conf, whose search list has
// svc.DOMAIN; empty if it has none.
func ClusterDomainOf(resolvConf string) string {
	for line := range strings.Lines(resolvConf) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "search" {
			continue
		}
		for _, entry := range fields[1:] {
			if domain, ok := strings.CutPrefix(normalize(entry), "svc."); ok {
				return domain
			}
		}
	}
	return ""
}
