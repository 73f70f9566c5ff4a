// Package postgres runs a real PostgreSQL server for tests, from the binaries
// that hack/postgres.sh puts into bin/.
//
// Invariants: the server listens on loopback only, keeps its files in the test's
// directory and ends with the test's process; a missing binary is an error,
// never a skipped test.
package postgres
