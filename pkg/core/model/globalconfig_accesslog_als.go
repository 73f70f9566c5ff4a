package model

import (
	"fmt"
	"slices"
	"strings"
)

// disclosed is what entries of Envoy's access log service have in any case, and other logs leave out.
func disclosed() []string { return []string{"query", "referer", "metadata"} }

// als accepts a log for Envoy's access log service only with the consent to what its entries disclose.
func (v *validator) als(at string, c AccessLogConfig) {
	if c.Protocol != LogALS {
		if len(c.Discloses) > 0 {
			v.add(at+".discloses", "is for the protocol %s; other logs leave that out", LogALS)
		}
		return
	}
	if c.Upstream == "" {
		v.add(at+".upstream", "is required with the protocol %s: it names the collector", LogALS)
	}
	for i, what := range c.Discloses {
		v.oneOf(fmt.Sprintf("%s.discloses[%d]", at, i), what, disclosed())
	}
	missing := slices.DeleteFunc(disclosed(), func(what string) bool { return slices.Contains(c.Discloses, what) })
	if len(missing) > 0 {
		v.add(at+".discloses", "must name %s: entries of the protocol %s have the path with its query, the Referer, and the "+
			"metadata of filters with the claims of tokens, and Envoy cannot leave them out. There may be tokens in them; "+
			"the protocol %s sends none of these", strings.Join(missing, ", "), LogALS, LogOTLP)
	}
	fixed := func(field string, set bool) {
		if set {
			v.add(at+"."+field, "cannot be with the protocol %s, whose entries have a fixed form", LogALS)
		}
	}
	fixed("omit", len(c.Omit) > 0)
	fixed("path", c.Path != defaultLogsPath)
	fixed("rename", len(c.Rename) > 0)
}
