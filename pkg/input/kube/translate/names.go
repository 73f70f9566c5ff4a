package translate

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

const (
	// maxName bounds the name of an object of the store (pkg/core/model).
	maxName = 253
	// hashLength is the length of a hash in a name.
	hashLength = 16
)

// objectName returns the name of the store's object for NAMESPACE/NAME. A namespace has
// no dot, so no two objects share a name.
func objectName(namespace, name string) string { return shorten(namespace + "." + name) }

// ownName returns the name of an object of the store that has no name in Kubernetes. No
// name in Kubernetes has an underscore.
func ownName(namespace, name, what string) string {
	return shorten(namespace + "." + name + "_" + what)
}

// upstreamName returns the name of the upstream of a Service's port. variant
// distinguishes those with their own settings, and is empty for the one without.
func upstreamName(namespace, service string, port int, variant string) string {
	name := namespace + "." + service + "." + strconv.Itoa(port)
	if variant != "" {
		name += "." + variant
	}
	return shorten(name)
}

// shorten cuts a name that is too long. No name in Kubernetes has the underscore before
// its hash.
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
