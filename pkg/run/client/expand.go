package client

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// The tags of values that this side puts into a document (ADR 0118). The server refuses tags, so that
// no document can mean anything else with them.
const (
	envTag    = "!env"    // a variable: NAME or NAME:-DEFAULT
	fileTag   = "!file"   // the contents of a file
	expandTag = "!expand" // a text with ${NAME}, ${NAME:-DEFAULT} and ${file:PATH}; $${ is ${
)

// maxExpandedFile bounds a file that is put into a document, in bytes.
const maxExpandedFile = 1 << 20

// expander replaces tagged values in documents.
type expander struct {
	lookup func(name string) (value string, set bool)
	// values are what was put in, the longest first, with what stands for them in errors.
	values [][2]string
	errs   []error
}

// hasTags reports whether a text may have values to expand.
func hasTags(data []byte) bool {
	return regexp.MustCompile(`!(env|file|expand)\b`).Match(data)
}

// expand replaces the tagged values of a tree that was read from file.
func (e *expander) expand(file string, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && slices.Contains([]string{envTag, fileTag, expandTag}, n.Tag) {
		value, err := e.value(file, n)
		if err != nil {
			e.errs = append(e.errs, fmt.Errorf("%s line %d: %w", file, n.Line, err))
			return
		}
		n.Tag, n.Style, n.Value = "!!str", yaml.DoubleQuotedStyle, value
	}
	for _, child := range n.Content {
		e.expand(file, child)
	}
}

func (e *expander) value(file string, n *yaml.Node) (string, error) {
	if e.lookup == nil {
		return "", fmt.Errorf("%s is not allowed here (--no-expand)", n.Tag)
	}
	switch n.Tag {
	case envTag:
		return e.variable(n.Value)
	case fileTag:
		return e.file(file, n.Value)
	}
	var errs []error
	text := regexp.MustCompile(`\$?\$\{[^}]*\}`).ReplaceAllStringFunc(n.Value, func(found string) string {
		if strings.HasPrefix(found, "$$") {
			return found[1:]
		}
		name := found[2 : len(found)-1]
		value, err := "", error(nil)
		if path, isFile := strings.CutPrefix(name, "file:"); isFile {
			value, err = e.file(file, path)
		} else {
			value, err = e.variable(name)
		}
		if err != nil {
			errs = append(errs, err)
		}
		return value
	})
	return text, errors.Join(errs...)
}

// variable reads NAME or NAME:-DEFAULT.
func (e *expander) variable(text string) (string, error) {
	name, standard, hasStandard := strings.Cut(text, ":-")
	if !regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(name) {
		return "", fmt.Errorf("%q is not the name of a variable, nor NAME:-DEFAULT", name)
	}
	value, set := e.lookup(name)
	switch {
	case hasStandard && value == "":
		return standard, nil
	case !set:
		return "", fmt.Errorf("the variable %s is not set; set it, or write %s:-DEFAULT", name, name)
	}
	e.remember(value, "${"+name+"}")
	return value, nil
}

// file reads a file without the line end at its end. A relative path begins at the directory of the document.
func (e *expander) file(document, path string) (string, error) {
	if !filepath.IsAbs(path) && document != "-" {
		path = filepath.Join(filepath.Dir(document), path)
	}
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxExpandedFile+1))
	switch {
	case err != nil:
		return "", err
	case len(data) > maxExpandedFile:
		return "", fmt.Errorf("%s has more than 1 MiB", path)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	e.remember(value, "${file:"+path+"}")
	return value, nil
}

// remember has a value hidden in errors.
func (e *expander) remember(value, name string) {
	if value != "" {
		e.values = append(e.values, [2]string{value, name})
	}
}

// err says all that is missing.
func (e *expander) err() error {
	if len(e.errs) == 0 {
		return nil
	}
	var lines []string
	for _, err := range e.errs {
		lines = append(lines, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return errors.New(strings.Join(lines, "; "))
}

// shortestHidden is the shortest value that is hidden wherever it is in a text; a shorter one would hide
// what is not meant, and is hidden in quotes.
const shortestHidden = 4

// hide replaces values by their names in a text that people read.
func hide(values [][2]string, text string) string {
	longest := slices.Clone(values)
	slices.SortStableFunc(longest, func(a, b [2]string) int { return cmp.Compare(len(b[0]), len(a[0])) })
	for _, v := range longest {
		quoted := strconv.Quote(v[0])
		text = strings.ReplaceAll(text, quoted, strconv.Quote(v[1]))
		if len(v[0]) >= shortestHidden {
			text = strings.NewReplacer(v[0], v[1], quoted[1:len(quoted)-1], v[1]).Replace(text)
		}
	}
	return text
}
