package server

import "github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"

// Revision returns the newest published revision; 0 before the first.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.revision
}

// Snapshot returns what the Envoys of a proxy should have; nil for a proxy that
// does not exist, and for all proxies before the first publish.
func (s *Server) Snapshot(proxy string) *snapshot.Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.snapshots[proxy]
}
