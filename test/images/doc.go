// Package images tests the images: what they hold, and how they run in a Docker engine.
// `make test-images` builds them, starts an engine of its own and runs these specs, which
// have the build tag images. The specs of the local stack are in the directory stack.
package images
