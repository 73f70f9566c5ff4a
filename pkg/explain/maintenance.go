package explain

import (
	"fmt"
	"net/http"
	"net/netip"
	"regexp"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// maintenanceFilter closes hosts for a while.
const maintenanceFilter = "envoy.filters.http.rbac/maintenance"

// passMaintenance reports whether the request is allowed although its service may be closed. If not, it ends
// with the service's answer.
func (a *Answer) passMaintenance(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	f := findFilter(l, maintenanceFilter)
	if f == nil || isOff(f, vh, r) {
		return true, nil
	}
	policy, why, err := s.isExempt(vh, r)
	if err != nil || why != "" {
		return err == nil, err
	}
	err = a.endRefused(l, policy, Maintenance, fmt.Sprintf("service %s is closed by a vh_filter_maintenance, from which neither the address %s nor the path is exempt", a.Service, s.client))
	answer := vh.GetMetadata().GetFilterMetadata()["gatehouse"].GetFields()["maintenance"].GetStructValue()
	a.Body = answer.GetFields()["body"].GetStringValue()
	if isGRPC(s.headers.get("content-type")) {
		a.Status, a.Body = http.StatusServiceUnavailable, "closed for maintenance"
	}
	return false, err
}

func (f *Filter) describeMaintenance(p passed) error {
	_, why, err := p.request.isExempt(p.vh, p.route)
	f.Message = "is closed for others, and allows this request: " + why
	return err
}

// isExempt returns why a closed service still serves the request; empty means that the policy refuses it.
func (s subject) isExempt(vh *routev3.VirtualHost, r *routev3.Route) (policy, why string, err error) {
	message, err := messageFor(maintenanceFilter, vh, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return "", "", err
	}
	client, err := netip.ParseAddr(s.client)
	if err != nil {
		return "", "", fmt.Errorf("explaining filter %q: %w", maintenanceFilter, err)
	}
	for name, p := range message.GetRbac().GetRules().GetPolicies() {
		policy = name
		open, err := regexp.Compile("^(?:" + p.GetPermissions()[0].GetNotRule().GetUrlPath().GetPath().GetSafeRegex().GetRegex() + ")$")
		if err != nil {
			return "", "", fmt.Errorf("explaining filter %q: %w", maintenanceFilter, err)
		}
		if open.MatchString(s.path) {
			return policy, "the path " + s.path + " stays open", nil
		}
		for _, id := range p.GetPrincipals()[0].GetNotId().GetOrIds().GetIds() {
			if in, err := netip.ParsePrefix(fmt.Sprintf("%s/%d", id.GetRemoteIp().GetAddressPrefix(), id.GetRemoteIp().GetPrefixLen().GetValue())); err == nil && in.Contains(client) {
				return policy, "the address " + s.client + " is in " + in.String(), nil
			}
		}
	}
	return policy, "", nil
}
