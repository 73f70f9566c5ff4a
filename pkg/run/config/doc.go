// Package config holds the settings of the process: one table from which the
// command line, the environment and the settings file are all read, with the
// precedence defaults < file < environment < flags.
//
// Invariants: every setting has a flag, an environment variable and a key in
// the file, all of the same name; a bad setting ends the program at startup with
// one line that says which, from where, and what is allowed; the password in a
// database URL is never part of an error or of a printed Config.
package config
