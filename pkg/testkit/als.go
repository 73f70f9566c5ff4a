package testkit

import (
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
)

// Entries returns the entries of logs that came over Envoy's gRPC access log service since the start, in JSON.
func (c *Collector) Entries() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]string(nil), c.entries...)
}

type accessLogService struct {
	alsv3.UnimplementedAccessLogServiceServer
	collector *Collector
}

// StreamAccessLogs implements alsv3.AccessLogServiceServer. While the collector hangs, it reads nothing.
func (s accessLogService) StreamAccessLogs(stream alsv3.AccessLogService_StreamAccessLogsServer) error {
	c := s.collector
	c.noteKey(metadata.ValueFromIncomingContext(stream.Context(), KeyHeader))
	for {
		if err := c.wait(stream.Context()); err != nil {
			return err
		}
		m, err := stream.Recv()
		if err != nil {
			return err
		}
		if err := c.receiveEntries(m); err != nil {
			return err
		}
	}
}

func (c *Collector) receiveEntries(m *alsv3.StreamAccessLogsMessage) error {
	var all []proto.Message
	for _, e := range m.GetHttpLogs().GetLogEntry() {
		all = append(all, e)
	}
	for _, e := range m.GetTcpLogs().GetLogEntry() {
		all = append(all, e)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range all {
		text, err := protojson.Marshal(e)
		if err != nil {
			return err
		}
		c.entries = append(c.entries, string(text))
	}
	return nil
}
