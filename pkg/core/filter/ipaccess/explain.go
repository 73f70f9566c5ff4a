package ipaccess

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	statefilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	ipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/ip/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/metadata/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// verdict says whether a condition holds. It depends if only Envoy knows.
type verdict int

const (
	no verdict = iota
	yes
	depends
)

// asked are the conditions of one request on where its client is.
type asked struct {
	request seam.Request
	client  netip.Addr
	// has are the kinds that the Envoy looks up for the request.
	has map[string]bool
	// told are the kinds that conditions looked at, and open those of them that only Envoy knows, with the values that
	// they are compared with.
	told []string
	open map[string]string
	// in is the range of an allow list that has the client. lists says what is known of shared lists.
	in    string
	lists []string
}

// wordsOf returns the word for a kind of database and the flag that sets it.
func wordsOf(key string) (word, plural, flag string) {
	if key == CountryKey {
		return "country", "countries", "--geoip-country"
	}
	return "network", "networks", "--geoip-asn"
}

func ask(r seam.Request, client netip.Addr) (*asked, error) {
	a := &asked{request: r, client: client, has: map[string]bool{}, open: map[string]string{}}
	if !r.Passes(state) || !r.Passes(lookup) {
		return a, nil
	}
	for _, f := range r.Listener.GetHttpFilters() {
		if f.GetName() != state {
			continue
		}
		var states statefilterv3.Config
		if err := f.GetTypedConfig().UnmarshalTo(&states); err != nil {
			return nil, fmt.Errorf("decoding filter %q: %w", state, err)
		}
		for _, s := range states.GetOnRequestHeaders() {
			a.has[s.GetObjectKey()] = true
		}
	}
	return a, nil
}

// choose returns what the first condition that holds does. If it depends, then is nil.
func (a *asked) choose(m *xdsmatcherv3.Matcher) (then *xdsmatcherv3.Matcher_OnMatch, v verdict, err error) {
	for _, f := range m.GetMatcherList().GetMatchers() {
		a.told, a.in, a.lists, a.open = nil, "", nil, map[string]string{}
		switch v, err := a.holds(f.GetPredicate()); {
		case err != nil || v == depends:
			return nil, v, err
		case v == yes:
			return f.GetOnMatch(), yes, nil
		}
	}
	return m.GetOnNoMatch(), no, nil
}

func (a *asked) holds(p *predicate) (verdict, error) {
	switch kind := p.GetMatchType().(type) {
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher:
		v, err := a.holds(kind.NotMatcher)
		return map[verdict]verdict{no: yes, yes: no, depends: depends}[v], err
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_OrMatcher:
		return a.combine(kind.OrMatcher.GetPredicate(), yes)
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_AndMatcher:
		return a.combine(kind.AndMatcher.GetPredicate(), no)
	}
	single := p.GetSinglePredicate()
	var noted networkv3.DynamicMetadataInput
	if input := single.GetInput().GetTypedConfig(); input.MessageIs(&noted) {
		if err := input.UnmarshalTo(&noted); err != nil {
			return no, fmt.Errorf("decoding filter %q: %w", name, err)
		}
		return a.lookUp(noted.GetPath()[0].GetKey(), single.GetCustomMatch())
	}
	if packed := single.GetCustomMatch(); packed != nil {
		var ranges ipv3.Ip
		if err := packed.GetTypedConfig().UnmarshalTo(&ranges); err != nil {
			return no, fmt.Errorf("decoding filter %q: %w", name, err)
		}
		for _, c := range ranges.GetCidrRanges() {
			addr, err := netip.ParseAddr(c.GetAddressPrefix())
			if p := netip.PrefixFrom(addr, int(c.GetPrefixLen().GetValue())); err == nil && p.Contains(a.client) {
				a.in = p.String()
				return yes, nil
			}
		}
		return no, nil
	}
	return a.compare(single)
}

// lookUp reports whether the Envoy has noted a result for a list.
func (a *asked) lookUp(list string, packed *xdscorev3.TypedExtensionConfig) (verdict, error) {
	var result metadatav3.Metadata
	if err := packed.GetTypedConfig().UnmarshalTo(&result); err != nil {
		return no, fmt.Errorf("decoding filter %q: %w", name, err)
	}
	has, known, err := a.request.IsListed(list)
	switch {
	case !known:
		a.lists = append(a.lists, "needs the list "+list+", which the Envoy does not have")
	case has:
		a.lists = append(a.lists, "is in the list "+list)
	default:
		a.lists = append(a.lists, "is not in the list "+list)
	}
	if known && has == (result.GetValue().GetStringMatch().GetExact() == seam.ListHas) {
		return yes, err
	}
	return no, err
}

// combine combines conditions: one that is decisive decides, whatever the others are.
func (a *asked) combine(list []*predicate, decisive verdict) (verdict, error) {
	out := yes
	if decisive == yes {
		out = no
	}
	for _, p := range list {
		v, err := a.holds(p)
		if err != nil || v == decisive {
			return v, err
		}
		if v == depends {
			out = depends
		}
	}
	return out, nil
}

// compare compares a text in the state of the request.
func (a *asked) compare(p *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate) (verdict, error) {
	var input networkv3.FilterStateInput
	if err := p.GetInput().GetTypedConfig().UnmarshalTo(&input); err != nil {
		return no, fmt.Errorf("decoding filter %q: %w", name, err)
	}
	key, values := input.GetKey(), p.GetValueMatch().GetSafeRegex().GetRegex()
	if !slices.Contains(a.told, key) {
		a.told = append(a.told, key)
	}
	if !a.has[key] {
		return no, nil
	}
	value, known := a.find(key)
	switch {
	case values == anything, known && slices.Contains(strings.Split(values, "|"), value):
		return yes, nil
	case known:
		return no, nil
	}
	a.open[key] = values
	return depends, nil
}

// find returns what the Envoy finds, if that is known here.
func (a *asked) find(key string) (value string, known bool) {
	if a.request.Where == nil {
		return "", false
	}
	country, asn := a.request.Where(a.client)
	if value = country; key == ASNKey {
		value = asn
	}
	if value == "" {
		value = unknown
	}
	return value, true
}

// why says what is known of the kinds that conditions looked at, in words that follow "it".
func (a *asked) why() string {
	var list []string
	if a.in != "" {
		list = append(list, "is in "+a.in)
	}
	list = append(list, a.lists...)
	for _, key := range a.told {
		word, plural, flag := wordsOf(key)
		value, known := a.find(key)
		switch {
		case !a.has[key]:
			list = append(list, fmt.Sprintf("needs a database of %s, which the Envoy does not have (gatehouse envoy %s)", plural, flag))
		case !known:
		case value == unknown:
			list = append(list, "has no known "+word)
		default:
			list = append(list, "has "+word+" "+value)
		}
	}
	return strings.Join(list, ", and ")
}

// openQuestion says on what the decision depends, in words that follow "it".
func (a *asked) openQuestion() string {
	var list []string
	for _, key := range []string{CountryKey, ASNKey} {
		if values, ok := a.open[key]; ok {
			word, _, _ := wordsOf(key)
			list = append(list, fmt.Sprintf("on the %s of %s, which is compared with %s", word, a.client,
				strings.ReplaceAll(values, "|", ", ")))
		}
	}
	return "depends " + strings.Join(list, " and ") + "; the Envoy looks it up, and this control plane does not know it"
}
