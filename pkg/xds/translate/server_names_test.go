package translate_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// choose evaluates a matcher like Envoy for a connection over TLS. It returns the chain
// for a server name in lower case, "" if there is none. absent means a connection
// without a server name.
func choose(m *xdsmatcherv3.Matcher, name string, absent bool) string {
	GinkgoHelper()
	then := func(on *xdsmatcherv3.Matcher_OnMatch) string {
		switch {
		case on == nil:
			return ""
		case on.GetMatcher() != nil:
			return choose(on.GetMatcher(), name, absent)
		}
		chain := &wrapperspb.StringValue{}
		Expect(on.GetAction().GetTypedConfig().UnmarshalTo(chain)).To(Succeed())
		return chain.GetValue()
	}
	if tree := m.GetMatcherTree(); tree != nil {
		if on := tree.GetExactMatchMap().GetMap()[name]; on != nil && !absent {
			return then(on)
		}
		return then(m.GetOnNoMatch())
	}
	for _, f := range m.GetMatcherList().GetMatchers() {
		if predicate(f.GetPredicate(), name, absent) {
			return then(f.GetOnMatch())
		}
	}
	return then(m.GetOnNoMatch())
}

func predicate(p *xdsmatcherv3.Matcher_MatcherList_Predicate, name string, absent bool) bool {
	GinkgoHelper()
	if not := p.GetNotMatcher(); not != nil {
		return !predicate(not, name, absent)
	}
	single := p.GetSinglePredicate()
	value := name
	if single.GetInput().GetName() == "envoy.matching.inputs.transport_protocol" {
		value = "tls"
	} else if absent {
		return false
	}
	switch match := single.GetValueMatch(); {
	case match.GetSafeRegex().GetRegex() == `\C+`: // Go's RE2 does not support it
		return value != ""
	case match.GetSafeRegex() != nil:
		return regexp.MustCompile("^(?:" + match.GetSafeRegex().GetRegex() + ")$").MatchString(value)
	case match.GetSuffix() != "":
		return strings.HasSuffix(value, match.GetSuffix())
	default:
		return value == match.GetExact()
	}
}

var _ = Describe("The filter chain for a server name", func() {
	chains := []ir.TLSChain{
		{Name: "exact", ServerNames: []string{"a.b.test", "bank.test"}}, {Name: "short", ServerNames: []string{"*.test"}},
		{Name: "long", ServerNames: []string{"*.b.test", "*.bank.example"}},
	}
	DescribeTable("has the most exact name, and there is none if it is not a host name", func(name, chain string) {
		for _, list := range [][]ir.TLSChain{chains, {chains[2], chains[1], chains[0]}, {chains[1], chains[0], chains[2]}} {
			l, err := translate.Listener(ir.Listener{Address: "0.0.0.0", Port: 8443, TLS: &ir.TLS{MinVersion: "1.2", Chains: slices.Clone(list)}})
			Expect(err).NotTo(HaveOccurred())
			Expect(choose(l.GetFilterChainMatcher(), name, false)).To(Equal(chain))
		}
	},
		func(name, chain string) string { return fmt.Sprintf("%q: %s", name, chain) },
		Entry(nil, "a.b.test", "exact"), Entry(nil, "bank.test", "exact"), Entry(nil, "b.b.test", "long"), Entry(nil, "x.a.b.test", "long"),
		Entry(nil, "b.test", "short"), Entry(nil, "x.y.test", "short"), Entry(nil, "bank.example", "any"), Entry(nil, "xbank.example", "any"),
		Entry(nil, "a.bank.example", "long"), Entry(nil, "test", "any"), Entry(nil, "a_b-c.example", "any"), Entry(nil, "127.0.0.1", "any"),
		Entry(nil, "bank.test.", ""), Entry(nil, ".bank.test", ""), Entry(nil, "a..test", ""), Entry(nil, "*.test", ""), Entry(nil, "pair/bank", ""),
		Entry(nil, "\xff.test", ""), Entry(nil, "\u00e4.test", ""), Entry(nil, "a\n.test", ""), Entry(nil, "a\x00.test", ""), Entry(nil, "[::1]", ""),
	)

	It("is the general one if the client sends none", func() {
		l, err := translate.Listener(ir.Listener{Address: "0.0.0.0", Port: 8443, TLS: &ir.TLS{MinVersion: "1.2", Chains: chains}})
		Expect(err).NotTo(HaveOccurred())
		Expect(choose(l.GetFilterChainMatcher(), "", true)).To(Equal("any"))
		names := []string{}
		for _, c := range l.GetFilterChains() {
			names = append(names, c.GetName())
		}
		Expect(names).To(Equal([]string{"any", "exact", "short", "long"}))
	})
})
