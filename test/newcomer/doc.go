// Package newcomer follows the repository as a newcomer would: it runs the
// commands of README.md as written, and the checks on a machine that has nothing
// installed. The script run does all of README.md on a clean clone, `make test`
// last; CONTRIBUTING.md says when to run it. lines.txt has what newcomers type
// next, slips included, with what that shows: a spec and run both type it. Other
// specs follow docs/tutorials line by line, and try the rows of docs/troubleshooting.md.
package newcomer
