package model

// referrers is the set of the keys of what refers to an object. Most have one, for which a map would be large.
type referrers struct {
	one  Key // the zero Key if there is none, or if more has them all
	more map[Key]struct{}
}

func (s referrers) with(key Key) referrers {
	switch {
	case s.more != nil:
		s.more[key] = struct{}{}
	case s.one == Key{} || s.one == key:
		s.one = key
	default:
		s = referrers{more: map[Key]struct{}{s.one: {}, key: {}}}
	}
	return s
}

func (s referrers) without(key Key) referrers {
	delete(s.more, key)
	if s.one == key {
		s.one = Key{}
	}
	return s
}

func (s referrers) len() int {
	if s.one != (Key{}) {
		return 1
	}
	return len(s.more)
}

// all yields the keys.
func (s referrers) all(yield func(Key) bool) {
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
