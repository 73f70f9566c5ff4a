package model

// MirrorFilter sends a copy of requests to another upstream, whose answers are discarded.
// +page=mirror.md
// +example={upstream: shadow, percent: 10}
type MirrorFilter struct {
	// +required
	Upstream string `json:"upstream"`
	// The share of requests that are copied, at random, in percent. Absent means all.
	// +minimum=0.01
	// +maximum=100
	Percent *float64 `json:"percent"`
	// Removes Authorization, Proxy-Authorization and Cookie from the copy. Default: true.
	StripCredentials *bool `json:"strip_credentials"`
}

func readMirror(v *validator, at, _ string, config JSON) Spec {
	var f MirrorFilter
	if !v.decode(at, config, &f) {
		return &f
	}
	v.name(at+".upstream", f.Upstream, true)
	if p := f.Percent; p != nil && (*p < 0.01 || *p > 100) {
		v.add(at+".percent", "%v is not between 0.01 and 100", *p)
	}
	return &f
}

// Millionths is how many of a million requests are copied.
func (f *MirrorFilter) Millionths() int {
	const all, percent = 1_000_000, 10_000
	if f.Percent == nil {
		return all
	}
	return int(*f.Percent*percent + 0.5)
}

// Strips reports whether the copy lacks the credentials of the client.
func (f *MirrorFilter) Strips() bool { return f.StripCredentials == nil || *f.StripCredentials }

// Advice says what is legal and probably not meant.
func (f *MirrorFilter) Advice() []string {
	if f.Strips() {
		return nil
	}
	return []string{"sends the passwords, tokens and cookies of clients to upstream " + f.Upstream +
		" too (strip_credentials is false)"}
}

// mirrorNames are the paths of what uses lists.
func mirrorNames() map[string]Kind { return map[string]Kind{"upstream": KindUpstream} }

func (f *MirrorFilter) uses() []Key {
	if f.Upstream == "" {
		return nil
	}
	return []Key{UpstreamKey(f.Upstream)}
}
