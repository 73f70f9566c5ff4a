package scrape

import "io"

// LinesOf reads a response without a server and without a clock.
func LinesOf(body io.Reader, prefixes []string) (string, error) {
	lines, err := linesOf(body, prefixes)
	if err != nil {
		return "", err
	}
	return lines.String(), nil
}
