package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// ConsumerFilter finds the consumer whose credential a request has shown to another filter, and lets only some of them
// pass. A route's filter replaces its service's.
// +page=consumers.md
// +example={allow: [gold, silver], deny: [suspended]}
type ConsumerFilter struct {
	// Whether requests of nobody that is known are refused. Default: true.
	Required *bool `json:"required,omitempty"`
	// Groups, of which a consumer must be in one; absent means that each consumer passes.
	// +maxItems=maxFilterGroups
	// +items={type: string, minLength: 1, maxLength: 127}
	Allow []string `json:"allow,omitempty"`
	// Groups whose consumers are refused, even if they are in one of allow.
	// +maxItems=maxFilterGroups
	// +items={type: string, minLength: 1, maxLength: 127}
	Deny []string `json:"deny,omitempty"`
	// Header that tells the upstream the name of the consumer. Default: x-consumer-name.
	// +maxLength=maxHeaderName
	NameHeader string `json:"name_header,omitempty"`
	// Header that tells the upstream the groups of the consumer, with commas between them. Default: x-consumer-groups.
	// +maxLength=maxHeaderName
	GroupsHeader string `json:"groups_header,omitempty"`
}

// maxFilterGroups bounds groups that an Envoy compares one by one.
const maxFilterGroups = 50

func readConsumer(v *validator, at, _ string, config JSON) Spec {
	var f ConsumerFilter
	decoded := v.decode(at, config, &f)
	f.NameHeader = strings.ToLower(cmp.Or(f.NameHeader, "x-consumer-name"))
	f.GroupsHeader = strings.ToLower(cmp.Or(f.GroupsHeader, "x-consumer-groups"))
	if !decoded {
		return &f
	}
	v.groupList(at+".allow", f.Allow)
	v.groupList(at+".deny", f.Deny)
	seen := map[string]bool{}
	for _, h := range []struct{ field, name string }{{".name_header", f.NameHeader}, {".groups_header", f.GroupsHeader}} {
		if slices.Contains([]string{"authorization", "cookie", ClientHeader}, h.name) {
			v.add(at+h.field, "%q says something else of a client; choose another header", h.name)
			continue
		}
		v.headerName(at+h.field, h.name, seen)
	}
	return &f
}

// groupList accepts the names of groups in a filter.
func (v *validator) groupList(field string, groups []string) {
	if len(groups) > maxFilterGroups {
		v.add(field, "has %d groups; at most %d are allowed", len(groups), maxFilterGroups)
		return
	}
	for i, g := range groups {
		if !isGroup(g) {
			v.add(fmt.Sprintf("%s[%d]", field, i), "%q is not a group such as gold, or gold@shop for a team with the tag shop", g)
		}
	}
}

// consumerNames are the paths in the JSON of a filter whose texts are names of groups, or else of consumers.
func (f *Filter) consumerNames() map[string]bool {
	switch f.TypeName() {
	case FilterConsumer:
		return map[string]bool{"allow": true, "deny": true}
	case FilterRBAC:
		return map[string]bool{"allow.groups": true, "deny.groups": true, "allow.consumers": false, "deny.consumers": false}
	}
	return nil
}

// MapConsumers returns the configuration with each name of a group or consumer replaced by what change says for it.
func (f *Filter) MapConsumers(change func(path, name string, isGroup bool) string) (JSON, error) {
	names := f.consumerNames()
	if names == nil {
		return f.Config, nil
	}
	return mapStrings(f.Config, func(at textField, text string) (string, error) {
		for path, isGroup := range names {
			if strings.EqualFold(path, at.path) {
				return change(path, text, isGroup), nil
			}
		}
		return text, nil
	})
}

// Consumers are the names of groups and consumers that the filter compares.
func (f *ParsedFilter) Consumers() (names []string) {
	switch c := f.Spec.(type) {
	case *ConsumerFilter:
		return slices.Concat(c.Allow, c.Deny)
	case *RBACFilter:
		for _, r := range slices.Concat(c.Allow, c.Deny) {
			names = append(names, slices.Concat(r.Groups, r.Consumers)...)
		}
	}
	return names
}

func (f *ConsumerFilter) uses() []Key { return nil }

// IsRequired reports whether requests without a consumer are refused.
func (f *ConsumerFilter) IsRequired() bool { return f.Required == nil || *f.Required }

// Advice says what works, but probably not as intended.
func (f *ConsumerFilter) Advice() []string {
	if !f.IsRequired() && len(f.Allow) > 0 {
		return []string{"lets requests pass that no consumer is known for, so allow refuses only consumers in none of its groups"}
	}
	return nil
}
