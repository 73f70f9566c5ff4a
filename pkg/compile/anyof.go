package compile

import (
	"errors"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostAnyOf(h *ir.Host, f *model.AnyOfFilter, at Place) (err error) {
	h.AnyOf, err = anyOf(f, at)
	return err
}

func addRouteAnyOf(r *ir.Route, f *model.AnyOfFilter, at Place) (err error) {
	r.AnyOf, err = anyOf(f, at)
	return err
}

// anyOf compiles a filter if all of its parts can be enforced. Without one of them, its credentials would be
// refused for no visible reason.
func anyOf(f *model.AnyOfFilter, at Place) (*ir.AnyOf, error) {
	a := &ir.AnyOf{}
	if f.APIKey != nil {
		a.Keys = keyAccess(f.APIKey)
	}
	if f.BasicAuth != nil {
		var err error
		if a.BasicAuth, err = basicAuthOf(f.BasicAuth, model.BasicAuthInAnyOf+".", at); err != nil {
			return nil, err
		}
	}
	if f.JWT != nil {
		if _, fault := f.JWT.Keys(); fault != "" {
			return nil, errors.New("the keys of its tokens are not known")
		}
		a.Tokens = tokensOf(f.JWT, at, true)
	}
	return a, nil
}
