package rest

import (
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// makeKeySecret gives a new API key a random secret, which it returns, unless the hash of one was
// sent. It returns nil for every other object.
func makeKeySecret(obj model.Object, sent []form.Value) []byte {
	key, ok := obj.(*model.APIKey)
	if !ok || slices.ContainsFunc(sent, func(v form.Value) bool { return strings.EqualFold(v.Name, "Key_hash") }) {
		return nil
	}
	secret := model.MakeKeySecret()
	key.Hash = model.HashKey(secret)
	return secret
}
