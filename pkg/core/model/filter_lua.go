package model

import "slices"

// LuaFilter runs a script for requests and answers, where the operator of the gateway allows it
// (--allow-lua). A route's filter replaces its service's.
// +page=lua.md
// +example={script: "function envoy_on_request(handle) handle:headers():add(\"x-team\", \"shop\") end"}
type LuaFilter struct {
	// The script, in Lua 5.1. It defines envoy_on_request, envoy_on_response or both.
	// +required
	// +minLength=1
	// +maxLength=maxScript
	Script string `json:"script"`
	// Headers that the script sets for the upstream, such as one that names the user. The gateway removes these headers
	// from clients' requests, on all routes of the service.
	// +maxItems=maxHeaders
	// +items={type: string, minLength: 1, maxLength: maxHeaderName}
	// +example=[x-user]
	UpstreamHeaders []string `json:"upstream_headers,omitempty"`
	// Names of the upstreams that the script may call with httpCall. It can call no others.
	// +maxItems=maxScriptCalls
	// +example=[blue]
	Upstreams []string `json:"upstreams,omitempty"`
}

// maxScript bounds a script, in bytes. Every Envoy gets it for each route that has it, and
// each of its bytes as up to four.
const maxScript = 16384

// maxScriptCalls bounds the upstreams that a script may call.
const maxScriptCalls = 20

func readLua(v *validator, at, _ string, config JSON) Spec {
	var f LuaFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	switch n := len(f.Script); {
	case n == 0:
		v.add(at+".script", "is required")
	case n > maxScript:
		v.add(at+".script", "has %d bytes; at most %d are allowed", n, maxScript)
	}
	v.upstreamHeaders(at, f.UpstreamHeaders, v.claimHeader)
	if len(f.Upstreams) > maxScriptCalls {
		v.add(at+".upstreams", "has %d names; at most %d are allowed", len(f.Upstreams), maxScriptCalls)
	}
	for _, name := range f.Upstreams {
		v.name(at+".upstreams", name, true)
	}
	return &f
}

func (f *LuaFilter) uses() []Key {
	var keys []Key
	for _, name := range f.Upstreams {
		if key := UpstreamKey(name); name != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// luaNames are the paths of what uses lists.
func luaNames() map[string]Kind { return map[string]Kind{"upstreams": KindUpstream} }
