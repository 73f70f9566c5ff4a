// Package newcomer does what somebody does who sees the repository for the
// first time: it runs the commands of README.md as they stand there, and the
// checks on a machine that has nothing yet. The script beside it does all of
// README on a clean clone, `make test` last; CONTRIBUTING.md says when to run it.
package newcomer
