package server

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
)

// Waits returns how many calls of Wait are active.
func (s *Server) Waits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, of := range s.waits {
		n += len(of)
	}
	return n
}

// NewCodec returns the codec of the server.
func NewCodec() encoding.CodecV2 { return newCodec() }

// Marshal encodes a message as the server sends it.
func Marshal(m plan.Message) (mem.BufferSlice, error) { return newCodec().Marshal(&response{m}) }

// AuthenticateStream runs a handler for a stream whose client is authenticated first.
func (s *Server) AuthenticateStream(stream grpc.ServerStream, handler grpc.StreamHandler) error {
	return s.authenticateStream(nil, stream, nil, handler)
}

// RequestsAt returns what Requests returns at a time.
func (s *Server) RequestsAt(now time.Time) []Requests { return s.requests.list(now) }
