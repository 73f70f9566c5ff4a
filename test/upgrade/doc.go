// Package upgrade updates from the version before (hack/previous.sh) to this one, and goes back, under traffic: real
// programs, databases and Envoys. Its specs need the build tag upgrade; make test-upgrade runs them.
package upgrade
