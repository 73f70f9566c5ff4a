package ipaccess

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	ipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/ip/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/metadata/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Located are the lists of a filter that needs to know more of a client than its address. Its ranges that are denied are
// in Access.
type Located struct {
	// AllowLists and DenyLists are names of shared lists of addresses.
	AllowLists     []string       `json:"allowLists,omitempty"`
	DenyLists      []string       `json:"denyLists,omitempty"`
	Allow          []netip.Prefix `json:"allow,omitempty"`
	AllowCountries []string       `json:"allowCountries,omitempty"`
	DenyCountries  []string       `json:"denyCountries,omitempty"`
	AllowASNs      []string       `json:"allowASNs,omitempty"`
	DenyASNs       []string       `json:"denyASNs,omitempty"`
	// Unknown is what happens to addresses that a database does not have: allow or refuse; empty means that no list
	// has them.
	Unknown string `json:"unknown,omitempty"`
	// Open allows all addresses where the Envoy has no database.
	Open bool `json:"open,omitempty"`
}

// locatedBy returns the lists of a filter; nil if they are only of addresses.
func locatedBy(f *model.IPAccessFilter) *Located {
	if !f.Locates() && len(f.AllowLists)+len(f.DenyLists) == 0 {
		return nil
	}
	return &Located{
		AllowLists: sorted(f.AllowLists), DenyLists: sorted(f.DenyLists),
		Allow: seam.Ranges(nil, f.Allow), AllowCountries: codes(f.AllowCountries), DenyCountries: codes(f.DenyCountries),
		AllowASNs: numbers(f.AllowASNs), DenyASNs: numbers(f.DenyASNs),
		Unknown: f.Unknown, Open: f.NoDatabase == model.AccessAllow,
	}
}

func sorted(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// looksUp reports whether the filter needs a database.
func (l *Located) looksUp() bool {
	return len(l.AllowCountries)+len(l.DenyCountries)+len(l.AllowASNs)+len(l.DenyASNs) > 0
}

func codes(list []string) (out []string) {
	for _, code := range list {
		out = append(out, strings.ToUpper(code))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func numbers(list []int) (out []string) {
	list = slices.Sorted(slices.Values(list))
	for _, n := range slices.Compact(list) {
		out = append(out, strconv.Itoa(n))
	}
	return out
}

// needs says which databases the lists of a host and its routes need.
func needs(h *ir.Host) (n ir.Needs) {
	add := func(a *Access) {
		if a == nil {
			return
		}
		for _, l := range a.Located {
			n.Countries = n.Countries || len(l.AllowCountries)+len(l.DenyCountries) > 0
			n.Networks = n.Networks || len(l.AllowASNs)+len(l.DenyASNs) > 0
		}
	}
	add(key.Of(h.Filters))
	for _, r := range h.Routes {
		for _, one := range r.All() {
			add(key.Of(one.Filters))
		}
	}
	return n
}

// unknown is the text in the state of a request for what a database does not have.
const unknown = "-"

// check refuses clients that the lists of one of the filters refuse. One list of conditions after the other is
// compared, so the size of the message is the sum of theirs.
func (m *matchers) check(filters []*Located, then, refuse *xdsmatcherv3.Matcher_OnMatch) *xdsmatcherv3.Matcher_OnMatch {
	if len(filters) == 0 {
		return then
	}
	list := &xdsmatcherv3.Matcher_MatcherList{}
	for _, f := range filters {
		for _, refused := range []*predicate{m.denied(f), m.notAllowed(f)} {
			if refused != nil {
				list.Matchers = append(list.Matchers, &xdsmatcherv3.Matcher_MatcherList_FieldMatcher{Predicate: refused, OnMatch: refuse})
			}
		}
	}
	return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Matcher{Matcher: &xdsmatcherv3.Matcher{
		OnNoMatch: then, MatcherType: &xdsmatcherv3.Matcher_MatcherList_{MatcherList: list},
	}}}
}

// denied matches clients that a deny list has, and those of which too little is known. An address in allow needs no
// country and no network.
func (m *matchers) denied(f *Located) *predicate {
	var listed, doubtful []*predicate
	for _, name := range f.DenyLists { // also if the Envoy does not have the list
		listed = append(listed, not(m.noted(name, seam.ListLacks)))
	}
	for _, by := range []struct {
		key  string
		list []string
	}{{CountryKey, f.DenyCountries}, {ASNKey, f.DenyASNs}} {
		if len(by.list) == 0 {
			continue
		}
		listed = append(listed, m.is(by.key, by.list))
		if f.Unknown == model.AccessRefuse {
			doubtful = append(doubtful, m.is(by.key, []string{unknown}))
		}
		if !f.Open {
			doubtful = append(doubtful, m.missing(by.key))
		}
	}
	if len(doubtful) > 0 {
		doubt := anyOf(doubtful)
		if len(f.Allow) > 0 {
			doubt = allOf(doubt, not(m.inAny(f.Allow)))
		}
		listed = append(listed, doubt)
	}
	return anyOf(listed)
}

// notAllowed matches clients that none of the allow lists has; nil if there is no such list.
func (m *matchers) notAllowed(f *Located) *predicate {
	var allowed []*predicate
	if len(f.Allow) > 0 {
		allowed = append(allowed, m.inAny(f.Allow))
	}
	for _, name := range f.AllowLists {
		allowed = append(allowed, m.noted(name, seam.ListHas))
	}
	for _, by := range []struct {
		key  string
		list []string
	}{{CountryKey, f.AllowCountries}, {ASNKey, f.AllowASNs}} {
		if len(by.list) == 0 {
			continue
		}
		if f.Unknown == model.AccessAllow {
			by.list = append([]string{unknown}, by.list...)
		}
		allowed = append(allowed, m.is(by.key, by.list))
		if f.Open {
			allowed = append(allowed, m.missing(by.key))
		}
	}
	if len(allowed) == 0 {
		return nil
	}
	return not(anyOf(allowed))
}

type predicate = xdsmatcherv3.Matcher_MatcherList_Predicate

// is matches requests in whose state a text is one of a list. An expression costs the same for few and for many.
func (m *matchers) is(key string, list []string) *predicate {
	return m.matches(key, strings.Join(list, "|"))
}

// missing matches requests without a text in their state: the Envoy has no database.
func (m *matchers) missing(key string) *predicate { return not(m.matches(key, anything)) }

// anything is the expression for each text.
const anything = ".*"

func (m *matchers) matches(key, expression string) *predicate {
	return single(&xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
		Input: m.extension("envoy.matching.inputs.filter_state", &networkv3.FilterStateInput{Key: key}),
		Matcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{ValueMatch: &xdsmatcherv3.StringMatcher{
			MatchPattern: &xdsmatcherv3.StringMatcher_SafeRegex{SafeRegex: &xdsmatcherv3.RegexMatcher{
				EngineType: &xdsmatcherv3.RegexMatcher_GoogleRe2{GoogleRe2: &xdsmatcherv3.RegexMatcher_GoogleRE2{}}, Regex: expression,
			}},
		}},
	})
}

// noted matches requests for which the lookup of a list has noted a result.
func (m *matchers) noted(list, result string) *predicate {
	return single(&xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
		Input: m.extension("envoy.matching.inputs.dynamic_metadata", &networkv3.DynamicMetadataInput{
			Filter: seam.AddressLists, Path: []*networkv3.DynamicMetadataInput_PathSegment{{
				Segment: &networkv3.DynamicMetadataInput_PathSegment_Key{Key: list},
			}},
		}),
		Matcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_CustomMatch{
			CustomMatch: m.extension("envoy.matching.matchers.metadata_matcher", &metadatav3.Metadata{Value: seam.IsNote(result)}),
		},
	})
}

func (m *matchers) inAny(list []netip.Prefix) *predicate {
	ranges := &ipv3.Ip{StatPrefix: "ipaccess"}
	for _, p := range list {
		for _, form := range seam.FormsOf(p) {
			ranges.CidrRanges = append(ranges.CidrRanges, coreRange(form))
		}
	}
	return single(&xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
		Input: m.extension("envoy.matching.inputs.source_ip", &networkv3.SourceIPInput{}),
		Matcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_CustomMatch{
			CustomMatch: m.extension("envoy.matching.matchers.ip", ranges),
		},
	})
}

func single(p *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate) *predicate {
	return &predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_{SinglePredicate: p}}
}

func not(p *predicate) *predicate {
	return &predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher{NotMatcher: p}}
}

// anyOf matches if one of the list does; nil if there is none.
func anyOf(list []*predicate) *predicate {
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	}
	return &predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_OrMatcher{
		OrMatcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_PredicateList{Predicate: list},
	}}
}

func allOf(list ...*predicate) *predicate {
	return &predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_AndMatcher{
		AndMatcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_PredicateList{Predicate: list},
	}}
}
