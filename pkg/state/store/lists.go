package store

import "github.com/gatehouse-gateway/gatehouse/pkg/core/model"

// checkLists refuses a filter that names a list of another type than it needs. The error has every field that does so.
func checkLists(r Reader, f *model.Filter) error {
	var wrong *model.Error
	for _, key := range f.Names() {
		if key.Kind != model.KindList {
			continue
		}
		l, err := Get[*model.List](r, key)
		if err != nil {
			return err
		}
		if l.Type == f.ListType() {
			continue
		}
		message := "names " + key.Path() + ", which is a list of " + l.Type + ", and not of " + f.ListType()
		if wrong == nil {
			wrong = &model.Error{
				Kind: model.Unworkable, Path: f.Key().Path(), Message: f.Key().Path() + " " + message, Hint: "name another list",
			}
		}
		for _, field := range model.FieldsNaming(f, key) {
			wrong.Fields = append(wrong.Fields, model.FieldError{Field: field, Message: message})
		}
	}
	if wrong == nil { // a nil *model.Error is not a nil error
		return nil
	}
	return wrong
}

// checkListType refuses another type for a list that filters name.
func checkListType(r Reader, l *model.List) error {
	was, err := Get[*model.List](r, l.Key())
	if model.IsKind(err, model.NotFound) || err == nil && was.Type == l.Type {
		return nil
	}
	if err != nil {
		return err
	}
	users, err := r.List(Query{Kind: model.KindFilter, To: []model.Key{l.Key()}, Limit: 1})
	if err != nil || len(users) == 0 {
		return err
	}
	return &model.Error{
		Kind: model.Unworkable, Path: l.Key().Path(),
		Message: l.Key().Path() + " is a list of " + was.Type + ", as " + users[0].Key().Path() + " needs it: its type cannot change",
		Hint:    "create another list, or remove the name from the filters first",
	}
}
