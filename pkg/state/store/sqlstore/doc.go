// Package sqlstore is the store of Gatehouse on SQLite and PostgreSQL.
//
// The rows are the model types themselves; a table, its columns and its key
// follow from the type (table.go), so a new kind needs only a migration here.
//
// Invariants: one transaction at a time writes (SQLite has one writer, on
// PostgreSQL each locks the revision row first), so revisions are gap-free and in
// order of commit, and what a transaction has checked stays true until it
// commits; a reader works on one snapshot and never waits for the writer; no
// value of a row is ever logged. A writer remembers what it has read and sends
// new rows together (memory.go, batch.go); its own reads see them.
package sqlstore
