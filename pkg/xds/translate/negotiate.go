package translate

import (
	"net/http"
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// form is how some clients read refusals.
type form struct {
	// of matches the clients; nil matches those that no form before it matches.
	of *accesslogv3.AccessLogFilter
	// page means that the clients can show a page.
	page bool
	// write puts a title into a mapper. The title is a format; literal is the text of the mapper's body, if it has one.
	// nil leaves the line of text.
	write func(m *hcmv3.ResponseMapper, title, literal string)
}

// negotiated returns the mappers once for each form (ADR 0108): first all for text, so that the other forms cost its
// clients next to nothing. A mapper with a page is for those that can show one; others without a line of text are the
// same in all forms. own is for pages and JSON only: its responses have their text already.
func negotiated(list []*hcmv3.ResponseMapper, own *hcmv3.ResponseMapper, p page) []*hcmv3.ResponseMapper {
	// No response with a lower status refuses.
	out := []*hcmv3.ResponseMapper{{Filter: seam.StatusAtMost(http.StatusBadRequest - 1)}}
	for _, f := range []form{{of: acceptsText()}, {of: accepts("text/html", true), page: true, write: p.write}, {write: asProblem}} {
		if f.write != nil {
			out = append(out, f.apply(own))
		}
		for _, m := range list {
			if f.page || !seam.IsPage(m.GetBodyFormatOverride()) {
				out = append(out, f.apply(m))
			}
		}
		if f.of != nil {
			// What no mapper matches stays, and the mappers of the other forms are not tried.
			out = append(out, &hcmv3.ResponseMapper{Filter: f.of})
		}
	}
	return out
}

// apply returns a mapper for the clients of a form.
func (f form) apply(m *hcmv3.ResponseMapper) *hcmv3.ResponseMapper {
	m = proto.CloneOf(m)
	if f.of != nil {
		m.Filter = guarded(m.GetFilter(), f.of)
	}
	if f.write == nil {
		return m
	}
	if format := m.GetBodyFormatOverride(); seam.IsPlainText(format) {
		line := strings.TrimSuffix(format.GetTextFormatSource().GetInlineString(), "\n")
		f.write(m, strings.TrimSuffix(line, seam.InRequest), "")
	} else if line, ok := strings.CutSuffix(m.GetBody().GetInlineString(), "\n"); ok && format == nil {
		f.write(m, "%LOCAL_REPLY_BODY%", line)
	}
	return m
}

// guarded adds a condition on the client to a filter: after the status, and before an expression, which costs most.
func guarded(filter, client *accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	list := slices.Clone(filter.GetAndFilter().GetFilters())
	if len(list) == 0 {
		list = append(list, filter)
	}
	at := len(list)
	if list[at-1].GetExtensionFilter() != nil {
		at--
	}
	return seam.AllOf(slices.Insert(list, at, client)...)
}

// acceptsText matches clients that name no other form, and those of gRPC, which read the body as their message. What is
// most frequent comes first.
func acceptsText() *accesslogv3.AccessLogFilter {
	return seam.AnyOf(
		seam.MatchesHeader(seam.HeaderMatcher(ir.ValueMatch{Name: "accept", Exact: "*/*"})),
		seam.AllOf(accepts("text/html", false), accepts("application/json", false), accepts("application/problem+json", false)),
		seam.ForGRPC(),
	)
}

// accepts matches clients that name a media type, or those that do not.
func accepts(mediaType string, does bool) *accesslogv3.AccessLogFilter {
	contains := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Contains{Contains: mediaType}}
	return seam.MatchesHeader(&routev3.HeaderMatcher{
		Name: "accept", InvertMatch: !does, TreatMissingHeaderAsEmpty: true,
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: contains},
	})
}

// asProblem is for programs (RFC 9457). Envoy escapes the values.
func asProblem(m *hcmv3.ResponseMapper, title, literal string) {
	format := seam.JSONFormat(map[string]string{
		"title": title, "status": "%RESPONSE_CODE%", "request_id": "%REQ(X-REQUEST-ID):64%",
	})
	format.ContentType = "application/problem+json"
	rewrite(m, literal, format, seam.NoStore())
}

func rewrite(m *hcmv3.ResponseMapper, body string, format *corev3.SubstitutionFormatString, headers []*corev3.HeaderValueOption) {
	if m.BodyFormatOverride = format; body != "" {
		m.Body = seam.Inline(body)
	}
	m.HeadersToAdd = append(m.GetHeadersToAdd(), headers...)
}
