package model

// ProxyProtocolConfig has a proxy read the PROXY protocol (version 1 or 2), with which a load balancer says whose
// connection it passes on. If several global configs of the type apply to a proxy, the first one by name does. A change of
// it changes the listeners.
// +page=proxyprotocol.md
// +example={from: [10.0.0.0/8]}
type ProxyProtocolConfig struct {
	// Addresses and ranges of the load balancers. Connections from others, and connections that do not begin with the
	// protocol, are closed.
	// +required
	// +minItems=1
	// +maxItems=maxRanges
	From []string `json:"from"`
}

func readProxyProtocol(v *validator, at, _ string, config JSON) Spec {
	var c ProxyProtocolConfig
	if !v.decode(at, config, &c) {
		return &c
	}
	if len(c.From) == 0 {
		v.add(at+".from", "is required: whoever may send the PROXY protocol chooses the client's address")
	}
	v.ranges(at+".from", c.From)
	return &c
}

func (c *ProxyProtocolConfig) uses() []Key { return nil }
