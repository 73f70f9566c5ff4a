package translate

import (
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// list makes the list of a RouteFilter whose type is that of a list. One that cannot be used is left out, and closes
// what has a filter that names it. Its name has the type: a list that filters name cannot get another type.
func (s *scope) list(typeName, at, text string) {
	s.filter = filterState{exists: true, typeName: model.ListPrefix + typeName, list: typeName}
	config, err := model.CompactJSON(text)
	if err != nil {
		s.problem(at, Invalid, "%s", err)
		return
	}
	l := &model.List{Name: ownName(s.of.Namespace, s.of.Name, typeName), Type: typeName, Config: config}
	fields := map[string]string{"List_name": "metadata.name", "List_type": "spec.type", "List_config": at}
	if s.filter.usable = !s.reports(l.Validate(), fields); s.filter.usable {
		s.make(l, "")
	}
}

// listNamed returns the name of the list of a RouteFilter of the object's namespace, which must have a type.
func (s *scope) listNamed(path string, ref Ref, typeName string) (name string, usable bool) {
	s.use(ref)
	found := s.world.resultOf(ref)
	switch {
	case found == nil || !found.filter.exists:
		s.notFound(path, ref)
	case found.filter.list != typeName:
		s.problem(path, Invalid, "%s is of type %s, and must be of type %s", ref, found.filter.typeName, model.ListPrefix+typeName)
	case !found.filter.usable:
		p := found.closed()
		s.problem(path, p.Reason, "%s cannot be used: %s: %s", ref, p.Path, p.Message)
	default:
		return ownName(ref.Namespace, ref.Name, typeName), true
	}
	return "", false
}
