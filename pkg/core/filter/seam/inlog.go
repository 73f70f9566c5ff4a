package seam

import (
	"fmt"
	"net/http"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Logs is the name of the list of logs in the metadata of a request and of a host. If there is none, the request is in
// each log that is not for others only.
const Logs = "logs"

// InLog matches the requests that are written to a log. attachedOnly means that these name the log.
//
// The metadata of the request costs some 150 instructions, and CEL 7,000. So only answers that Envoy gives without
// asking a filter, with 403 or 404, look at the metadata of the host.
func InLog(log string, attachedOnly bool) (*accesslogv3.AccessLogFilter, error) {
	const host = "xds.virtual_host_metadata.filter_metadata"
	says := fmt.Sprintf("'%[1]s' in %[2]s && '%[3]s' in %[2]s['%[1]s']", Metadata, host, Logs)
	named := fmt.Sprintf("'%s' in %s['%s']['%s']", log, host, Metadata, Logs)
	unsaid := inMetadata(&matcherv3.ValueMatcher{
		MatchPattern: &matcherv3.ValueMatcher_NullMatch_{NullMatch: &matcherv3.ValueMatcher_NullMatch{}},
	}, true)
	if attachedOnly {
		ofHost, err := CEL(says + " && " + named)
		answered := AllOf(unsaid, StatusAtLeast(http.StatusForbidden), StatusAtMost(http.StatusNotFound), ofHost)
		return AnyOf(namesLog(log), answered), err
	}
	ofHost, err := CEL("!has(xds.virtual_host_metadata) || !(" + says + ") || " + named)
	return AnyOf(
		AllOf(unsaid, AnyOf(StatusAtMost(http.StatusPaymentRequired), StatusAtLeast(http.StatusMethodNotAllowed), ofHost)),
		namesLog(log),
	), err
}

func namesLog(log string) *accesslogv3.AccessLogFilter {
	is := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{
		StringMatch: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: log}},
	}}
	return inMetadata(&matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_ListMatch{
		ListMatch: &matcherv3.ListMatcher{MatchPattern: &matcherv3.ListMatcher_OneOf{OneOf: is}},
	}}, false)
}

// inMetadata compares the list in the metadata of a request. absent is the result if there is none.
func inMetadata(v *matcherv3.ValueMatcher, absent bool) *accesslogv3.AccessLogFilter {
	return &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_MetadataFilter{
		MetadataFilter: &accesslogv3.MetadataFilter{
			Matcher: &matcherv3.MetadataMatcher{
				Filter: Metadata, Value: v,
				Path: []*matcherv3.MetadataMatcher_PathSegment{{
					Segment: &matcherv3.MetadataMatcher_PathSegment_Key{Key: Logs},
				}},
			},
			MatchIfKeyNotFound: wrapperspb.Bool(absent),
		},
	}}
}
