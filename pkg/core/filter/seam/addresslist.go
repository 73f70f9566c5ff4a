package seam

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// Filters that compare a client with shared lists of addresses find in the metadata of the request, under AddressLists
// and the name of a list, whether it has the client: ListHas or ListLacks. Nothing means that the Envoy does not have the
// list, and must refuse: whoever a deny list has would be let in otherwise.
const (
	AddressFilter = LuaFilter + "/addresses"
	AddressLists  = "gatehouse.addresses"
	ListHas       = "in"
	ListLacks     = "out"
)

// ListsKey has the names of the lists that the filters of a host or route compare. A route with some also has those of
// its host.
const ListsKey Key[[]string] = "addressLists"

// ListsField is the field with the names, in what the script gets of a host or route.
const ListsField = "lists"

// AddressLines returns lists as the lines of a table of the script. A list has two texts, of IPv4 and IPv6 addresses: the
// digits of the first and the last address of each range, sorted.
func AddressLines(lists []ir.AddressList) string {
	var b strings.Builder
	for _, l := range lists {
		fmt.Fprintf(&b, "[\"%s\"]={\"", l.Name)
		v4 := true
		for _, p := range l.Ranges {
			if v4 && p.Addr().Is6() { // these come last
				b.WriteString(`","`)
				v4 = false
			}
			b.WriteString(digits(p.Addr()) + digits(lastOf(p)))
		}
		if v4 {
			b.WriteString(`","`)
		}
		b.WriteString("\"},\n")
	}
	return b.String()
}

func digits(a netip.Addr) string { return hex.EncodeToString(a.AsSlice()) }

func lastOf(p netip.Prefix) netip.Addr {
	b := p.Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 0x80 >> (bit % 8)
	}
	last, _ := netip.AddrFromSlice(b)
	return last
}

// IsListed reports whether a list has the client of a request, and whether the Envoy knows that.
func (r Request) IsListed(list string) (in, known bool, err error) {
	message, err := MessageOf(AddressFilter, r, &luav3.LuaPerRoute{})
	if err != nil || !r.Passes(AddressFilter) || r.Discovered == nil {
		return false, false, err
	}
	wanted := strings.Fields(message.GetFilterContext().GetFields()[ListsField].GetStringValue())
	client, err := netip.ParseAddr(r.Client)
	if err != nil || !slices.Contains(wanted, list) {
		return false, false, err
	}
	var config luav3.Lua
	if _, err := r.Discovered(AddressFilter, &config); err != nil {
		return false, false, err
	}
	for line := range strings.Lines(config.GetDefaultSourceCode().GetInlineString()) {
		line, known = strings.CutPrefix(line, `["`+list+`"]={"`)
		if !known {
			continue
		}
		v4, v6, _ := strings.Cut(strings.TrimSuffix(line, "\"},\n"), `","`)
		return client.Unmap().Is4() && isWithin(v4, digits(client.Unmap())) || client.Is6() && isWithin(v6, digits(client)), true, nil
	}
	return false, false, nil
}

// Noted matches requests for which the lookup of a list has noted a result.
func Noted(list, result string) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_SourcedMetadata{
		SourcedMetadata: &rbacconfigv3.SourcedMetadata{MetadataMatcher: &matcherv3.MetadataMatcher{
			Filter: AddressLists, Path: []*matcherv3.MetadataMatcher_PathSegment{{
				Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: list},
			}},
			Value: IsNote(result),
		}},
	}}
}

// IsNote matches the result of a lookup.
func IsNote(result string) *matcherv3.ValueMatcher {
	return &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
		MatchPattern: &matcherv3.StringMatcher_Exact{Exact: result},
	}}}
}

// NotedOf reports whether what Noted returned matches the request.
func (r Request) NotedOf(m *matcherv3.MetadataMatcher) (bool, error) {
	has, known, err := r.IsListed(m.GetPath()[0].GetKey())
	return known && has == (m.GetValue().GetStringMatch().GetExact() == ListHas), err
}

// isWithin does what the script does.
func isWithin(ranges, address string) bool {
	for w := len(address); len(ranges) >= 2*w; ranges = ranges[2*w:] {
		if ranges[:w] <= address && address <= ranges[w:2*w] {
			return true
		}
	}
	return false
}
