package translate

import (
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// keySet makes the key set of a Secret of the object's namespace, whose entries are the names of keys with their
// hashes, and returns its name. A Secret with anything else is unusable as a whole: a key that was left out would be
// one that was revoked.
func (s *scope) keySet(path string, ref Ref) (name string, usable bool) {
	if !isNamed(ref) {
		s.problem(path, RefNotFound, "%q is not the name of a Secret", ref.Name)
		return "", false
	}
	state := s.readSecret(path, ref)
	if state == nil {
		return "", false
	}
	set := &model.KeySet{Name: objectName(ref.Namespace, ref.Name)}
	objects := []model.Object{set}
	for _, entry := range slices.Sorted(maps.Keys(state.object.Data)) {
		key := &model.APIKey{KeySet: set.Name, Name: entry, Hash: withoutLineFeed(string(state.object.Data[entry]))}
		if !model.IsKeyHash(key.Hash) {
			s.problem(path, Invalid, "%s is no key set: "+
				"its entry %s must be {SHA} and the base64 of the SHA-1 of a key's secret", ref, entry)
			return "", false
		}
		objects = append(objects, key)
	}
	for _, o := range objects {
		s.make(o, path)
	}
	return set.Name, true
}
