// Command mutants checks that the specs notice mistakes. It changes one line of
// the code in a way that breaks a rule, runs the specs of that rule, and
// expects them to fail; then the next. The tables in its directory (*.txt) say
// what is changed and what that breaks.
//
// It works in a copy of the work tree, in a temporary directory, and writes
// nowhere else. The copy includes uncommitted changes; bin/ is the work tree's.
package main
