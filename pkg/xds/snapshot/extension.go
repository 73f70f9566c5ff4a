package snapshot

import (
	"crypto/sha256"
	"fmt"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	jwtauthnv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	"google.golang.org/protobuf/encoding/protowire"
)

// jwtAuthnType is the type of the message that the pieces of the extension are joined to.
const jwtAuthnType = "type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"

// These are field numbers (extension.proto).
const (
	extensionNameField   = 1
	extensionConfigField = 2
)

// NewProvider makes a piece of the extension that verifies tokens: a message with one
// requirement called name, a provider of this name, and others whose names begin with it and
// a slash. Messages with the same name may differ only in their keys.
func NewProvider(name string, m *jwtauthnv3.JwtAuthentication, objects ...ObjectRef) (*Resource, error) {
	if len(m.GetRequirementMap()) != 1 || m.GetProviders()[name] == nil || m.GetRequirementMap()[name] == nil {
		return nil, fmt.Errorf("encoding jwt provider %q: it has no provider and one requirement of that name", name)
	}
	for other := range m.GetProviders() {
		if other != name && !strings.HasPrefix(other, name+"/") {
			return nil, fmt.Errorf("encoding jwt provider %q: it has another, %q", name, other)
		}
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

// NewExtensionHead makes the bytes of the extension called name as it is when no host needs
// it. closed denies requests that reach it without a requirement.
func NewExtensionHead(name string, closed *jwtauthnv3.JwtAuthentication) (*ExtensionHead, error) {
	body, _, err := encode(closed)
	if err != nil {
		return nil, fmt.Errorf("encoding extension %q: %w", name, err)
	}
	e := &corev3.TypedExtensionConfig{Name: name}
	return &ExtensionHead{name: name, body: body, sum: sha256.Sum256(append([]byte(e.GetName()+"\x00"), body...))}, nil
}

// Name returns the name of the extension.
func (h *ExtensionHead) Name() string { return h.name }

// Join joins pieces, sorted by name, to the extension. The result has the objects of all
// pieces.
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
	r := startResource(ExtensionType, h.name, hash(sums.Sum(nil)),
		sizeField(extensionNameField, len(h.name))+sizeField(extensionConfigField, config))
	r.Objects = objects
	wire := append(appendHead(r.wire, extensionNameField, len(h.name)), h.name...)
	wire = appendHead(wire, extensionConfigField, config)
	wire = protowire.AppendString(protowire.AppendTag(wire, anyTypeField, protowire.BytesType), jwtAuthnType)
	wire = appendHead(wire, anyValueField, message)
	// Concatenated messages merge their maps.
	wire = append(wire, h.body...)
	for _, p := range providers {
		wire = append(wire, p.Body.GetValue()...)
	}
	r.setBody(wire)
	return r
}
