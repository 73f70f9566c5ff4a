// Package release builds a release twice, in two folders, and installs what it has.
package release
