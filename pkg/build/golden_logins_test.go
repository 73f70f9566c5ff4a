package build_test

import (
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// listenerLogins is the case that shows what every listener has for logins. The files of the other cases
// omit it.
const listenerLogins = "proxy-logins"

// withoutLogins returns listeners without their responses for logins, tokens and rules, and without the log
// of failed logins.
func withoutLogins(listeners []json.RawMessage) []json.RawMessage {
	GinkgoHelper()
	var list []json.RawMessage
	for _, l := range listeners {
		var read any
		Expect(json.Unmarshal(l, &read)).To(Succeed())
		text, err := json.Marshal(leaveOut(read, func(element string) bool {
			return strings.Contains(element, "jwt_authn_access_denied") || strings.Contains(element, "[claim_refused]") || strings.Contains(element, "[access_refused]")
		}))
		Expect(err).NotTo(HaveOccurred())
		list = append(list, text)
	}
	return list
}

// leaveOut removes mappers and access logs for which which is true of their JSON.
func leaveOut(v any, which func(string) bool) any {
	switch v := v.(type) {
	case map[string]any:
		for key, below := range v {
			if list, ok := below.([]any); ok && (key == "mappers" || key == "access_log") {
				below = slices.DeleteFunc(list, func(e any) bool { return which(string(must(json.Marshal(e)))) })
			}
			v[key] = leaveOut(below, which)
		}
		if log, ok := v["access_log"].([]any); ok && len(log) == 0 {
			delete(v, "access_log")
		}
	case []any:
		for i := range v {
			v[i] = leaveOut(v[i], which)
		}
	}
	return v
}
