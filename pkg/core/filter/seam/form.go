package seam

import (
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

const (
	plainText = "text/plain"
	htmlText  = "text/html; charset=utf-8"
)

// InRequest is the end of a line of text with the request ID.
const InRequest = " (request " + RequestID + ")"

// PlainText is the form of a refusal for programs that ask for no other: a line of plain text (ADR 0092).
func PlainText(line string) *corev3.SubstitutionFormatString { return formatted(plainText, line+"\n") }

// IsPlainText reports whether PlainText made a format.
func IsPlainText(f *corev3.SubstitutionFormatString) bool { return f.GetContentType() == plainText }

// Page is the form of a refusal for people.
func Page(html string) *corev3.SubstitutionFormatString { return formatted(htmlText, html) }

// IsPage reports whether Page made a format.
func IsPage(f *corev3.SubstitutionFormatString) bool { return f.GetContentType() == htmlText }

func formatted(contentType, text string) *corev3.SubstitutionFormatString {
	return &corev3.SubstitutionFormatString{
		ContentType: contentType,
		Format:      &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: Inline(text)},
	}
}

// What a page may contain: no script, and nothing from elsewhere.
const (
	NothingElse = "default-src 'none'"
	OwnStyles   = NothingElse + "; style-src 'unsafe-inline'; img-src data:; font-src data:"
)

// PageHeaders are the headers of a page.
func PageHeaders(contains string) []*corev3.HeaderValueOption {
	return append(NoStore(),
		SetHeader("content-security-policy", contains+"; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"),
		SetHeader("x-content-type-options", "nosniff"),
		// The page's address may contain a code of an identity provider.
		SetHeader("referrer-policy", "no-referrer"))
}

// NoStore is for responses with a request ID, which belongs to one request.
func NoStore() []*corev3.HeaderValueOption {
	return []*corev3.HeaderValueOption{SetHeader("cache-control", "no-store")}
}

// ForGRPC matches requests of clients of gRPC and gRPC-Web.
func ForGRPC() *accesslogv3.AccessLogFilter {
	return MatchesHeader(HeaderMatcher(ir.ValueMatch{Name: "content-type", Prefix: "application/grpc"}))
}
