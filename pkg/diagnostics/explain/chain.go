package explain

import (
	"fmt"
	"net/netip"
	"strings"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// isHTTP reports whether a listener is for requests.
func isHTTP(l *listenerv3.Listener) bool { return strings.HasPrefix(l.GetName(), "http") }

// isSecure reports whether a listener for requests is an HTTPS listener.
func isSecure(l *listenerv3.Listener) bool { return strings.HasPrefix(l.GetName(), "https-") }

// isHTTP3 reports whether a listener is one of HTTP/3.
func isHTTP3(l *listenerv3.Listener) bool { return isHTTP(l) && l.GetUdpListenerConfig() != nil }

// findChain returns the filter chain of a listener for a connection from an address; nil if
// there is none, and Envoy closes the connection. An empty address is one that everybody allows.
func findChain(l *listenerv3.Listener, serverName, address string) (*listenerv3.FilterChain, error) {
	matcher := l.GetFilterChainMatcher()
	if matcher == nil {
		for _, c := range l.GetFilterChains() {
			if c.GetFilterChainMatch() == nil {
				return c, nil
			}
		}
		return nil, fmt.Errorf("explaining listener %q: it has no filter chain for all connections", l.GetName())
	}
	m := chainMatch{"server_name": seam.LowerASCII(serverName), "transport_protocol": "tls", "source_ip": address}
	name, err := m.choose(matcher)
	if err != nil {
		return nil, fmt.Errorf("explaining the filter chains of listener %q: %w", l.GetName(), err)
	}
	for _, c := range l.GetFilterChains() {
		if c.GetName() == name {
			return c, nil
		}
	}
	return nil, nil
}

// chainMatch contains the inputs of a matcher of filter chains. An empty input is
// absent.
type chainMatch map[string]string

// choose returns the name of the filter chain; empty if none matches.
func (m chainMatch) choose(matcher *xdsmatcherv3.Matcher) (string, error) {
	then := matcher.GetOnNoMatch()
	switch kind := matcher.GetMatcherType().(type) {
	case *xdsmatcherv3.Matcher_MatcherList_:
		for _, f := range kind.MatcherList.GetMatchers() {
			holds, err := m.holds(f.GetPredicate())
			if err != nil {
				return "", err
			}
			if holds {
				then = f.GetOnMatch()
				break
			}
		}
	case *xdsmatcherv3.Matcher_MatcherTree_:
		value, err := m.input(kind.MatcherTree.GetInput().GetName())
		if err != nil || kind.MatcherTree.GetExactMatchMap() == nil {
			return "", fmt.Errorf("tree %T is not known: %w", kind.MatcherTree.GetTreeType(), err)
		}
		if on := kind.MatcherTree.GetExactMatchMap().GetMap()[value]; on != nil {
			then = on
		}
	}
	switch on := then.GetOnMatch().(type) {
	case *xdsmatcherv3.Matcher_OnMatch_Matcher:
		return m.choose(on.Matcher)
	case *xdsmatcherv3.Matcher_OnMatch_Action:
		var name wrapperspb.StringValue
		err := on.Action.GetTypedConfig().UnmarshalTo(&name)
		return name.GetValue(), err
	}
	return "", nil
}

func (m chainMatch) input(name string) (string, error) {
	value, known := m[strings.TrimPrefix(name, "envoy.matching.inputs.")]
	if !known {
		return "", fmt.Errorf("input %q is not known", name)
	}
	return value, nil
}

func (m chainMatch) holds(p *xdsmatcherv3.Matcher_MatcherList_Predicate) (bool, error) {
	if isAboutAddress(p) {
		address, err := netip.ParseAddr(m["source_ip"])
		if err != nil {
			return true, nil
		}
		return allows(p, address)
	}
	switch kind := p.GetMatchType().(type) {
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher:
		holds, err := m.holds(kind.NotMatcher)
		return !holds, err
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_:
		value, err := m.input(kind.SinglePredicate.GetInput().GetName())
		if err != nil || value == "" {
			return false, err
		}
		switch how := kind.SinglePredicate.GetValueMatch().GetMatchPattern().(type) {
		case *xdsmatcherv3.StringMatcher_Exact:
			return value == how.Exact, nil
		case *xdsmatcherv3.StringMatcher_Suffix:
			return strings.HasSuffix(value, how.Suffix), nil
		case *xdsmatcherv3.StringMatcher_SafeRegex:
			// RE2's \C is one byte, and latin1 turns each byte into a character.
			re, err := seam.WholeRegex(strings.ReplaceAll(how.SafeRegex.GetRegex(), `\C`, `(?s:.)`))
			return err == nil && re.MatchString(seam.Latin1(value)), err
		}
	}
	return false, fmt.Errorf("condition %T is not known", p.GetMatchType())
}
