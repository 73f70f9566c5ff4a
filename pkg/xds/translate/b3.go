package translate

import (
	"fmt"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// This file makes a traceparent of the trace context of a client that is in the form of Zipkin (B3): the header b3, or
// X-B3-TraceId and others (openzipkin/b3-propagation). What is malformed is ignored: CEL has no value for it then, and no
// header is added.

// b3Headers are the mutations that add a traceparent if there is none, and leave the decision to the tracer if the
// client has made one. The first one does that for the client's own traceparent.
func b3Headers() []*mutationv3.HeaderMutation {
	return []*mutationv3.HeaderMutation{
		addIfAbsent("traceparent", "%CEL("+b3Begin()+")%%CEL("+b3End()+")%"),
		addIfAbsent(forceTrace, "%CEL("+b3Decided()+")%"),
	}
}

func addIfAbsent(name, format string) *mutationv3.HeaderMutation {
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header: &corev3.HeaderValue{Key: name, Value: format}, AppendAction: corev3.HeaderValueOption_ADD_IF_ABSENT,
	}}}
}

// These are CEL. Envoy's has no concatenation of texts, so what is made of two headers takes two expressions; and the
// programs of its regular expressions are small, so digits are compared apart from where they are.
const (
	single    = "request.headers['b3']"
	hasSingle = "'b3' in request.headers"

	traceID    = "request.headers['x-b3-traceid']"
	spanID     = "request.headers['x-b3-spanid']"
	sampled    = "request.headers['x-b3-sampled']"
	hasSampled = "'x-b3-sampled' in request.headers"
	isDebug    = "('x-b3-flags' in request.headers && request.headers['x-b3-flags'] == '1')"
	hasMulti   = "'x-b3-traceid' in request.headers && 'x-b3-spanid' in request.headers"

	// zeros fill an ID of 64 bits.
	zeros = "0000000000000000"
	// singleHex and multiValid say that headers are well-formed, the first one without their structure.
	singleHex  = single + ".matches('^[0-9a-f-]+$') && !" + single + ".matches('^0+-|-" + zeros + "')"
	multiValid = traceID + ".matches('^[0-9a-f]+$') && !" + traceID + ".matches('^0+$') && (size(" + traceID + ") == 16 || size(" +
		traceID + ") == 32) && " + spanID + ".matches('^[0-9a-f]+$') && !" + spanID + ".matches('^0+$') && size(" + spanID +
		") == 16 && (!(" + hasSampled + ") || " + sampled + ".matches('^(0|1|true|false)$'))"
)

// b3Begin is the traceparent for the header b3, and its first part for the others.
func b3Begin() string {
	const parent = "(-[0-f]{16})?"
	cases := hasSingle + " ? ("
	for _, c := range []struct{ digits, state, pad, flags string }{
		{"32", "-0" + parent, "", "00"}, {"16", "-0" + parent, zeros, "00"},
		{"32", "(-[1d]" + parent + ")?", "", "01"}, {"16", "(-[1d]" + parent + ")?", zeros, "01"},
	} {
		cases += fmt.Sprintf("%s.matches('^[0-f]{%s}-[0-f]{16}%s$') && %s ? re.extract(%[1]s, '^([^-]*)-([^-]*)', r'00-%[5]s\\1-\\2-%[6]s') : ",
			single, c.digits, c.state, singleHex, c.pad, c.flags)
	}
	begin := func(pad string) string { return fmt.Sprintf(`re.extract(%s, '(.*)', r'00-%s\1-')`, traceID, pad) }
	return cases + "'') : " + hasMulti + " && " + multiValid + " ? (size(" + traceID + ") == 32 ? " + begin("") + " : " + begin(zeros) + ") : ''"
}

// b3End is the rest of the traceparent for the headers that b3Begin takes the first part from.
func b3End() string {
	end := func(flags string) string { return fmt.Sprintf(`re.extract(%s, '(.*)', r'\1-%s')`, spanID, flags) }
	return hasMulti + " && !(" + hasSingle + ") && " + multiValid + " ? (" + hasSampled + " && " + sampled +
		".matches('^(0|false)$') && !" + isDebug + " ? " + end("00") + " : " + end("01") + ") : ''"
}

// b3Decided has a value if the client has decided. Otherwise the share does, and the spans join the trace all the same.
func b3Decided() string {
	return "'traceparent' in request.headers && (" + hasSingle + " ? " + single + ".matches('-.*-') : " + hasSampled +
		" || " + isDebug + ") ? '1' : ''"
}
