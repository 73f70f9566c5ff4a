package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// maxName bounds the name of an object of the store (pkg/model).
	maxName = 253
	// hashLength is the length of a hash in a name.
	hashLength = 16
)

// objectName is the name of the object of the store that is made of NAMESPACE/NAME. No
// namespace has a dot, so that no two objects have one name.
func objectName(namespace, name string) string { return shorten(namespace + "." + name) }

// ownName is the name of an object of the store that Kubernetes has none for: no name of
// Kubernetes has an underscore.
func ownName(namespace, name, what string) string {
	return shorten(namespace + "." + name + "_" + what)
}

// upstreamName is the name of the upstream of a Service's port; variant tells those with
// settings of their own from each other, and is empty for the one without.
func upstreamName(namespace, service string, port int, variant string) string {
	name := namespace + "." + service + "." + strconv.Itoa(port)
	if variant != "" {
		name += "." + variant
	}
	return shorten(name)
}

// shorten cuts a name that is too long. The underscore before its hash is in no name of
// Kubernetes.
func shorten(name string) string {
	if len(name) <= maxName {
		return name
	}
	return name[:maxName-hashLength-1] + "_" + hash(name)
}

func hash(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:hashLength]
}
