package server

// Waits is how many calls of Wait the server knows.
func (s *Server) Waits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, of := range s.waits {
		n += len(of)
	}
	return n
}
