package addresslist_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"testing"

	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	lua "github.com/yuin/gopher-lua"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/addresslist"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

func TestAddressList(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "addresslist")
}

// test/policies shows what Envoy does with the lists.
var _ = Describe("The lookup of addresses in lists", func() {
	list := func(name string, ranges ...string) ir.AddressList {
		l := ir.AddressList{Name: name}
		for _, r := range ranges {
			l.Ranges = append(l.Ranges, netip.MustParsePrefix(r))
		}
		return l
	}
	configOf := func(lists ...ir.AddressList) *luav3.Lua {
		GinkgoHelper()
		e, err := addresslist.Extension(lists)
		Expect(err).NotTo(HaveOccurred())
		var config luav3.Lua
		Expect(e.GetTypedConfig().UnmarshalTo(&config)).To(Succeed())
		return &config
	}
	// run runs the script for requests of clients as Envoy writes their addresses, and returns what it notes of each.
	run := func(config *luav3.Lua, wanted string, clients ...string) (notes []map[string]string) {
		GinkgoHelper()
		vm := lua.NewState()
		defer vm.Close()
		Expect(vm.DoString(config.GetDefaultSourceCode().GetInlineString())).To(Succeed())
		method := func(of *lua.LTable, name string, returns func(*lua.LState) lua.LValue) {
			of.RawSetString(name, vm.NewFunction(func(l *lua.LState) int { l.Push(returns(l)); return 1 }))
		}
		for _, client := range clients {
			noted := map[string]string{}
			handle, info, metadata, context := vm.NewTable(), vm.NewTable(), vm.NewTable(), vm.NewTable()
			method(handle, "streamInfo", func(*lua.LState) lua.LValue { return info })
			method(handle, "filterContext", func(*lua.LState) lua.LValue { return context })
			method(context, "get", func(*lua.LState) lua.LValue { return lua.LString(wanted) })
			method(info, "downstreamRemoteAddress", func(*lua.LState) lua.LValue { return lua.LString(client) })
			method(info, "dynamicMetadata", func(*lua.LState) lua.LValue { return metadata })
			method(metadata, "set", func(l *lua.LState) lua.LValue {
				Expect(l.CheckString(2)).To(Equal("gatehouse.addresses"))
				noted[l.CheckString(3)] = l.CheckString(4)
				return lua.LNil
			})
			Expect(vm.CallByParam(lua.P{Fn: vm.GetGlobal("envoy_on_request"), Protect: true}, handle)).To(Succeed())
			notes = append(notes, noted)
		}
		return notes
	}

	DescribeTable("reads addresses in each form", func(client, says string) {
		lists := configOf(list("l", "0.0.0.0/32", "192.0.2.0/25", "255.255.255.255/32", "::/128", "2001:db8::/33", "fe80::1/128", "ffff::/16"))
		notes := map[string]map[string]string{"in": {"l": "in"}, "out": {"l": "out"}, "nothing": {}}
		Expect(run(lists, "l other", client)).To(ConsistOf(notes[says]))
	},
		Entry(nil, "192.0.2.0:1", "in"), Entry(nil, "192.0.2.127:65535", "in"), Entry(nil, "192.0.2.128:1", "out"),
		Entry(nil, "192.0.1.255:1", "out"), Entry(nil, "0.0.0.0:0", "in"), Entry(nil, "255.255.255.255:0", "in"),
		Entry("IPv4 in IPv6", "[::ffff:192.0.2.7]:1", "in"), Entry("other IPv4 in IPv6", "[::ffff:192.0.2.200]:1", "out"),
		Entry("IPv4 in IPv6, in digits", "[::ffff:c000:207]:1", "in"), Entry("an old form of it", "[::192.0.2.7]:1", "out"),
		Entry(nil, "[::]:1", "in"), Entry(nil, "[::1]:1", "out"), Entry(nil, "[2001:db8::]:1", "in"),
		Entry(nil, "[2001:db8:7fff:ffff:ffff:ffff:ffff:ffff]:1", "in"), Entry(nil, "[2001:db8:8000::]:1", "out"),
		Entry("capitals", "[2001:DB8::A]:1", "in"), Entry(nil, "[fe80::1]:1", "in"), Entry(nil, "[fe80::10]:1", "out"),
		Entry(nil, "[1:2:3:4:5:6:7:8]:1", "out"), Entry(nil, "[ffff::ffff]:1", "in"),
		Entry("a zone", "[fe80::1%eth0]:1", "nothing"), Entry("too few groups", "[1:2]:1", "nothing"),
		Entry("too many groups", "[1:2:3:4:5:6:7:8:9]:1", "nothing"), Entry("a group that is too long", "[12345::]:1", "nothing"),
		Entry("no address", "/var/run/socket", "nothing"), Entry("nothing", "", "nothing"),
	)

	It("says the same as netip, and as explain", func() {
		random := rand.New(rand.NewPCG(1, 2))
		address := func() netip.Addr {
			if random.IntN(2) == 0 {
				return netip.AddrFrom4([4]byte{10, byte(random.IntN(2)), byte(random.IntN(3)), byte(random.IntN(256))})
			}
			return netip.AddrFrom16([16]byte{0x20, 1, byte(random.IntN(2)), 15: byte(random.IntN(256))})
		}
		for range 50 {
			var l ir.AddressList
			for l.Name = "l"; len(l.Ranges) < random.IntN(40); {
				a := address()
				l.Ranges = append(l.Ranges, netip.PrefixFrom(a, a.BitLen()-random.IntN(9)).Masked())
			}
			l.Ranges = sortedDisjoint(l.Ranges)
			config := configOf(list("k", "10.0.0.0/8"), l)
			var clients []string
			var want []map[string]string
			for range 50 {
				a := address()
				says := "out"
				for _, p := range l.Ranges {
					if p.Contains(a) {
						says = "in"
					}
				}
				clients, want = append(clients, netip.AddrPortFrom(a, 1).String()), append(want, map[string]string{"l": says})
				r := explained(config, a.String(), "l")
				has, known, err := r.IsListed("l")
				Expect(fmt.Sprint(has, known, err)).To(Equal(fmt.Sprint(says == "in", true, nil)), "%s in %v", a, l.Ranges)
			}
			Expect(run(config, "l", clients...)).To(Equal(want), "%v %v", l.Ranges, clients)
		}
	})

	It("knows nothing of a list that the Envoy, or the route, does not have", func() {
		config := configOf(list("l", "192.0.2.0/24"))
		for _, r := range []seam.Request{explained(config, "192.0.2.7", "other"), explained(configOf(), "192.0.2.7", "l"), explained(nil, "192.0.2.7", "l")} {
			has, known, err := r.IsListed("l")
			Expect(fmt.Sprint(has, known, err)).To(Equal("false false <nil>"))
		}
		Expect(addresslist.Filter().Describe(explained(config, "192.0.2.7", "l", "gone"))).
			To(Equal("looks up 192.0.2.7 in lists of addresses: l has it, gone is unknown to the Envoy"))
	})
})

// explained is a request of a client on a route that names lists. The Envoy has the configuration of the filter.
func explained(config *luav3.Lua, client string, names ...string) seam.Request {
	GinkgoHelper()
	r, err := filtertest.Request(addresslist.Filter(), ir.Filters{"addressLists": names}, nil, http.MethodGet)
	Expect(err).NotTo(HaveOccurred())
	r.Client, r.Listener = client, &hcmv3.HttpConnectionManager{HttpFilters: []*hcmv3.HttpFilter{r.On}}
	r.Discovered = func(filter string, into proto.Message) (bool, error) {
		Expect(filter).To(Equal("envoy.filters.http.lua/addresses"))
		if config == nil {
			return false, nil
		}
		proto.Merge(into, config)
		return true, nil
	}
	return r
}

// sortedDisjoint is as slow as it is simple.
func sortedDisjoint(list []netip.Prefix) (out []netip.Prefix) {
	for bits := range 129 {
		for _, p := range list {
			if p.Bits() != bits {
				continue
			}
			at := 0
			for ; at < len(out) && !out[at].Overlaps(p) && out[at].Addr().Less(p.Addr()); at++ {
			}
			if at == len(out) || !out[at].Overlaps(p) {
				out = append(out[:at], append([]netip.Prefix{p}, out[at:]...)...)
			}
		}
	}
	return out
}
