package store

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// claimsPage bounds the claims that are looked up together.
const claimsPage = 500

// CheckClaims refuses changes after which two objects claim the same. It looks at what a transaction has written as a
// whole, so that a document may move a claim from one object to another in any order.
func CheckClaims(r Reader, changes Changes) error {
	claims, owners := []model.Key{}, map[model.Key]model.Key{}
	for w, err := range changes(model.KindConsumer) {
		if err != nil {
			return err
		}
		for _, claim := range model.Claims(w.After) {
			if _, claimed := owners[claim]; !claimed {
				claims, owners[claim] = append(claims, claim), w.Key
			}
		}
	}
	slices.SortFunc(claims, func(a, b model.Key) int { return strings.Compare(a.Text(), b.Text()) })
	conflict := &model.Error{Kind: model.Conflict, Hint: "remove it from one of the two; a credential belongs to one consumer"}
	for page := range slices.Chunk(claims, claimsPage) {
		holders, err := r.List(Query{Kind: model.KindConsumer, To: page})
		if err != nil {
			return err
		}
		for _, holder := range holders {
			for _, claim := range model.Claims(holder) {
				owner := owners[claim]
				if owner == (model.Key{}) || owner == holder.Key() || len(conflict.Fields) == MaxReferences {
					continue
				}
				conflict.Path = owner.Path()
				conflict.Message = fmt.Sprintf("%s of %s belongs to %s", model.CredentialText(claim.Text()), owner.Path(), holder.Key().Path())
				conflict.Fields = append(conflict.Fields, model.FieldError{Field: "Consumer_credentials", Message: conflict.Message})
			}
		}
	}
	if len(conflict.Fields) == 0 { // a nil *model.Error is not a nil error
		return nil
	}
	return conflict
}
