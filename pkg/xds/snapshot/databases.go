package snapshot

import "slices"

// Databases are the files from which an Envoy knows where addresses are. Empty means that it has none of the kind.
type Databases struct{ Country, ASN string }

// Wants are kinds of databases.
type Wants struct{ Country, ASN bool }

// WithListeners returns the snapshot with other listeners, for all Envoys that get it.
func (s *Snapshot) WithListeners(list []*Resource) *Snapshot {
	out := *s
	out.Listeners, out.loopback = list, nil
	return &out
}

// WithDatabases returns the snapshot for an Envoy with databases. A listener that cannot be made for them is as for an
// Envoy without.
func (s *Snapshot) WithDatabases(d Databases) *Snapshot {
	if d == (Databases{}) {
		return s
	}
	located := *s
	located.Listeners = slices.Clone(s.Listeners)
	for i, r := range s.Listeners {
		locate := s.located[r.Name]
		if locate == nil {
			continue
		}
		if l, err := locate(d); err == nil {
			located.Listeners[i] = l
		}
	}
	if s.loopback != nil {
		located.loopback = located.buildLoopback
	}
	return &located
}
