// Command mutants asks whether the specs would notice. It changes one line of
// the code in a way that breaks a rule, runs the specs that hold the rule, and
// expects them to fail; then the next. The tables beside it (*.txt) say what is
// changed and what that breaks.
//
// It works in a copy of the work tree, in a temporary directory, and writes
// nowhere else; what is not committed takes part. bin/ is the work tree's.
package main
