package model

// keySet is a set of keys. Most have one, for which a map would be large.
type keySet struct {
	one  Key // the zero Key if there is none, or if more has them all
	more map[Key]struct{}
}

func (s keySet) with(key Key) keySet {
	switch {
	case s.more != nil:
		s.more[key] = struct{}{}
	case s.one == Key{} || s.one == key:
		s.one = key
	default:
		s = keySet{more: map[Key]struct{}{s.one: {}, key: {}}}
	}
	return s
}

func (s keySet) without(key Key) keySet {
	delete(s.more, key)
	if s.one == key {
		s.one = Key{}
	}
	return s
}

func (s keySet) len() int {
	if s.one != (Key{}) {
		return 1
	}
	return len(s.more)
}

// all yields the keys.
func (s keySet) all(yield func(Key) bool) {
	if s.one != (Key{}) {
		yield(s.one)
		return
	}
	for key := range s.more {
		if !yield(key) {
			return
		}
	}
}
