package translate

import (
	"fmt"
	"net/http"
	"net/netip"
	"strconv"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// MaintenanceFilter is the name of the filter that closes hosts for a while.
const MaintenanceFilter = "envoy.filters.http.rbac/maintenance"

// maintenance is the prefix of the policy that refuses requests; the status follows it. It is also the metadata
// key of a host's answer. An answer on the listener would change the listener.
const maintenance = "maintenance"

// wellKnown matches the paths that stay open (RFC 8615). The path is normalized when it is compared: it has no
// ".." segment and no double slash. A path with a segment that a backend may read differently, such as one with
// % or ;, does not match.
const wellKnown = `/\.well-known/[0-9A-Za-z._~-]+(/[0-9A-Za-z_-]+)*`

// maintenanceFilter refuses every request.
func maintenanceFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: MaintenanceFilter, config: &rbacv3.RBAC{Rules: refuseAll(maintenancePolicy(http.StatusServiceUnavailable))}}}
}

func maintenancePolicy(status int) string { return maintenance + "_" + strconv.Itoa(status) }

func maintenanceOfHost(h *ir.Host) ([]filterConfig, error) {
	m := h.Maintenance
	if m == nil {
		return nil, nil
	}
	rules := refuseAll(maintenancePolicy(m.Status))
	policy := rules.GetPolicies()[maintenancePolicy(m.Status)]
	policy.Permissions = []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_NotRule{NotRule: &rbacconfigv3.Permission{
		Rule: &rbacconfigv3.Permission_UrlPath{UrlPath: &matcherv3.PathMatcher{Rule: &matcherv3.PathMatcher_Path{
			Path: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(wellKnown)}},
		}}},
	}}}}
	if len(m.Except) > 0 {
		var ids []*rbacconfigv3.Principal
		for _, p := range m.Except {
			ids = append(ids, remoteIP(p))
			if p.Addr().Is4() { // proxies in front that listen on IPv6 write it like this
				ids = append(ids, remoteIP(netip.PrefixFrom(netip.AddrFrom16(p.Addr().As16()), p.Bits()+96)))
			}
		}
		policy.Principals = []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_NotId{NotId: &rbacconfigv3.Principal{
			Identifier: &rbacconfigv3.Principal_OrIds{OrIds: &rbacconfigv3.Principal_Set{Ids: ids}},
		}}}}
	}
	return []filterConfig{{name: MaintenanceFilter, config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: rules}}}}, nil
}

func remoteIP(p netip.Prefix) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_RemoteIp{
		RemoteIp: &corev3.CidrRange{AddressPrefix: p.Addr().String(), PrefixLen: u32(p.Bits())},
	}}
}

// maintenanceAnswer is a closed host's answer, for the formats of maintenanceReplies.
func maintenanceAnswer(m *ir.Maintenance) *structpb.Value {
	fields := map[string]*structpb.Value{"body": structpb.NewStringValue(m.Body), "content_type": structpb.NewStringValue(m.ContentType)}
	if m.RetryAfter > 0 {
		fields["retry_after"] = structpb.NewStringValue(strconv.Itoa(m.RetryAfter))
	}
	return structpb.NewStructValue(&structpb.Struct{Fields: fields})
}

// maintenanceReplies send the host's answer. gRPC clients receive a short text, since a gRPC response carries
// it in a header.
func maintenanceReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	of := func(field string) string {
		return fmt.Sprintf("%%METADATA(VIRTUAL_HOST:%s:%s:%s)%%", metadata, maintenance, field)
	}
	retryAfter := setHeader("retry-after", of("retry_after"))
	filter, err := celFilter("request.headers['content-type'].startsWith('application/grpc') && " +
		details + ".startsWith('rbac_access_denied_matched_policy[" + maintenance + "_')")
	list := []*hcmv3.ResponseMapper{{
		Filter: filter, StatusCode: u32(http.StatusServiceUnavailable), Body: inline("closed for maintenance"), HeadersToAdd: []*corev3.HeaderValueOption{retryAfter},
	}}
	for _, status := range []int{http.StatusOK, http.StatusNotFound, http.StatusGone, http.StatusServiceUnavailable} {
		if err != nil {
			break
		}
		filter, err = celFilter(fmt.Sprintf("%s == 'rbac_access_denied_matched_policy[%s]'", details, maintenancePolicy(status)))
		list = append(list, &hcmv3.ResponseMapper{
			Filter: filter, StatusCode: u32(status), HeadersToAdd: []*corev3.HeaderValueOption{setHeader("content-type", of("content_type")), retryAfter},
			BodyFormatOverride: &corev3.SubstitutionFormatString{
				OmitEmptyValues: true, Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: inline(of("body"))},
			},
		})
	}
	return list, err
}
