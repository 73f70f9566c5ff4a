// Package stack has the specs of the local stack, docker-compose.yaml: what `make up`
// starts, what continues when each of its containers is killed, and what recovers. They
// need a Docker engine (DOCKER_HOST), build images and take minutes: `make test-images`
// runs them (build tag images).
package stack
