package e2e_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// b3Case is a request with headers of Zipkin's libraries.
type b3Case struct {
	headers []string
	// trace is that of the client; empty means that there is nothing to join.
	trace string
	// decided is 1 or 0 if the client has decided; empty leaves it to the share.
	decided string
}

var _ = Describe("Tracing with b3", func() {
	const (
		long, short, span = "463ac35c9f6413ad48485a3953bb6124", "48485a3953bb6124", "a2fb4a1d1a96d312"
		padded            = "0000000000000000" + short
		w3c, w3cSpan      = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	)
	multi := func(trace, span string, more ...string) []string {
		return append([]string{"X-B3-TraceId: " + trace, "X-B3-SpanId: " + span}, more...)
	}
	single := func(values ...string) (list []string) {
		for _, v := range values {
			list = append(list, "B3: "+v)
		}
		return list
	}
	cases := map[string]b3Case{
		"b3":                             {single(long + "-" + span + "-1"), long, "1"},
		"b3-parent":                      {single(long + "-" + span + "-1-05e3ac9a4f6e3b90"), long, "1"},
		"b3-short":                       {single(short + "-" + span + "-1"), padded, "1"},
		"b3-debug":                       {single(long + "-" + span + "-d"), long, "1"},
		"b3-no":                          {single(long + "-" + span + "-0"), long, "0"},
		"b3-short-no":                    {single(short + "-" + span + "-0-05e3ac9a4f6e3b90"), padded, "0"},
		"b3-undecided":                   {single(long + "-" + span), long, ""},
		"multi":                          {multi(long, span, "X-B3-Sampled: 1"), long, "1"},
		"multi-short":                    {multi(short, span, "X-B3-Sampled: true", "X-B3-ParentSpanId: 05e3ac9a4f6e3b90"), padded, "1"},
		"multi-debug":                    {multi(long, span, "X-B3-Flags: 1"), long, "1"},
		"multi-no":                       {multi(long, span, "X-B3-Sampled: 0"), long, "0"},
		"multi-no-in-words":              {multi(short, span, "X-B3-Sampled: false"), padded, "0"},
		"multi-undecided":                {multi(long, span), long, ""},
		"both-b3-counts":                 {append(multi(short, span, "X-B3-Sampled: 0"), single(long+"-"+span+"-1")...), long, "1"},
		"none":                           {nil, "", ""},
		"decision-alone":                 {single("0"), "", ""},
		"multi-decision-alone":           {[]string{"X-B3-Sampled: 0"}, "", ""},
		"other-length":                   {single(long + "0-" + span + "-1"), "", ""},
		"upper-case":                     {single(strings.ToUpper(long) + "-" + span + "-1"), "", ""},
		"between-digits-and-letters":     {single("463ac35c9f6413a?48485a3953bb6124-" + span + "-1"), "", ""},
		"trace-of-zeros":                 {single(strings.Repeat("0", 32) + "-" + span + "-1"), "", ""},
		"span-of-zeros":                  {single(long + "-" + strings.Repeat("0", 16) + "-1"), "", ""},
		"other-decision":                 {single(long + "-" + span + "-x"), "", ""},
		"more-parts":                     {single(long + "-" + span + "-1-05e3ac9a4f6e3b90-1"), "", ""},
		"two":                            {single(long+"-"+span+"-1", long+"-"+span+"-0"), "", ""},
		"bad-b3-beside-multi":            {append(multi(long, span, "X-B3-Sampled: 1"), single("x")...), "", ""},
		"multi-without-span":             {[]string{"X-B3-TraceId: " + long, "X-B3-Sampled: 1"}, "", ""},
		"multi-other-characters":         {multi("463ac35c9f6413aZ", span, "X-B3-Sampled: 1"), "", ""},
		"multi-other-length":             {multi(long+"00", span, "X-B3-Sampled: 1"), "", ""},
		"multi-trace-of-zeros":           {multi(strings.Repeat("0", 16), span, "X-B3-Sampled: 1"), "", ""},
		"multi-span-of-zeros":            {multi(long, strings.Repeat("0", 16), "X-B3-Sampled: 1"), "", ""},
		"multi-span-of-another-length":   {multi(long, "1", "X-B3-Sampled: 1"), "", ""},
		"multi-span-of-other-characters": {multi(long, "a2fb4a1d1a96d31g", "X-B3-Sampled: 1"), "", ""},
		"multi-other-decision":           {multi(long, span, "X-B3-Sampled: maybe"), "", ""},
	}

	DescribeTable("joins the trace of a client as it has decided, ignores what is malformed, and changes none of its headers", func(share int) {
		t := newTraced()
		t.trace(map[string]any{"upstream": "grpc", "sampling": share, "b3": true})
		told := map[string]http.Header{}
		for name, c := range cases {
			a := t.get("shop.example", "/"+name+"/", c.headers...)
			Expect(a.Status).To(Equal(http.StatusOK), name)
			told[name] = a.Echo.Headers
		}
		last := t.get("shop.example", "/last/", "B3: "+long+"-"+span+"-1", "Traceparent: 00-"+w3c+"-"+w3cSpan+"-01")
		Expect(last.Echo.Headers.Get("Traceparent")).To(HavePrefix("00-" + w3c + "-"))
		Expect(t.spansOf("/last/", 1)[0]).To(And(HaveField("Trace", w3c), HaveField("Parent", w3cSpan)), "a traceparent counts before b3")
		for name, c := range cases {
			want, parent := 0, ""
			if c.decided == "1" || c.decided == "" && share > 0 {
				want = 1
			}
			if c.trace != "" {
				parent = span
			}
			for _, s := range t.spansOf("/"+name+"/", want) {
				Expect(s.Parent).To(Equal(parent), name)
				Expect(c.trace).To(Or(BeEmpty(), Equal(s.Trace)), name)
			}
			traceparent := told[name].Get("Traceparent")
			switch {
			case c.trace == "":
				Expect(traceparent).To(Or(BeEmpty(), MatchRegexp("^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$")), name)
				Expect(traceparent).NotTo(Or(ContainSubstring(long), ContainSubstring(span)), name)
			case c.decided == "":
				Expect(traceparent).To(MatchRegexp("^00-"+c.trace+"-[0-9a-f]{16}-0[01]$"), name)
			default:
				Expect(traceparent).To(MatchRegexp("^00-"+c.trace+"-[0-9a-f]{16}-0"+c.decided+"$"), name)
			}
			for _, h := range c.headers {
				header, value, _ := strings.Cut(h, ": ")
				Expect(told[name].Values(header)).To(ContainElement(value), name)
			}
		}
	},
		Entry("none of the others", 0),
		Entry("all of the others", 100),
	)

	It("is explained, as a proxy with traces is", func() {
		t := newTraced()
		addRoute(t.api, "shop", "parents", "/parents", `{"headers":[{"name":"traceparent","regex":".*"}]}`, "blue")
		explained := func() string {
			return read(t.api, "/proxy/gw/explain?url=http://shop.example/parents&header=traceparent:00-"+w3c+"-"+w3cSpan+"-01&header=b3:"+long+"-"+span)
		}
		for _, config := range []map[string]any{{"upstream": "grpc"}, {"upstream": "grpc", "b3": true}} {
			t.trace(config)
			Expect(explained()).To(ContainSubstring(`"route":"parents","steps"`))
		}
		t.trace(map[string]any{"upstream": "grpc", "parent": "ignore"})
		Expect(explained()).NotTo(ContainSubstring(`"route":"parents","steps"`))
	})

	It("is off by default, and refused where parents are ignored", func() {
		t := newTraced()
		t.trace(map[string]any{"upstream": "grpc"})
		t.get("shop.example", "/off", "B3: "+long+"-"+span+"-1")
		Expect(t.spansOf("/off", 1)[0].Parent).To(BeEmpty())
		a, err := t.api.Do(limit(), http.MethodPost, "/globalconfig", "application/json",
			`{"globalconfig_name":"x","globalconfig_type":"globalconfig_tracing","config":{"upstream":"grpc","b3":true,"parent":"ignore"}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusBadRequest))
		Expect(fieldsOf(a.Body)).To(Equal([]string{"config.b3"}), a.Body)
	})
})
