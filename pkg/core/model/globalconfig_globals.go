package model

// GlobalsConfig has settings for all requests of a proxy.
// +page=performance.md#the-lean-profile
// +example={lean: true}
type GlobalsConfig struct {
	// Each request costs Envoy less: the access log has fewer fields, statistics of upstreams have no status codes and no
	// durations, and neither backends nor clients get headers about upstreams. A change of it changes the listeners.
	// Default: false.
	Lean bool `json:"lean"`
}

func readGlobals(v *validator, at, _ string, config JSON) Spec {
	var c GlobalsConfig
	v.decode(at, config, &c)
	return &c
}

func (c *GlobalsConfig) uses() []Key { return nil }
