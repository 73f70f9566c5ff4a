package snapshot

import "slices"

// Files are what an Envoy has on its machine. Empty means that it has none of the kind.
type Files struct {
	// Country and ASN are databases, from which it knows where addresses are.
	Country, ASN string
	// Logs is a directory for access logs.
	Logs string
}

// Wants are kinds of files.
type Wants struct {
	Country, ASN bool
	// Logs are the global configs whose logs go to a file, sorted.
	Logs []string
}

// WithListeners returns the snapshot with other listeners, for all Envoys that get it.
func (s *Snapshot) WithListeners(list []*Resource) *Snapshot {
	out := *s
	out.Listeners, out.loopback = list, nil
	return &out
}

// WithFiles returns the snapshot for an Envoy with files. A listener that cannot be made for them is as for an Envoy
// without.
func (s *Snapshot) WithFiles(f Files) *Snapshot {
	if f == (Files{}) {
		return s
	}
	own := *s
	own.Listeners = slices.Clone(s.Listeners)
	for i, r := range s.Listeners {
		remake := s.forFiles[r.Name]
		if remake == nil {
			continue
		}
		if l, err := remake(f); err == nil {
			own.Listeners[i] = l
		}
	}
	if s.loopback != nil {
		own.loopback = own.buildLoopback
	}
	return &own
}
