package translate

import (
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// keySet makes the key set of a Secret, whose entries are the names of keys with their hashes, and returns its name. A
// Secret with anything else is unusable as a whole: a key that was left out would be one that was revoked.
func (s *scope) keySet(path string, ref Ref) (name string, usable bool) {
	state := s.readSecret(path, ref)
	if state == nil {
		return "", false
	}
	set := &model.KeySet{Name: objectName(ref.Namespace, ref.Name)}
	objects := []model.Object{set}
	for _, entry := range slices.Sorted(maps.Keys(state.object.Data)) {
		key := &model.APIKey{KeySet: set.Name, Name: entry, Hash: withoutLineFeed(string(state.object.Data[entry]))}
		if !model.IsKeyHash(key.Hash) {
			s.problem(path, Invalid, "%s is no key set: its entry %s must be {SHA} and the base64 of the SHA-1 of a key's secret", ref, entry)
			return "", false
		}
		objects = append(objects, key)
	}
	for _, o := range objects {
		s.make(o, path)
	}
	return set.Name, true
}

// readSecret returns a Secret that the object names and may name; nil, with a problem, if it is not there.
func (s *scope) readSecret(path string, ref Ref) *secretState {
	if !isNamed(ref) {
		s.problem(path, RefNotFound, "%q is not the name of a Secret", ref.Name)
		return nil
	}
	if !s.permits(path, ref) {
		return nil
	}
	s.use(ref)
	switch state := s.world.secrets[ref]; {
	case state == nil:
		s.problem(path, RefNotFound, "%s has not been read yet", ref)
	case state.unreadable != "":
		s.problem(path, RefNotFound, "%s cannot be read: %s", ref, state.unreadable)
	case state.object == nil:
		s.notFound(path, ref)
	default:
		return state
	}
	return nil
}
