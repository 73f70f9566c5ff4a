package model

import (
	"fmt"
	"strings"
)

// ProxyProtocolConfig has a proxy read the PROXY protocol (version 1 or 2), with which a load balancer says whose
// connection it passes on. If several global configs of the type apply to a proxy, the first one by name does. A change of
// it changes the listeners.
// +page=proxyprotocol.md
// +example={from: [10.0.0.0/8], tlvs: [{type: 2, name: authority}]}
type ProxyProtocolConfig struct {
	// Addresses and ranges of the load balancers. Connections from others, and connections that do not begin with the
	// protocol, are closed.
	// +required
	// +minItems=1
	// +maxItems=maxRanges
	From []string `json:"from"`
	// Texts that the load balancer adds in version 2, by type. Fields of access logs name them.
	// +maxItems=maxTLVs
	TLVs []BalancerTLV `json:"tlvs,omitempty"`
}

// BalancerTLV is a text that a load balancer adds to the PROXY protocol (TLV: type, length, value).
type BalancerTLV struct {
	// The type, such as 2 for the host name that the client requested (TLS), or 234 for the VPC endpoint of AWS.
	// +required
	// +minimum=1
	// +maximum=255
	Type int `json:"type"`
	// The name for fields of access logs.
	// +required
	// +minLength=1
	Name string `json:"name"`
}

const maxTLVs = 16

func readProxyProtocol(v *validator, at, _ string, config JSON) Spec {
	var c ProxyProtocolConfig
	if !v.decode(at, config, &c) {
		return &c
	}
	if len(c.From) == 0 {
		v.add(at+".from", "is required: whoever may send the PROXY protocol chooses the client's address")
	}
	v.ranges(at+".from", c.From, maxRanges)
	if len(c.TLVs) > maxTLVs {
		v.add(at+".tlvs", "has %d; at most %d are allowed", len(c.TLVs), maxTLVs)
		return &c
	}
	types, names := map[int]bool{}, map[string]bool{}
	for i, t := range c.TLVs {
		field := fmt.Sprintf("%s.tlvs[%d]", at, i)
		v.checkRange(field+".type", t.Type, 1, 255)
		v.tlvName(field+".name", t.Name)
		if types[t.Type] {
			v.add(field+".type", "%d is there twice", t.Type)
		}
		if names[t.Name] {
			v.add(field+".name", "%q is there twice", t.Name)
		}
		types[t.Type], names[t.Name] = true, true
	}
	return &c
}

// tlvName accepts a name that a format of Envoy can contain.
func (v *validator) tlvName(field, name string) {
	if name == "" || len(name) > maxTagText || strings.ContainsFunc(name, func(r rune) bool { return !isAlphanumeric(r) && r != '_' && r != '-' }) {
		v.add(field, "%q is not a name of up to %d letters, digits, _ and -", name, maxTagText)
	}
}

func (c *ProxyProtocolConfig) uses() []Key { return nil }
