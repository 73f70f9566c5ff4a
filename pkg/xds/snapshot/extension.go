package snapshot

import (
	"crypto/sha256"
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	jwtauthnv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

// jwtAuthnType is the type of what the pieces of the extension are joined to.
const jwtAuthnType = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"

// The numbers of fields (extension.proto).
const (
	extensionNameField   = 1
	extensionConfigField = 2
)

// NewProvider makes a piece of the extension that verifies tokens: a message with one
// provider and one requirement, both of that name. The same name always stands for the
// same demands; only the keys may change.
func NewProvider(name string, m *jwtauthnv3.JwtAuthentication, objects ...ObjectRef) (*Resource, error) {
	if len(m.GetProviders()) != 1 || len(m.GetRequirementMap()) != 1 || m.GetProviders()[name] == nil || m.GetRequirementMap()[name] == nil {
		return nil, fmt.Errorf("encoding jwt provider %q: it is not one provider and one requirement of that name", name)
	}
	body, sum, err := encode(m)
	if err != nil {
		return nil, fmt.Errorf("encoding jwt provider %q: %w", name, err)
	}
	r := startResource(jwtAuthnType, name, sum, len(body))
	r.Objects = objects
	r.setBody(append(r.wire, body...))
	return r, nil
}

// ExtensionHead is the extension that verifies tokens, without its providers.
type ExtensionHead struct {
	name string
	body []byte
	sum  hash
}

// NewExtensionHead makes the bytes of what the extension called name consists of when no
// host needs it. closed denies what reaches it and has no requirement.
func NewExtensionHead(name string, closed *jwtauthnv3.JwtAuthentication) (*ExtensionHead, error) {
	body, _, err := encode(closed)
	if err != nil {
		return nil, fmt.Errorf("encoding extension %q: %w", name, err)
	}
	e := &corev3.TypedExtensionConfig{Name: name}
	return &ExtensionHead{name: name, body: body, sum: sha256.Sum256(append([]byte(e.GetName()+"\x00"), body...))}, nil
}

// Name is the name of the extension.
func (h *ExtensionHead) Name() string { return h.name }

// Join joins pieces, sorted by name, to the extension. It was made from what they were made
// from.
func (h *ExtensionHead) Join(providers []*Resource) *Resource {
	sums := sha256.New()
	sums.Write(h.sum[:])
	message := len(h.body)
	var objects []ObjectRef
	for _, p := range providers {
		message += len(p.Body.GetValue())
		sums.Write([]byte(p.Version))
		objects = append(objects, p.Objects...)
	}
	config := sizeField(anyTypeField, len(jwtAuthnType)) + sizeField(anyValueField, message)
	r := startResource(ExtensionType, h.name, hash(sums.Sum(nil)), sizeField(extensionNameField, len(h.name))+sizeField(extensionConfigField, config))
	r.Objects = objects
	wire := append(appendHead(r.wire, extensionNameField, len(h.name)), h.name...)
	wire = appendHead(wire, extensionConfigField, config)
	wire = protowire.AppendString(protowire.AppendTag(wire, anyTypeField, protowire.BytesType), jwtAuthnType)
	wire = appendHead(wire, anyValueField, message)
	// The maps of concatenated messages add up.
	wire = append(wire, h.body...)
	for _, p := range providers {
		wire = append(wire, p.Body.GetValue()...)
	}
	r.setBody(wire)
	return r
}
