package server

// A database that never had a configuration looks like one that was lost. An
// Envoy that has resources, or what the program finds at its start
// (Options.Held), tells the two apart. An answer would take from every Envoy all
// that it has, so there is none until a configuration is written or the program
// is told that the database is meant to be empty. One that was emptied by writes
// has a revision and is never held.

// howOn says what ends a hold.
const howOn = "; restore the database, or apply the configuration; if it is meant to be empty, start with --allow-empty"

// Held says why no Envoy is answered, and what ends that; empty means that they
// are.
func (s *Server) Held() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == "" {
		return ""
	}
	return s.held + howOn
}

// reports notes that an Envoy came with resources.
func (s *Server) reports(proxy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keeper = proxy
	s.updateHold()
}

// updateHold begins or ends the hold. It needs mu.
func (s *Server) updateHold() (released bool) {
	switch {
	case s.held != "" && s.configured():
		s.held = ""
		s.opts.Log.Info("envoys are answered again: there is a configuration", "rev", s.revision)
		return true
	case s.held == "" && s.published && !s.configured() && s.keeper != "" && !s.opts.AllowEmpty:
		s.held = "the database has no configuration and never had one, but an Envoy of " + s.keeper + " has one that it got before"
		s.logHold()
	}
	return false
}

// configured reports whether there is or was a configuration. It needs mu.
func (s *Server) configured() bool {
	return s.revision > 0 && (s.opts.Configured == nil || s.opts.Configured())
}

func (s *Server) logHold() {
	s.opts.Log.Warn("no envoy is answered, because the database seems to be lost", "reason", s.held+howOn)
}
