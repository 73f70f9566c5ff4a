package model

import (
	"database/sql/driver"
	"encoding/json"
	"fmt"
	"slices"
)

// Port is a TCP port of a proxy for requests.
type Port struct {
	Port int `json:"port"`
	// HTTPS means HTTPS; otherwise, the port is one for plain HTTP.
	HTTPS bool `json:"https,omitempty"`
}

// Ports are ports of a proxy. Those that are neither its Http_port nor its Https_port are open in addition to these.
// The zero value has none.
type Ports []Port

// MaxPorts bounds the ports of a proxy for requests: each is a listener, as those for connections.
const MaxPorts = MaxL4Ports

// Value stores the ports as JSON (database/sql).
func (p Ports) Value() (driver.Value, error) {
	if len(p) == 0 {
		return "", nil
	}
	b, err := json.Marshal([]Port(p))
	return string(b), err
}

// Scan reads what Value stores (database/sql).
func (p *Ports) Scan(src any) error {
	text, err := scanText(src)
	*p = nil
	if err == nil && text != "" {
		err = json.Unmarshal([]byte(text), (*[]Port)(p))
	}
	if err != nil {
		return fmt.Errorf("reading ports: %w", err)
	}
	return nil
}

// MorePorts are the ports for requests beside HTTPPort and HTTPSPort.
func (p *Proxy) MorePorts() (more []Port) {
	for _, port := range p.Ports {
		if port.Port != p.HTTPPort && port.Port != p.HTTPSPort {
			more = append(more, port)
		}
	}
	return more
}

func (p *Proxy) hasMorePort(port int) bool {
	return slices.ContainsFunc(p.MorePorts(), func(more Port) bool { return more.Port == port })
}

func (v *validator) ports(field string, ports []int) {
	if len(ports) > MaxPorts {
		v.add(field, "has %d entries; at most %d are allowed", len(ports), MaxPorts)
		return
	}
	for i, port := range ports {
		at := fmt.Sprintf("%s[%d]", field, i)
		if v.checkRange(at, port, 1, 65535); slices.Contains(ports[:i], port) {
			v.add(at, "is there twice")
		}
	}
}
