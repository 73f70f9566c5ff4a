package egress_test

import (
	"net/netip"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
)

func TestEgress(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "egress")
}

func entries(texts ...string) []egress.Entry {
	GinkgoHelper()
	var list []egress.Entry
	for _, text := range texts {
		e, err := egress.ParseEntry(text)
		Expect(err).NotTo(HaveOccurred())
		list = append(list, e)
	}
	return list
}

var _ = Describe("Lists", func() {
	lists := func() egress.Lists {
		return egress.Lists{
			Allow: entries("10.0.0.0/8", "127.0.0.0/8", "2001:db8::/32", "192.0.2.1", "api.example.com", "*.shop.example"),
			Deny:  entries("10.9.0.0/16", "127.0.0.7", "secret.shop.example", "*.deep.shop.example"),
		}
	}

	DescribeTable("specify which upstreams are allowed",
		func(address, refusal string) { Expect(lists().Refusal(address)).To(Equal(refusal)) },
		Entry("a network", "10.1.2.3", ""),
		Entry("an address", "192.0.2.1", ""),
		Entry("IPv4 as IPv6", "::ffff:10.1.2.3", ""),
		Entry("a name", "api.example.com", ""),
		Entry("a name with a final dot, in upper case", "API.example.com.", ""),
		Entry("a name below", "a.b.shop.example", ""),
		Entry("localhost", "localhost", ""),
		Entry("denied", "10.9.1.1", "its address 10.9.1.1 is in 10.9.0.0/16, which --upstream-deny names"),
		Entry("denied as IPv6", "::ffff:10.9.1.1", "its address ::ffff:10.9.1.1 is in 10.9.0.0/16, which --upstream-deny names"),
		Entry("denied in hexadecimal", "0x0a090101", "its address 0x0a090101 is in 10.9.0.0/16, which --upstream-deny names"),
		Entry("denied in octal", "012.0x9.0401", "its address 012.0x9.0401 is in 10.9.0.0/16, which --upstream-deny names"),
		Entry("denied by name", "Secret.shop.example.", "its address Secret.shop.example. is in secret.shop.example, which --upstream-deny names"),
		Entry("denied below a name", "x.deep.shop.example", "its address x.deep.shop.example is in *.deep.shop.example, which --upstream-deny names"),
		Entry("not named", "192.0.2.2", "its address 192.0.2.2 is in nothing that --upstream-allow names"),
		Entry("the name itself, which is not below it", "shop.example", "its address shop.example is in nothing that --upstream-allow names"),
		Entry("a name with the same ending", "evilshop.example", "its address evilshop.example is in nothing that --upstream-allow names"),
		Entry("a name, which no network rule can match", "other.example", "its address other.example is in nothing that --upstream-allow names"),
	)

	DescribeTable("allow a Unix socket only directly in a directory of their own", func(address string, allowed bool) {
		refusal := egress.Lists{Sockets: []string{"/run/app"}}.Refusal(address)
		if allowed {
			Expect(refusal).To(BeEmpty())
		} else {
			Expect(refusal).To(Equal("its address " + address + " is not in a directory that --upstream-sockets names"))
		}
	},
		Entry("in it", "unix:/run/app/app.sock", true),
		Entry("below", "unix:/run/app/more/app.sock", false),
		Entry("elsewhere", "unix:/run/envoy/admin.sock", false),
		Entry("with the same beginning", "unix:/run/app2/app.sock", false),
		Entry("by a way out", "unix:/run/app/../envoy/admin.sock", false),
		Entry("by a way out and back", "unix:/run/app/x/../app.sock", false),
		Entry("a name without a file", "unix:@app", false),
		Entry("relative", "unix:app.sock", false),
	)

	It("allow no Unix socket by default, whatever addresses they allow, and none that tenants of a cluster write", func() {
		Expect(egress.Lists{}.Refusal("unix:/run/app/app.sock")).NotTo(BeEmpty())
		Expect(egress.Lists{Allow: entries("*.sock", "app.sock")}.Refusal("unix:/run/app/app.sock")).NotTo(BeEmpty())
		Expect((&egress.Foreign{}).Name("unix:/run/app/app.sock", 1)).To(Equal("is a Unix socket"))
		Expect(egress.Lists{Deny: entries("10.0.0.0/8")}.MayResolveToDenied("unix:/run/app/app.sock")).To(BeFalse())
	})

	It("treat 0.0.0.0 as the loopback, where a connection to it ends up", func() {
		for _, address := range []string{"0.0.0.0", "::", "localhost", "x.localhost", "127.1.2.3", "0x7f.1", "ip6-loopback", "LOCALHOST."} {
			Expect(egress.Lists{Deny: entries("127.0.0.0/8", "::1")}.Refusal(address)).NotTo(BeEmpty(), address)
		}
	})

	It("allow everything if they are empty", func() {
		Expect(egress.Lists{}.Refusal("127.0.0.1")).To(BeEmpty())
		Expect(egress.Lists{}.MayResolveToDenied("any.example")).To(BeFalse())
	})

	It("report that a name may resolve to a denied address", func() {
		l := lists()
		Expect(l.MayResolveToDenied("other.example")).To(BeTrue())
		Expect(l.MayResolveToDenied("api.example.com")).To(BeFalse(), "which is allowed by name")
		Expect(l.MayResolveToDenied("10.0.0.1")).To(BeFalse())
		Expect(l.MayResolveToDenied("localhost")).To(BeFalse())
		Expect(egress.Lists{Deny: entries("a.example")}.MayResolveToDenied("other.example")).To(BeFalse())
	})

	DescribeTable("refuse an invalid entry",
		func(text string) {
			_, err := egress.ParseEntry(text)
			Expect(err).To(HaveOccurred())
		},
		Entry("nothing", ""), Entry("a star", "*"), Entry("host bits", "10.0.0.1/8"), Entry("a mistyped address", "10.0.0.256"), Entry("a short address", "10.1"),
		Entry("a port", "10.0.0.1:80"), Entry("a URL", "http://a.example"), Entry("a star within", "a.*.example"), Entry("a long prefix", "10.0.0.0/33"),
		Entry("an IPv4 network as IPv6", "::ffff:10.0.0.0/104"), Entry("an empty label", "a..example"), Entry("a zone", "fe80::1%eth0"),
	)
})

var _ = Describe("A machine", func() {
	at := netip.MustParseAddrPort
	m := egress.Machine{Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("2001:db8::7")}, Names: []string{"gw7.example"}}
	places := []egress.OwnAddress{
		{What: "api", Addr: at("127.0.0.1:1323")}, {What: "xds", Addr: at("0.0.0.0:18000")}, {What: "web", Addr: at("192.0.2.7:80")}, {What: "six", Addr: at("[::]:443")},
	}

	DescribeTable("recognizes itself",
		func(address string, port int, what string) {
			p := m.Find(places, address, port)
			if what == "" {
				Expect(p).To(BeNil())
				return
			}
			Expect(p).NotTo(BeNil())
			Expect(p.What).To(Equal(what))
		},
		Entry(nil, "127.0.0.1", 1323, "api"), Entry(nil, "127.9.9.9", 1323, "api"), Entry(nil, "localhost", 1323, "api"), Entry(nil, "::1", 1323, "api"),
		Entry(nil, "0.0.0.0", 1323, "api"), Entry(nil, "::", 1323, "api"), Entry(nil, "::ffff:127.0.0.1", 1323, "api"), Entry(nil, "gw7.example", 1323, "api"),
		Entry("not at another address", "192.0.2.7", 1323, ""), Entry("not at another port", "127.0.0.1", 1324, ""), Entry("not elsewhere", "192.0.2.8", 1323, ""),
		Entry("everywhere", "192.0.2.7", 18000, "xds"), Entry(nil, "2001:db8::7", 18000, "xds"), Entry(nil, "127.0.0.1", 18000, "xds"), Entry(nil, "192.0.2.8", 18000, ""),
		Entry("at one address", "192.0.2.7", 80, "web"), Entry("not on its loopback", "127.0.0.1", 80, ""), Entry(nil, "GW7.example.", 80, "web"),
		Entry(nil, "192.0.2.7", 443, "six"), Entry("a name that does not resolve", "other.example", 443, ""),
	)
})

var _ = DescribeTable("A special address cannot be an external service's",
	func(address, what string) { Expect(egress.Special(netip.MustParseAddr(address))).To(Equal(what)) },
	Entry(nil, "127.0.0.1", "a loopback address"), Entry(nil, "127.255.0.1", "a loopback address"), Entry(nil, "::1", "a loopback address"),
	Entry(nil, "::ffff:127.0.0.1", "a loopback address"), Entry("NAT64", "64:ff9b::7f00:1", "a loopback address"), Entry("6to4", "2002:7f00:1::", "a loopback address"),
	Entry("IPv4-compatible", "::7f00:1", "a loopback address"), Entry("NAT64 of another", "64:ff9b::c000:201", ""),
	Entry(nil, "0.0.0.0", "an unspecified address"), Entry(nil, "0.1.2.3", "an unspecified address"), Entry(nil, "::", "an unspecified address"),
	Entry(nil, "169.254.169.254", "a link-local address"), Entry(nil, "fe80::1%eth0", "a link-local address"), Entry(nil, "::ffff:169.254.169.254", "a link-local address"),
	Entry(nil, "224.0.0.1", "a multicast or reserved address"), Entry(nil, "ff02::1", "a multicast or reserved address"),
	Entry(nil, "255.255.255.255", "a multicast or reserved address"), Entry(nil, "240.0.0.1", "a multicast or reserved address"),
	Entry("Amazon's", "fd00:ec2::254", "the address of a cloud's metadata service"), Entry("Alibaba's", "100.100.100.200", "the address of a cloud's metadata service"),
	Entry("Azure's", "168.63.129.16", "the address of a cloud's metadata service"),
	Entry("Google's", "fd20:ce::254", "the address of a cloud's metadata service"), Entry("Scaleway's", "fd00:42::42", "the address of a cloud's metadata service"),
	Entry("Oracle's", "192.0.0.192", "the address of a cloud's metadata service"), Entry("Oracle's over IPv6", "fd00:c1::a9fe:a9fe", "the address of a cloud's metadata service"),
	Entry("Amazon's for Pods", "fd00:ec2::23", "the address of a cloud's metadata service"), Entry("translated", "64:ff9b::a83f:8110", "the address of a cloud's metadata service"),
	Entry("a site's NAT64", "64:ff9b:1::7f00:1", "an address that a gateway translates into another"),
	Entry("Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "an address that a gateway translates into another"),
	Entry("SIIT", "::ffff:0:127.0.0.1", "a loopback address"), Entry("site-local", "fec0::1", "a link-local address"),
	Entry("of IETF protocols", "192.0.0.8", "a multicast or reserved address"),
	Entry(nil, "2001:4860:4860::8888", ""), Entry(nil, "fd00:42::43", ""), Entry(nil, "100.64.0.1", ""),
	Entry(nil, "10.0.0.1", ""), Entry(nil, "192.168.1.1", ""), Entry(nil, "8.8.8.8", ""), Entry(nil, "2001:db8::1", ""), Entry(nil, "fd00::1", ""),
)

var _ = Describe("The addresses that tenants write", func() {
	f := &egress.Foreign{
		Allow:   entries("127.0.0.9", "db.internal.svc"),
		Machine: egress.Machine{Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.7")}},
		OwnAddresses: func() []egress.OwnAddress {
			return []egress.OwnAddress{{What: "the API", Addr: netip.MustParseAddrPort("0.0.0.0:1323")}}
		},
	}
	const (
		isAddress = "is an IP address, which may belong to another namespace: use a host name, or a Service with an EndpointSlice"
		isCluster = "is a name in the cluster: use the Service itself"
	)
	DescribeTable("are names outside the cluster",
		func(address, refusal string) { Expect(f.Name(address, 80)).To(Equal(refusal)) },
		Entry(nil, "api.example.com", ""), Entry(nil, "api.example.com.", ""), Entry(nil, "svc.example.com", ""), Entry(nil, "web.shop.svc.example.com", ""),
		Entry(nil, "localhost", "is a loopback address"), Entry(nil, "x.LOCALHOST.", "is a loopback address"), Entry(nil, "127.1", "is a loopback address"),
		Entry(nil, "2130706433", "is a loopback address"), Entry(nil, "169.254.169.254", "is a link-local address"), Entry(nil, "0xa9fea9fe", "is a link-local address"),
		Entry(nil, "10.0.0.1", isAddress), Entry(nil, "0x0a000001", isAddress), Entry(nil, "web", "is not a complete host name"), Entry(nil, "web.", "is not a complete host name"),
		Entry(nil, "web.shop.svc", isCluster), Entry(nil, "web.shop.svc.cluster.local", isCluster), Entry(nil, "WEB.shop.svc.Cluster.Local.", isCluster),
		Entry(nil, "pod.web.shop.svc.cluster.local", isCluster), Entry(nil, "169-254-169-254.shop.pod.cluster.local", isCluster), Entry(nil, "10-0-0-1.shop.pod", isCluster),
		Entry(nil, "node.cluster.local", isCluster),
		Entry(nil, "metadata.google.internal", "is the name of a cloud's metadata service"), Entry(nil, "instance-data.ec2.internal.", "is the name of a cloud's metadata service"),
		Entry("allowed address", "127.0.0.9", ""), Entry("allowed name", "db.internal.svc", ""),
	)
	DescribeTable("are endpoints of others",
		func(address string, port int, refusal string) { Expect(f.Endpoint(address, port)).To(Equal(refusal)) },
		Entry(nil, "10.0.0.1", 1323, ""), Entry(nil, "192.0.2.7", 80, ""), Entry(nil, "192.0.2.7", 1323, "is that of the API"),
		Entry(nil, "::ffff:192.0.2.7", 1323, "is that of the API"), Entry(nil, "100.100.100.200", 80, "is the address of a cloud's metadata service"),
		Entry(nil, "64:ff9b::7f00:1", 80, "is a loopback address"), Entry("allowed", "127.0.0.9", 1323, ""),
	)
	It("are not judged without rules", func() {
		var none *egress.Foreign
		Expect(none.Name("localhost", 80)).To(BeEmpty())
		Expect(none.Endpoint("127.0.0.1", 80)).To(BeEmpty())
	})
	It("are in the domain of the cluster", func() {
		own := &egress.Foreign{ClusterDomain: "corp.example"}
		Expect(own.Name("web.shop.svc.corp.example", 80)).To(Equal(isCluster))
		Expect(own.Name("web.shop.svc.cluster.local", 80)).To(Equal(isCluster))
		Expect(own.Name("web.example", 80)).To(BeEmpty())
	})
	DescribeTable("may be those of a Service",
		func(address, domain, want string) {
			namespace, name, ok := egress.ServiceOf(address, domain)
			Expect(ok).To(Equal(want != ""))
			if ok {
				Expect(namespace + "/" + name).To(Equal(want))
			}
		},
		Entry(nil, "web.shop.svc.cluster.local", "", "shop/web"), Entry(nil, "web.shop.svc", "", "shop/web"), Entry(nil, "Web.shop.SVC.", "", "shop/web"),
		Entry(nil, "web.shop.svc.corp.example", "corp.example", "shop/web"), Entry(nil, "web.shop.svc.corp.example", "", ""),
		Entry(nil, "pod.web.shop.svc", "", ""), Entry(nil, "web.shop", "", ""), Entry(nil, "svc", "", ""), Entry(nil, "web.svc", "", ""), Entry(nil, "web.shop.pod.cluster.local", "", ""),
	)
	DescribeTable("are in a domain that Pods know",
		func(text, domain string) { Expect(egress.ClusterDomainOf(text)).To(Equal(domain)) },
		Entry(nil, "nameserver 10.96.0.10\nsearch shop.svc.corp.example svc.corp.example corp.example\noptions ndots:5\n", "corp.example"),
		Entry(nil, "search example.com\n", ""), Entry(nil, "", ""), Entry(nil, "search\n", ""),
	)
})
