// Package maintenance is vh_filter_maintenance: it closes a service for a while.
package maintenance

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	name = "envoy.filters.http.rbac/maintenance"
	// word is the name of the value, and that of a host's answer in its metadata. An answer on the listener would change
	// the listener.
	word                     = "maintenance"
	key  seam.Key[*Response] = word
	// prefix begins the name of the policy that refuses requests; the status follows it.
	prefix = word + "_"
	// deniedPrefix begins Envoy's details of a refusal.
	deniedPrefix = "rbac_access_denied_matched_policy[" + prefix
)

// forGRPC is the answer to clients of gRPC. It is short, since a gRPC response carries it in a header.
const forGRPC = "closed for maintenance"

// closed is the text if a filter has none.
const closed = "this service is closed for maintenance\n"

// wellKnown matches the paths that stay open (RFC 8615). The path is normalized when it is compared: it has no ".."
// segment and no double slash. A path with a segment that a backend may read differently, such as one with % or ;, does
// not match.
const wellKnown = `/\.well-known/[0-9A-Za-z._~-]+(/[0-9A-Za-z_-]+)*`

// Response answers in place of all routes.
type Response struct {
	Status      int    `json:"status"`
	Body        string `json:"body"`
	ContentType string `json:"contentType"`
	// RetryAfter is in seconds; 0 sends no Retry-After header.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Except are client addresses that still reach the routes.
	Except []netip.Prefix `json:"except,omitempty"`
	// ExceptLists are names of shared lists of such addresses.
	ExceptLists []string `json:"exceptLists,omitempty"`
}

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{
		Type: model.FilterMaintenance, Config: seam.Hooks[*model.MaintenanceFilter](closeHost, nil),
		Name: name, Listener: everything, Disabled: true,
		Host: seam.OfHost(key, messages), ChangeHost: sayAnswer,
		Refuses: map[string]string{deniedPrefix: model.FilterMaintenance},
		Replies: replies, Refuse: refuse, Describe: describe,
	}
}

// closeHost closes a host. It adds a route for paths without one, since Envoy runs no filter for a request without a
// route.
func closeHost(h *ir.Host, f *model.MaintenanceFilter, _ seam.Place) error {
	if !f.IsOn() {
		return nil
	}
	h.Filters = key.In(h.Filters, &Response{
		Status: f.Status, Body: cmp.Or(f.Body, closed),
		ContentType: cmp.Or(f.ContentType, "text/plain"), RetryAfter: f.RetryAfter, Except: seam.Ranges(nil, f.Except),
		ExceptLists: f.ExceptLists,
	})
	h.Last = []*ir.Route{{
		Name: word, Match: ir.Match{PathKind: ir.PathPrefix, Path: "/"},
		Respond: &ir.Respond{Status: http.StatusNotFound, Body: "nothing is served for this host and path\n"}, Public: true,
	}}
	return nil
}

// everything refuses every request.
func everything(ir.Listener) []seam.Message {
	rules := seam.RefuseAll(policyOf(http.StatusServiceUnavailable))
	return []seam.Message{{Name: name, Config: &rbacv3.RBAC{Rules: rules}}}
}

func policyOf(status int) string { return prefix + strconv.Itoa(status) }

func messages(m *Response) ([]seam.Message, error) {
	rules := seam.RefuseAll(policyOf(m.Status))
	policy := rules.GetPolicies()[policyOf(m.Status)]
	open := &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_UrlPath{UrlPath: &matcherv3.PathMatcher{
		Rule: &matcherv3.PathMatcher_Path{Path: &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: &matcherv3.RegexMatcher{Regex: wellKnown}},
		}},
	}}}
	policy.Permissions = []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_NotRule{NotRule: open}}}
	if len(m.Except)+len(m.ExceptLists) > 0 {
		var ids []*rbacconfigv3.Principal
		for _, name := range m.ExceptLists {
			ids = append(ids, seam.Noted(name, seam.ListHas))
		}
		for _, p := range m.Except {
			for _, form := range seam.FormsOf(p) {
				ids = append(ids, remoteIP(form))
			}
		}
		exempt := &rbacconfigv3.Principal{
			Identifier: &rbacconfigv3.Principal_OrIds{OrIds: &rbacconfigv3.Principal_Set{Ids: ids}},
		}
		policy.Principals = []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_NotId{NotId: exempt}}}
	}
	return []seam.Message{{Name: name, Config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: rules}}}}, nil
}

func remoteIP(p netip.Prefix) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_RemoteIp{RemoteIp: &corev3.CidrRange{
		AddressPrefix: p.Addr().String(), PrefixLen: wrapperspb.UInt32(uint32(p.Bits())), //nolint:gosec // at most 128
	}}}
}

// sayAnswer adds a closed host's answer to its metadata, for the formats of replies.
func sayAnswer(h *ir.Host, out *routev3.VirtualHost) error {
	m := key.Of(h.Filters)
	if m == nil {
		return nil
	}
	fields := map[string]*structpb.Value{
		"body": structpb.NewStringValue(m.Body), "content_type": structpb.NewStringValue(m.ContentType),
	}
	if m.RetryAfter > 0 {
		fields["retry_after"] = structpb.NewStringValue(strconv.Itoa(m.RetryAfter))
	}
	out.Metadata = seam.Saying(out.GetMetadata(), word, structpb.NewStructValue(&structpb.Struct{Fields: fields}))
	return nil
}

// replies send the host's answer.
func replies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	of := func(field string) string {
		return fmt.Sprintf("%%METADATA(VIRTUAL_HOST:%s:%s:%s)%%", seam.Metadata, word, field)
	}
	retryAfter := seam.SetHeader("retry-after", of("retry_after"))
	toGRPC, err := seam.Reply(http.StatusForbidden, seam.Begins(deniedPrefix),
		http.StatusServiceUnavailable, forGRPC)
	toGRPC.Filter = seam.AllOf(slices.Insert(toGRPC.GetFilter().GetAndFilter().GetFilters(), 0, seam.ForGRPC())...)
	toGRPC.HeadersToAdd = []*corev3.HeaderValueOption{retryAfter}
	ownText, err2 := seam.Reply(http.StatusForbidden, seam.Details+" == '"+seam.Denied(policyOf(http.StatusServiceUnavailable))+
		"' && xds.virtual_host_metadata.filter_metadata['"+seam.Metadata+"']['"+word+"']['body'] == '"+
		strings.TrimSuffix(closed, "\n")+"\\n'", http.StatusServiceUnavailable, closed)
	ownText.HeadersToAdd = []*corev3.HeaderValueOption{retryAfter}
	list, err := []*hcmv3.ResponseMapper{toGRPC, ownText}, errors.Join(err, err2)
	for _, status := range []uint32{http.StatusOK, http.StatusNotFound, http.StatusGone, http.StatusServiceUnavailable} {
		if err != nil {
			break
		}
		var m *hcmv3.ResponseMapper
		m, err = seam.Reply(http.StatusForbidden, seam.Details+" == '"+seam.Denied(policyOf(int(status)))+"'", status, "")
		m.Body, m.BodyFormatOverride = nil, &corev3.SubstitutionFormatString{
			OmitEmptyValues: true,
			Format:          &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: seam.Inline(of("body"))},
		}
		m.HeadersToAdd = []*corev3.HeaderValueOption{seam.SetHeader("content-type", of("content_type")), retryAfter}
		list = append(list, m)
	}
	return list, err
}

func refuse(r seam.Request) (*seam.Refusal, error) {
	policy, why, err := isExempt(r)
	if err != nil || why != "" {
		return nil, err
	}
	status, err := strconv.Atoi(strings.TrimPrefix(policy, prefix))
	if err != nil {
		return nil, fmt.Errorf("explaining filter %q: %w", name, err)
	}
	answer := seam.Said(r.VirtualHost.GetMetadata(), word).GetStructValue()
	out := &seam.Refusal{
		Code: "maintenance", Status: status, Body: answer.GetFields()["body"].GetStringValue(),
		Message: fmt.Sprintf("service %s is closed by a vh_filter_maintenance, "+
			"from which neither the address %s nor the path is exempt", r.VirtualHost.GetName(), r.Client),
	}
	if seam.IsGRPC(r.Header("content-type")) {
		out.Status, out.Body = http.StatusServiceUnavailable, forGRPC
	}
	return out, nil
}

func describe(r seam.Request) (string, error) {
	_, why, err := isExempt(r)
	return "is closed for others, and allows this request: " + why, err
}

// isExempt returns why a closed service still serves the request; empty means that the policy refuses it.
func isExempt(r seam.Request) (policy, why string, err error) {
	message, err := seam.MessageOf(name, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return "", "", err
	}
	client, err := netip.ParseAddr(r.Client)
	if err != nil {
		return "", "", fmt.Errorf("explaining filter %q: %w", name, err)
	}
	for of, p := range message.GetRbac().GetRules().GetPolicies() {
		policy = of
		expr := p.GetPermissions()[0].GetNotRule().GetUrlPath().GetPath().GetSafeRegex().GetRegex()
		open, err := regexp.Compile("^(?:" + expr + ")$")
		if err != nil {
			return "", "", fmt.Errorf("explaining filter %q: %w", name, err)
		}
		if open.MatchString(r.Path) {
			return policy, "the path " + r.Path + " stays open", nil
		}
		for _, id := range p.GetPrincipals()[0].GetNotId().GetOrIds().GetIds() {
			if noted := id.GetSourcedMetadata().GetMetadataMatcher(); noted != nil {
				if in, err := r.NotedOf(noted); in || err != nil {
					return policy, "the address " + r.Client + " is in the list " + noted.GetPath()[0].GetKey(), err
				}
				continue
			}
			a, err := netip.ParseAddr(id.GetRemoteIp().GetAddressPrefix())
			in := netip.PrefixFrom(a, int(id.GetRemoteIp().GetPrefixLen().GetValue()))
			if err == nil && in.Contains(client) {
				return policy, "the address " + r.Client + " is in " + in.String(), nil
			}
		}
	}
	return policy, "", nil
}
