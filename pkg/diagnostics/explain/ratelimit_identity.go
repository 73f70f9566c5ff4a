package explain

import (
	"cmp"
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	metadatav3 "github.com/envoyproxy/go-control-plane/envoy/type/metadata/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// identities are what filters say about the client, by the name of the filter.
var identities = knownIdentities() //nolint:gochecknoglobals // never written: a constant

func knownIdentities() map[string]*seam.Identity {
	all := map[string]*seam.Identity{}
	for _, f := range filter.List() {
		if f.Identity != nil {
			all[f.Name] = f.Identity
		}
	}
	return all
}

// isOn reports whether a filter that is off on the listener is on for the route.
func (p passed) isOn(name string) bool {
	return !seam.IsOff(&hcmv3.HttpFilter{Name: name, Disabled: true}, p.vh, p.route)
}

// uncounted returns why none of the limits can count: nothing on the route provides what they count
// by. Empty means that at least one may count.
func uncounted(p passed, limits []*routev3.RateLimit) (why string) {
	for _, limit := range limits {
		missing := ""
		for _, action := range limit.GetActions() {
			name := action.GetMetadata().GetMetadataKey().GetKey()
			if by := identities[name]; by != nil && !p.isOn(name) {
				missing = "limits nothing: it counts by " + by.Needs
			}
		}
		if missing == "" {
			return ""
		}
		why = cmp.Or(why, missing)
	}
	return why
}

// metadata returns what a filter has found about the request. If there is nothing, missing is the
// reason.
func (p passed) metadata(key *metadatav3.MetadataKey) (value, missing string, err error) {
	by := identities[key.GetKey()]
	if by == nil {
		return "", "", fmt.Errorf("metadata of %q is not known", key.GetKey())
	}
	var path []string
	for _, step := range key.GetPath() {
		path = append(path, step.GetKey())
	}
	return by.Find(p.seen(nil), path)
}
