// Package migrated makes databases for specs: with tables, as after a first start, and
// without objects. A process migrates once for each database engine, and copies the
// result: under the race detector a migration takes more time than most specs.
//
// Invariants: nothing was ever sealed in them; none is used by a spec of migrations.
package migrated
