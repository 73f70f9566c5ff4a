package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Context is a server under a name.
type Context struct {
	Name   string `yaml:"name"`
	Server string `yaml:"server"`
	// TokenFile holds the token; empty means that none is sent.
	TokenFile string `yaml:"token_file,omitempty"`
	// CAFile holds the certificates of the authorities that may have signed the
	// server's; empty means those of the system.
	CAFile string `yaml:"ca_file,omitempty"`
}

// Contexts is the contexts file. The zero value is one without contexts.
type Contexts struct {
	// Current is the name of the context in use; empty means none.
	Current  string    `yaml:"current,omitempty"`
	Contexts []Context `yaml:"contexts"`
}

// ContextsPath is the place of the contexts file by the XDG base directory
// specification, which says to ignore a relative path; "" without a home.
func ContextsPath(getenv func(string) string) string {
	if dir := getenv("XDG_CONFIG_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "gatehouse", "contexts.yaml")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".config", "gatehouse", "contexts.yaml")
	}
	return ""
}

// ReadContexts reads the contexts file; one that is not there is empty.
func ReadContexts(path string) (Contexts, error) {
	if path == "" {
		return Contexts{}, nil
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Contexts{}, nil
	}
	if err != nil {
		return Contexts{}, fmt.Errorf("reading the contexts file: %w", err)
	}
	var c Contexts
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&c); err != nil && !errors.Is(err, io.EOF) {
		return Contexts{}, fmt.Errorf("reading the contexts file %s: %w; correct it, "+
			"or remove it and use gatehouse context set", path, err)
	}
	return c, nil
}

// Write replaces the contexts file at path. Only its owner may read it.
func (c Contexts) Write(path string) error {
	if path == "" {
		return errors.New("writing the contexts file: neither HOME nor XDG_CONFIG_HOME is set")
	}
	data, err := yaml.Marshal(c)
	if err != nil {
		return fmt.Errorf("writing the contexts file: %w", err)
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("writing the contexts file: %w", err)
	}
	f, err := os.CreateTemp(dir, ".contexts-") // mode 0600
	if err != nil {
		return fmt.Errorf("writing the contexts file: %w", err)
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("writing the contexts file: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// Find returns the context called name.
func (c Contexts) Find(name string) (Context, error) {
	var names []string
	for _, x := range c.Contexts {
		if x.Name == name {
			return x, nil
		}
		names = append(names, x.Name)
	}
	if len(names) == 0 {
		return Context{}, fmt.Errorf("context %q does not exist, nor does any other; "+
			"create it with gatehouse context set %s --server URL", name, name)
	}
	return Context{}, fmt.Errorf("context %q does not exist; the contexts are %s", name, strings.Join(names, ", "))
}

// Set adds x or replaces the context of its name.
func (c *Contexts) Set(x Context) {
	i := slices.IndexFunc(c.Contexts, func(y Context) bool { return y.Name == x.Name })
	if i < 0 {
		c.Contexts = append(c.Contexts, x)
		slices.SortFunc(c.Contexts, func(a, b Context) int { return strings.Compare(a.Name, b.Name) })
		return
	}
	c.Contexts[i] = x
}

// Delete removes the context called name. Where it was the current one, none
// is afterwards.
func (c *Contexts) Delete(name string) error {
	if _, err := c.Find(name); err != nil {
		return err
	}
	c.Contexts = slices.DeleteFunc(c.Contexts, func(x Context) bool { return x.Name == name })
	if c.Current == name {
		c.Current = ""
	}
	return nil
}
