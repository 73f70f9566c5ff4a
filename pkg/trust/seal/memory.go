package seal

import (
	"encoding/base64"
	"fmt"

	"github.com/tink-crypto/tink-go/v2/daead"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Memory seals with a key that only this process has, for a database that ends with the
// process. It is safe for concurrent use. Use NewMemory.
type Memory struct{ keys *keys }

var _ model.Sealer = (*Memory)(nil)

// NewMemory makes a new key.
func NewMemory() (*Memory, error) {
	handle, err := keyset.NewHandle(daead.AESSIVKeyTemplate())
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	aead, err := daead.New(handle)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return &Memory{&keys{handle: handle, aead: aead}}, nil
}

// Seal implements model.Sealer.
func (m *Memory) Seal(plain, context string) (string, error) {
	sealed, err := m.keys.aead.EncryptDeterministically([]byte(plain), []byte(context))
	if err != nil {
		return "", fmt.Errorf("sealing: %w", err)
	}
	return model.SealedPrefix + base64.RawURLEncoding.EncodeToString(sealed), nil
}

// Unseal implements model.Sealer. A text that does not open is a *model.Error of kind
// Invalid.
func (m *Memory) Unseal(sealed, context string) (string, error) {
	raw, err := decode(sealed)
	if err != nil {
		return "", err
	}
	plain, err := m.keys.open(raw, []byte(context))
	if err != nil {
		return "", &model.Error{
			Kind: model.Invalid, Message: "a sealed text does not open with the key of this process", Err: err,
		}
	}
	return string(plain), nil
}
