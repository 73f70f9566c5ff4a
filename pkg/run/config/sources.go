package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
)

// value is the text of a setting and where it was found.
type value struct{ text, from string }

// layer is one source of settings.
type layer struct{ values map[string]value }

func badSetting(s Setting, v value) error {
	if s.secret {
		return fmt.Errorf("--%s: the value from %s is not %s", s.Name, v.from, s.allowed)
	}
	return fmt.Errorf("--%s: %q (from %s) is not %s", s.Name, v.text, v.from, s.allowed)
}

func flagLayer(flags map[string]string) layer {
	l := layer{map[string]value{}}
	for name, text := range flags {
		l.values[name] = value{text, "the command line"}
	}
	return l
}

// environment returns the variables that are not empty: many tools unset a variable by
// making it empty.
func environment(environ []string) map[string]string {
	env := map[string]string{}
	for _, entry := range environ {
		if name, text, _ := strings.Cut(entry, "="); text != "" {
			env[name] = text
		}
	}
	return env
}

func envLayer(env map[string]string) layer {
	l := layer{map[string]value{}}
	for _, name := range append(names(), FileFlag) {
		if text, ok := env[variable(name)]; ok {
			l.values[name] = value{text, "environment " + variable(name)}
		}
	}
	return l
}

// names lists every setting of every command.
func names() []string {
	var list []string
	for _, s := range table() {
		list = append(list, s.Name)
	}
	return list
}

// clientVariables lists the variables of the commands that call a server.
func clientVariables() []string {
	return []string{
		variablePrefix + "SERVER", variablePrefix + "TOKEN_FILE", variablePrefix + "CA_FILE", variablePrefix + "CONTEXT",
	}
}

// unknownVariables returns warnings about variables that look like settings. Those of
// the tests are known.
func unknownVariables(env map[string]string) []string {
	known := append([]string{variable(FileFlag), adminTokenVariable, clientSecretVariable}, clientVariables()...)
	for _, name := range names() {
		known = append(known, variable(name))
	}
	var list []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !strings.HasPrefix(name, variablePrefix) || strings.HasPrefix(name, variablePrefix+"TEST_") ||
			slices.Contains(known, name) {
			continue
		}
		list = append(list, fmt.Sprintf("environment %s is not a setting and has no effect; the nearest is %s", name,
			nearest(name, known)))
	}
	return list
}

// fileLayer reads a settings file: a YAML mapping from flag names to values.
func fileLayer(path string, readFile ReadFile) (layer, error) {
	data, err := readFile(path)
	if err != nil {
		return layer{}, fmt.Errorf("--%s: reading %s: %w", FileFlag, path, pathCause(err))
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return layer{}, fmt.Errorf("--%s: %s is not YAML: %s", FileFlag, path, strings.TrimPrefix(err.Error(), "yaml: "))
	}
	l := layer{map[string]value{}}
	if doc.Kind == 0 {
		return l, nil
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return l, nil
	}
	if root.Kind != yaml.MappingNode {
		return layer{}, fmt.Errorf("%s line %d: expected lines such as \"api-addr: 127.0.0.1:1323\"", path, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, val := root.Content[i], root.Content[i+1]
		from := fmt.Sprintf("%s line %d", path, key.Line)
		switch _, twice := l.values[key.Value]; {
		case !slices.Contains(names(), key.Value):
			return layer{}, fmt.Errorf("%s: %q is not a setting; the nearest is %q", from, key.Value,
				nearest(key.Value, names()))
		case twice:
			return layer{}, fmt.Errorf("%s: %q is given twice (first: %s)", from, key.Value, l.values[key.Value].from)
		case val.Kind != yaml.ScalarNode:
			return layer{}, fmt.Errorf("%s: %q must be a single value", from, key.Value)
		case val.Tag == "!!null":
			// A key without a value is a setting left at its default.
		default:
			l.values[key.Value] = value{val.Value, from}
		}
	}
	return l, nil
}

// pathCause returns the cause of an error in reading a file, without the path.
func pathCause(err error) error {
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		return pathErr.Err
	}
	return err
}

func nearest(name string, known []string) string {
	best, _ := suggest.Nearest(name, known)
	return best
}
