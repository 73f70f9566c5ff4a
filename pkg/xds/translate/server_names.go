package translate

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// anyChain is the chain for all names without their own chain.
const anyChain = "any"

// hostName matches the names that a client may request. Other names must not reach the
// lookup of a certificate. gRPC refuses bytes that are not UTF-8, so they would end the
// connection to the control plane each time. A name with a slash would be that of
// another secret.
const hostName = `[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*`

// chainMatcher chooses the filter chain for the server name of a connection: the chain
// with the name itself, then the one with the longest suffix, then anyChain. A
// connection without TLS or with an invalid host name gets no chain, and Envoy closes
// it.
// passthrough has services that get connections by their names.
func chainMatcher(t *ir.TLS, passthrough *ir.L4Listener) (*xdsmatcherv3.Matcher, error) {
	m := matchers{}
	more, bounded := m.passthrough(passthrough)
	own, rest := t.Chains, anyChain
	if t.Only {
		own, rest = nil, closedChain
	}
	chains := slices.Concat(own, more, []ir.TLSChain{{Name: rest, ServerNames: t.Beside}})
	return m.ifTLS(m.byValidName(m.names(chains, bounded), m.chain(rest), m.chain(rest))), m.err
}

// ifTLS chooses further for a connection with TLS. Without TLS, there is no chain.
func (m *matchers) ifTLS(then *xdsmatcherv3.Matcher) *xdsmatcherv3.Matcher {
	protocol := m.extension("envoy.matching.inputs.transport_protocol", &networkv3.TransportProtocolInput{})
	return first(nil, when(matches(protocol, &xdsmatcherv3.StringMatcher{
		MatchPattern: &xdsmatcherv3.StringMatcher_Exact{Exact: "tls"},
	}), further(then)))
}

// byValidName chooses by the server name of a connection if it is a host name, and
// absent if the client sends none. Any other name gets no chain.
func (m *matchers) byValidName(names []namedChoice, otherwise, absent *xdsmatcherv3.Matcher_OnMatch) *xdsmatcherv3.Matcher {
	name := m.extension("envoy.matching.inputs.server_name", &networkv3.ServerNameInput{})
	list := []*xdsmatcherv3.Matcher_MatcherList_FieldMatcher{
		when(matches(name, &xdsmatcherv3.StringMatcher{MatchPattern: expression(hostName)}), byName(name, names, otherwise)),
	}
	if absent != nil {
		// \C is any byte, so it also matches names that are not UTF-8.
		present := matches(name, &xdsmatcherv3.StringMatcher{MatchPattern: expression(`\C+`)})
		list = append(list, when(&xdsmatcherv3.Matcher_MatcherList_Predicate{
			MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher{NotMatcher: present},
		}, absent))
	}
	return first(nil, list...)
}

// namedChoice is an exact name or "*.suffix", and what is chosen for it.
type namedChoice struct {
	name string
	// oneLabel means that the asterisk is one label, as in certificates.
	oneLabel bool
	then     *xdsmatcherv3.Matcher_OnMatch
}

// names returns the names of chains. bounded chooses further for some chains.
func (m *matchers) names(chains []ir.TLSChain, bounded map[string]*xdsmatcherv3.Matcher_OnMatch) []namedChoice {
	var list []namedChoice
	for _, c := range chains {
		then := bounded[c.Name]
		if then == nil {
			then = m.chain(c.Name)
		}
		for _, n := range c.ServerNames {
			list = append(list, namedChoice{name: n, then: then})
		}
	}
	return list
}

// byName chooses the name itself, then the longest suffix, then otherwise. Of two equal
// names, the last one counts.
func byName(
	name *xdscorev3.TypedExtensionConfig, names []namedChoice, otherwise *xdsmatcherv3.Matcher_OnMatch,
) *xdsmatcherv3.Matcher_OnMatch {
	var suffixes []namedChoice
	exact := map[string]*xdsmatcherv3.Matcher_OnMatch{}
	for _, n := range names {
		if strings.HasPrefix(n.name, "*.") {
			suffixes = append([]namedChoice{n}, suffixes...)
		} else {
			exact[n.name] = n.then
		}
	}
	slices.SortStableFunc(suffixes, func(a, b namedChoice) int {
		return cmp.Or(cmp.Compare(len(b.name), len(a.name)), cmp.Compare(a.name, b.name))
	})
	chosen := otherwise
	if len(suffixes) > 0 {
		var list []*xdsmatcherv3.Matcher_MatcherList_FieldMatcher
		for _, s := range suffixes {
			value := &xdsmatcherv3.StringMatcher{MatchPattern: &xdsmatcherv3.StringMatcher_Suffix{Suffix: s.name[1:]}}
			if s.oneLabel {
				value.MatchPattern = expression(`[^.]+` + regexp.QuoteMeta(s.name[1:]))
			}
			list = append(list, when(matches(name, value), s.then))
		}
		chosen = further(first(otherwise, list...))
	}
	if len(exact) == 0 {
		return chosen
	}
	return further(&xdsmatcherv3.Matcher{OnNoMatch: chosen, MatcherType: &xdsmatcherv3.Matcher_MatcherTree_{
		MatcherTree: &xdsmatcherv3.Matcher_MatcherTree{Input: name, TreeType: &xdsmatcherv3.Matcher_MatcherTree_ExactMatchMap{
			ExactMatchMap: &xdsmatcherv3.Matcher_MatcherTree_MatchMap{Map: exact},
		}},
	}})
}

// matchers builds the parts of a matcher. err is the first error.
type matchers struct{ err error }

// extension packs a message that has no validation rules.
func (m *matchers) extension(name string, message proto.Message) *xdscorev3.TypedExtensionConfig {
	packed, err := anypb.New(message)
	if m.err == nil {
		m.err = err
	}
	return &xdscorev3.TypedExtensionConfig{Name: name, TypedConfig: packed}
}

// chain is the action that chooses a filter chain.
func (m *matchers) chain(name string) *xdsmatcherv3.Matcher_OnMatch {
	return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{
		Action: m.extension("filter-chain-name", wrapperspb.String(name)),
	}}
}

func matches(input *xdscorev3.TypedExtensionConfig, value *xdsmatcherv3.StringMatcher) *xdsmatcherv3.Matcher_MatcherList_Predicate {
	return &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_{
		SinglePredicate: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
			Input: input, Matcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_ValueMatch{ValueMatch: value},
		},
	}}
}

func when(p *xdsmatcherv3.Matcher_MatcherList_Predicate, then *xdsmatcherv3.Matcher_OnMatch) *xdsmatcherv3.Matcher_MatcherList_FieldMatcher {
	return &xdsmatcherv3.Matcher_MatcherList_FieldMatcher{Predicate: p, OnMatch: then}
}

// first chooses the first part that matches, or otherwise if none does.
func first(otherwise *xdsmatcherv3.Matcher_OnMatch, list ...*xdsmatcherv3.Matcher_MatcherList_FieldMatcher) *xdsmatcherv3.Matcher {
	return &xdsmatcherv3.Matcher{OnNoMatch: otherwise, MatcherType: &xdsmatcherv3.Matcher_MatcherList_{
		MatcherList: &xdsmatcherv3.Matcher_MatcherList{Matchers: list},
	}}
}

func further(m *xdsmatcherv3.Matcher) *xdsmatcherv3.Matcher_OnMatch {
	return &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Matcher{Matcher: m}}
}

func expression(re string) *xdsmatcherv3.StringMatcher_SafeRegex {
	return &xdsmatcherv3.StringMatcher_SafeRegex{SafeRegex: &xdsmatcherv3.RegexMatcher{
		EngineType: &xdsmatcherv3.RegexMatcher_GoogleRe2{GoogleRe2: &xdsmatcherv3.RegexMatcher_GoogleRE2{}}, Regex: re,
	}}
}
