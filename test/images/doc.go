// Package images tests the images: what they contain, and how they run in a Docker engine.
// `make test-images` builds them, starts a separate engine and runs these specs, which
// have the build tag images. The specs of the local stack are in the directory stack.
package images
