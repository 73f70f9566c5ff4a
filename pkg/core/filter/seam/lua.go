package seam

import (
	"fmt"
	"strings"
)

// LuaFilter is the name of the filter that runs scripts.
const LuaFilter = "envoy.filters.http.lua"

// LuaText returns a script as the text between quotes. It escapes every byte except harmless ones: a
// script could otherwise end the text and run outside its guard.
func LuaText(script string) string {
	var b strings.Builder
	for _, c := range []byte(script) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte(" _=:.,", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "\\%03d", c)
	}
	return b.String()
}
