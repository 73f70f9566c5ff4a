package model

import "time"

// ConnectionsConfig bounds what the connections of clients to a proxy may cost. An absent bound, and 0, is the default. If
// several global configs of the type apply to a proxy, the first one by name does. A change of it changes the listeners.
// +page=connections.md
// +example={max_connections: 20000, idle_timeout: 5m, keepalive: 30s, slow_reader_timeout: 1m}
type ConnectionsConfig struct {
	// Connections that each listener of an Envoy may have at the same time; further connections are closed immediately.
	// Default: no limit but that of the Envoy (--max-connections).
	// +minimum=0
	// +maximum=maxClientConnections
	MaxConnections int `json:"max_connections,omitempty"`
	// New connections that one address may make in a unit of time, to all Envoys together; further connections are closed. A
	// rate-limit engine counts them, and all connections are accepted while it is away. Default: no limit.
	// +pattern="^[0-9]{1,9}/(second|minute|hour|day|week|month|year)$"
	NewPerClient string `json:"new_per_client,omitempty"`
	// Limit is what NewPerClient means: a limit as filters state it. Nil means none.
	Limit *RateLimitFilter `json:"-"`
	// Requests after which a connection is closed. Default: no limit.
	// +minimum=0
	// +maximum=maxClientConnections
	MaxRequests int `json:"max_requests,omitempty"`
	// Age at which a connection is closed, after the requests that it has then, 1s to 24h. Default: no limit.
	// +anyOf=[{type: string}]
	MaxAge Duration `json:"max_age,omitempty"`
	// Time after which a connection without a request is closed, 1s to 24h. Default: 1h.
	// +anyOf=[{type: string}]
	IdleTimeout Duration `json:"idle_timeout,omitempty"`
	// Time that a closing connection of HTTP/2 still accepts requests, 1s to 1h. Default: 5s.
	// +anyOf=[{type: string}]
	DrainTimeout Duration `json:"drain_timeout,omitempty"`
	// Silence after which the kernel asks whether the client is still there, in whole seconds, 1s to 2h. Three questions
	// without an answer end the connection. A change of it opens the ports anew, and may reset a connection that arrives at
	// that moment. Default: never.
	// +anyOf=[{type: string}]
	Keepalive Duration `json:"keepalive,omitempty"`
	// Time to receive the headers of a request, 1s to 1h. Default: 10s.
	// +anyOf=[{type: string}]
	HeadersTimeout Duration `json:"headers_timeout,omitempty"`
	// Time to receive a whole request, 1s to 24h. Default: 300s.
	// +anyOf=[{type: string}]
	RequestTimeout Duration `json:"request_timeout,omitempty"`
	// Time without a byte in either direction after which a request ends, 1s to 24h; timeouts.idle of a route replaces it.
	// Default: 300s.
	// +anyOf=[{type: string}]
	StreamIdleTimeout Duration `json:"stream_idle_timeout,omitempty"`
	// Time that a client may read so slowly that the connection's buffer never gets half empty, 1s to 1h; then the
	// connection is closed. Default: never.
	// +anyOf=[{type: string}]
	SlowReaderTimeout Duration `json:"slow_reader_timeout,omitempty"`
	// The largest size of a request's headers together, in KiB; larger ones get 431. Default: 60.
	// +minimum=0
	// +maximum=maxHeadersKiB
	HeadersKiB int `json:"headers_kib,omitempty"`
	// The largest number of headers of a request; more get 431. Default: 100.
	// +minimum=0
	// +maximum=maxHeadersCount
	Headers int `json:"headers,omitempty"`
	// Requests that a connection of HTTP/2 may have at the same time. Default: 100.
	// +minimum=0
	// +maximum=maxStreams
	MaxStreams int `json:"max_streams,omitempty"`
}

const (
	maxClientConnections = 1000000
	// maxHeadersKiB bounds what an Envoy holds for each request before a route says who it is for.
	maxHeadersKiB, maxHeadersCount = 256, 1000
	// maxStreams bounds what one connection can make an Envoy hold.
	maxStreams = 1000
)

// connectionsPrefix begins the name of the limit of a global config. No filter has such a name.
const connectionsPrefix = "connections/"

func readConnections(v *validator, at, name string, config JSON) Spec {
	var c ConnectionsConfig
	if !v.decode(at, config, &c) {
		return &c
	}
	if c.NewPerClient != "" && readRate(v, at+".new_per_client", c.NewPerClient) != nil {
		c.Limit = &RateLimitFilter{}
		c.Limit.readStated(v, at, connectionsPrefix+name, StatedLimit{Per: "client", Limit: c.NewPerClient})
	}
	for _, n := range []struct {
		field      string
		have, most int
	}{
		{"max_connections", c.MaxConnections, maxClientConnections},
		{"max_requests", c.MaxRequests, maxClientConnections},
		{"headers_kib", c.HeadersKiB, maxHeadersKiB},
		{"headers", c.Headers, maxHeadersCount},
		{"max_streams", c.MaxStreams, maxStreams},
	} {
		v.checkRange(at+"."+n.field, n.have, 0, n.most)
	}
	for _, d := range []struct {
		field string
		have  Duration
		most  time.Duration
	}{
		{"max_age", c.MaxAge, 24 * time.Hour},
		{"idle_timeout", c.IdleTimeout, 24 * time.Hour},
		{"drain_timeout", c.DrainTimeout, time.Hour},
		{"keepalive", c.Keepalive, 2 * time.Hour},
		{"headers_timeout", c.HeadersTimeout, time.Hour},
		{"request_timeout", c.RequestTimeout, 24 * time.Hour},
		{"stream_idle_timeout", c.StreamIdleTimeout, 24 * time.Hour},
		{"slow_reader_timeout", c.SlowReaderTimeout, time.Hour},
	} {
		if have := time.Duration(d.have); have != 0 && (have < time.Second || have > d.most) {
			v.add(at+"."+d.field, "%s is not between 1s and %s", have, d.most)
		}
	}
	if d := time.Duration(c.Keepalive); d > time.Second && d%time.Second != 0 {
		v.add(at+".keepalive", "%s is not a number of whole seconds", d)
	}
	return &c
}

func (c *ConnectionsConfig) uses() []Key { return nil }
