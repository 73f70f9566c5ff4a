package seam

import (
	"fmt"
	"strconv"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// RequestID is a format for the request ID. A client may choose it, so it is shown only if it cannot contain markup.
const RequestID = `%CEL(request.headers['x-request-id'].matches('^[0-9A-Za-z._:/+=-]+$') ? request.headers['x-request-id'] : 'none')%`

// DetailWords are the first words of the details: Envoy's own text, which ends in a colon before any other.
const DetailWords = `%CEL(re.extract(` + Details + `, r"^([A-Za-z_ ,.'{}\[\]]+)", r"\1"))%`

// ClaimFormat is the format of the access log for a claim of a token, with dots between the steps to it.
func ClaimFormat(claim string) string {
	return "%DYNAMIC_METADATA(" + TokenFilter + ":" + Claims + ":" + strings.ReplaceAll(claim, ".", ":") + "):256%"
}

// ClaimInLine is ClaimFormat for a line of text.
func ClaimInLine(claim string) string {
	value := "metadata.filter_metadata"
	path := append([]string{TokenFilter, Claims}, strings.Split(claim, ".")...)
	for _, step := range path {
		value += "[" + strconv.Quote(step) + "]"
	}
	// What is no text is JSON, without a line break.
	return FirstOf(256, Command{"CEL", unbroken(value)}, Command{"DYNAMIC_METADATA", strings.Join(path, ":")})
}

// InLine is the format for the text of a CEL expression in a line of text.
func InLine(expression string) string { return "%CEL(" + unbroken(expression) + "):256%" }

// unbroken is a question mark instead of a text that would break a line.
func unbroken(text string) string {
	return text + `.matches(r"^[^\x00-\x1f\x7f]*$") ? ` + text + ` : "?"`
}

// Command is a command of Envoy's formats. Both texts are printable ASCII.
type Command struct{ Name, Parameter string }

// FirstOf is the format for the first of commands that has a value, of which it has the first bytes.
func FirstOf(size int, commands ...Command) string {
	list := make([]string, len(commands))
	for i, c := range commands {
		list[i] = fmt.Sprintf(`{"command":%q,"param":%q}`, c.Name, c.Parameter)
	}
	return fmt.Sprintf(`%%COALESCE({"operators":[%s]}):%d%%`, strings.Join(list, ","), size)
}

// TextFormat is the form of a line of text in a log.
func TextFormat(line string) *corev3.SubstitutionFormatString {
	return &corev3.SubstitutionFormatString{
		Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: Inline(line + "\n")},
	}
}

// JSONFormat is the form of a line in a log.
func JSONFormat(formats map[string]string) *corev3.SubstitutionFormatString {
	fields := map[string]*structpb.Value{}
	for name, format := range formats {
		fields[name] = structpb.NewStringValue(format)
	}
	// A field of several parts leaves out those that are missing.
	return &corev3.SubstitutionFormatString{
		OmitEmptyValues: true,
		Format:          &corev3.SubstitutionFormatString_JsonFormat{JsonFormat: &structpb.Struct{Fields: fields}},
	}
}

// AllOf matches if all filters match. Put cheap ones first.
func AllOf(filters ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_AndFilter{
		AndFilter: &accesslogv3.AndFilter{Filters: filters},
	}}
}

// AnyOf matches if one of the filters matches. Put those that match most first.
func AnyOf(filters ...*accesslogv3.AccessLogFilter) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_OrFilter{
		OrFilter: &accesslogv3.OrFilter{Filters: filters},
	}}
}

// MatchesHeader matches requests with a header.
func MatchesHeader(m *routev3.HeaderMatcher) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_HeaderFilter{
		HeaderFilter: &accesslogv3.HeaderFilter{Header: m},
	}}
}

// StatusAtLeast matches responses with the status or a higher one.
func StatusAtLeast(status uint32) *accesslogv3.AccessLogFilter {
	return statusFilter(accesslogv3.ComparisonFilter_GE, status)
}

// StatusAtMost matches responses with the status or a lower one.
func StatusAtMost(status uint32) *accesslogv3.AccessLogFilter {
	return statusFilter(accesslogv3.ComparisonFilter_LE, status)
}

// statusFilter compares the status. Envoy requires a runtime key that may override the value; nothing sets
// it.
func statusFilter(op accesslogv3.ComparisonFilter_Op, status uint32) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_StatusCodeFilter{
		StatusCodeFilter: &accesslogv3.StatusCodeFilter{Comparison: &accesslogv3.ComparisonFilter{
			Op: op, Value: &corev3.RuntimeUInt32{DefaultValue: status, RuntimeKey: "gatehouse.login_status"},
		}},
	}}
}
