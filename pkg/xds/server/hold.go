package server

// A database that never had a configuration looks like one that was lost. Two
// facts tell them apart: an Envoy that already has resources, and what the
// program finds when it starts (Options.Held). An answer would remove all
// resources from every Envoy. So the server sends none until a configuration is
// written, or until the operator states that the database is empty on purpose. A
// database that was emptied by writes has a revision and never causes a hold.

// howOn describes how to end a hold.
const howOn = "; restore the database, or apply the configuration; if it is meant to be empty, start with --allow-empty"

// Held returns why no Envoy is answered and how to end that; empty means that
// Envoys are answered.
func (s *Server) Held() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held == "" {
		return ""
	}
	return s.held + howOn
}

// reports records that an Envoy connected with resources.
func (s *Server) reports(proxy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reportedProxy = proxy
	s.updateHold()
}

// updateHold begins or ends the hold. The caller holds mu.
func (s *Server) updateHold() (released bool) {
	switch {
	case s.held != "" && s.configured():
		s.held = ""
		s.opts.Log.Info("envoys are answered again: there is a configuration", "rev", s.revision)
		return true
	case s.held == "" && s.published && !s.configured() && s.reportedProxy != "" && !s.opts.AllowEmpty:
		s.held = "the database has no configuration and never had one, but an Envoy of " + s.reportedProxy +
			" has one that it got before"
		s.logHold()
	}
	return false
}

// configured reports whether there is or was a configuration. The caller holds
// mu.
func (s *Server) configured() bool {
	return s.revision > 0 && (s.opts.Configured == nil || s.opts.Configured())
}

func (s *Server) logHold() {
	s.opts.Log.Warn("no envoy is answered, because the database seems to be lost", "reason", s.held+howOn)
}
