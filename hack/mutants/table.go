package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// mutant is one change that breaks a rule.
type mutant struct {
	id     string // table and place in it, such as "plan-3"
	file   string // from the root of the module
	breaks string
	specs  []specs
	old    string // occurs once in the file
	new    string
}

// specs are the specs of a package that must fail.
type specs struct {
	dir string
	// focus is a regular expression for their names; empty means all.
	focus string
}

// readTables reads the tables of a directory, in the order of their names.
func readTables(dir string) ([]mutant, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.txt"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txt")
		list, err := parseTable(name, string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, list...)
	}
	return all, nil
}

// parseTable reads the mutants of a table. An empty line ends one.
func parseTable(name, text string) ([]mutant, error) {
	var list []mutant
	first := 0 // line of the current mutant
	var lines []string
	for i, line := range append(strings.Split(text, "\n"), "") {
		switch {
		case strings.HasPrefix(line, "#"):
		case line != "":
			if len(lines) == 0 {
				first = i + 1
			}
			lines = append(lines, line)
		case len(lines) > 0:
			m, err := parseMutant(lines)
			if err != nil {
				return nil, fmt.Errorf("the mutant in line %d: %w", first, err)
			}
			m.id = name + "-" + strconv.Itoa(len(list)+1)
			list, lines = append(list, m), nil
		}
	}
	return list, nil
}

func parseMutant(lines []string) (mutant, error) {
	file, breaks, ok := strings.Cut(lines[0], ": ")
	if !ok {
		return mutant{}, fmt.Errorf("%q must be the file, a colon, and what breaks", lines[0])
	}
	m := mutant{file: file, breaks: breaks}
	var before, after []string
	for _, line := range lines[1:] {
		rest := line[1:]
		switch line[0] {
		case '-':
			before = append(before, rest)
		case '+':
			after = append(after, rest)
		case ' ':
			before, after = append(before, rest), append(after, rest)
		default:
			where, ok := strings.CutPrefix(line, "specs: ")
			if !ok {
				return mutant{}, fmt.Errorf(`%q must begin with "specs: ", "-", "+" or a space`, line)
			}
			dir, focus, _ := strings.Cut(where, " ")
			m.specs = append(m.specs, specs{dir, focus})
		}
	}
	m.old, m.new = strings.Join(before, "\n"), strings.Join(after, "\n")
	switch {
	case len(m.specs) == 0:
		return mutant{}, errors.New(`it says no specs: add "specs: pkg/name" and, to be quick, words of their names`)
	case m.old == "" || m.old == m.new:
		return mutant{}, errors.New(`it changes nothing: give the text with "-" and its replacement with "+"`)
	}
	return m, nil
}

// choose returns the mutants that one of the words selects: an id, a table, or a part
// of the file's path. No words select all.
func choose(all []mutant, words []string) ([]mutant, error) {
	if len(words) == 0 {
		return all, nil
	}
	used := map[string]bool{}
	chosen := slices.DeleteFunc(slices.Clone(all), func(m mutant) bool {
		found := false
		for _, w := range words {
			table := m.id[:strings.LastIndex(m.id, "-")]
			if w == m.id || w == table || strings.Contains(w, "/") && strings.Contains(m.file, w) {
				used[w], found = true, true
			}
		}
		return !found
	})
	for _, w := range words {
		if !used[w] {
			return nil, fmt.Errorf("no mutant is meant by %q: give an id (plan-3), a table (plan) or a path (pkg/xds/plan/stream.go)", w)
		}
	}
	return chosen, nil
}

// sample returns at most n of list, in their order. The same seed chooses the same.
func sample(list []mutant, n int, seed uint64) []mutant {
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable, no secret
	places := random.Perm(len(list))[:min(n, len(list))]
	slices.Sort(places)
	var taken []mutant
	for _, i := range places {
		taken = append(taken, list[i])
	}
	return taken
}
