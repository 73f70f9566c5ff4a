package seam

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// Mutate returns the request after changes of its headers. What only Envoy knows stays a command in them.
func (r Request) Mutate(mutations []*mutationv3.HeaderMutation) Request {
	r.Headers = maps.Clone(r.Headers)
	for _, m := range mutations {
		Apply(r.Headers, m, r.Client)
	}
	return r
}

// Apply makes a change that does not depend on what only Envoy knows. An empty value changes nothing.
func Apply(headers map[string][]string, m *mutationv3.HeaderMutation, client string) {
	delete(headers, m.GetRemove())
	name, value := m.GetAppend().GetHeader().GetKey(), expand(headers, m.GetAppend().GetHeader().GetValue(), client)
	switch {
	case value == "":
	case m.GetAppend().GetAppendAction() == corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD:
		headers[name] = []string{value}
	default:
		headers[name] = append(slices.Clip(headers[name]), value)
	}
}

// expand returns the value of a template (Envoy's SubstitutionFormatter). A command whose value only Envoy knows stays.
func expand(headers map[string][]string, template, client string) string {
	command := regexp.MustCompile(`%%|%REQ\(([^()?]*)\??([^()?]*)\):([0-9]+)%|%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%`)
	return command.ReplaceAllStringFunc(template, func(whole string) string {
		switch m := command.FindStringSubmatch(whole); {
		case whole == "%%":
			return "%"
		case m[1] == "":
			return client
		default:
			values, there := headers[LowerASCII(m[1])]
			if !there {
				values = headers[LowerASCII(m[2])]
			}
			value := strings.Join(values[:min(1, len(values))], "")
			if most, err := strconv.Atoi(m[3]); err == nil && most < len(value) {
				value = value[:most]
			}
			return value
		}
	})
}
