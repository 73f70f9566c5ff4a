package ir

import (
	"net/netip"
	"time"
)

// L4Listener is a port of a proxy for connections or datagrams that are not HTTP.
type L4Listener struct {
	Address string `json:"address"`
	Port    int    `json:"port"`
	// UDP takes datagrams. The listener then has one service, without ServerNames.
	UDP bool `json:"udp,omitempty"`
	// Services are sorted by name. Either there is one, which takes every connection, or each has ServerNames.
	Services []*L4Service `json:"services"`
	// AccessLog, AccessLogs, Lean, ProxyProtocol and Clients are those of the proxy's other listeners (see Listener). Of
	// Clients, what is about requests does not matter here.
	AccessLog     bool           `json:"accessLog,omitempty"`
	AccessLogs    []AccessLog    `json:"accessLogs,omitempty"`
	Lean          bool           `json:"lean,omitempty"`
	ProxyProtocol *ProxyProtocol `json:"proxyProtocol,omitempty"`
	Clients       *Clients       `json:"clients,omitempty"`
}

// L4Service sets where the connections or datagrams of a service go.
type L4Service struct {
	// Name is the service's name, unique within the gateway.
	Name string `json:"name"`
	// Port is 0 for a service of mode tls on the HTTPS port.
	Port int  `json:"port,omitempty"`
	UDP  bool `json:"udp,omitempty"`
	// ServerNames are exact names in lower case or "*.suffix": the service gets TLS connections that request one of them.
	// Empty takes all connections.
	ServerNames []string `json:"serverNames,omitempty"`
	// Order is the service's age: where two services claim the same, the lower one has it.
	Order int64 `json:"-"`
	// Clusters are sorted by name; empty closes connections, and drops datagrams. UDP has one at most.
	Clusters []WeightedCluster `json:"clusters,omitempty"`
	// TLS decrypts connections; nil means that they are passed on as they are.
	TLS *L4TLS `json:"tls,omitempty"`
	// IdleTimeout bounds the time without a byte, or of a session without a datagram; 0 means the default.
	IdleTimeout time.Duration `json:"idleTimeout,omitempty"`
	// MaxDuration bounds a connection; 0 means no bound.
	MaxDuration time.Duration `json:"maxDuration,omitempty"`
	// Deny refuses the addresses of its ranges, and each list of Allow those that it does not have.
	Deny  []netip.Prefix   `json:"deny,omitempty"`
	Allow [][]netip.Prefix `json:"allow,omitempty"`
}

// L4TLS sets how a service decrypts connections.
type L4TLS struct {
	// MinVersion is the oldest TLS version: 1.2 or 1.3.
	MinVersion string `json:"minVersion"`
	// Pairs are sorted by secret; there is at least one.
	Pairs []*Pair `json:"pairs"`
	// ClientCA are authorities, one of which must have signed the client's certificate; nil requests none.
	ClientCA *Authorities `json:"clientCA,omitempty"`
}
