package suggest

import "strings"

// maxLength bounds the work for a hostile name; a longer name is similar to nothing.
const maxLength = 100

// Nearest returns the known name with the fewest edits to name, ignoring case; the
// first of several. near reports whether at least half of the characters stay. Without
// known names it returns "".
func Nearest(name string, known []string) (best string, near bool) {
	name = strings.ToLower(name[:min(len(name), maxLength+1)])
	least := -1
	for _, k := range known {
		if d := distance(name, strings.ToLower(k)); least < 0 || d < least {
			best, least = k, d
		}
	}
	return best, best != "" && len(name) <= maxLength && 2*least <= max(len(name), len(best))
}

// distance is the Levenshtein distance in bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
