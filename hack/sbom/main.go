// Command sbom writes the bill of materials of an image, in the format of CycloneDX
// 1.5, to its standard output. It reads the files that the image consists of: a
// Go program lists its own modules, Envoy prints its version, and
// dpkg's records say which Debian package a library comes from. A file of unknown origin
// is an error.
//
// usage: go run ./hack/sbom IMAGE DIRECTORY [DIRECTORY]
//
// GATEHOUSE_VERSION is the version of Go programs that are for another machine, ENVOY_VERSION that of Envoy.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) < 3 {
		fail(errors.New("usage: go run ./hack/sbom IMAGE DIRECTORY [DIRECTORY]"))
	}
	out, err := describe(os.Args[1], os.Args[2:])
	if err != nil {
		fail(err)
	}
	if _, err := os.Stdout.Write(out); err != nil {
		fail(err)
	}
}

func fail(err error) {
	_, _ = fmt.Fprintln(os.Stderr, "sbom: "+err.Error())
	os.Exit(1)
}

// The parts of CycloneDX 1.5 that are used, https://cyclonedx.org/docs/1.5/json/.
type (
	bom struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []*component `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Ref      string    `json:"bom-ref"`
		Type     string    `json:"type"`
		Name     string    `json:"name"`
		Version  string    `json:"version,omitempty"`
		CPE      string    `json:"cpe,omitempty"`
		PURL     string    `json:"purl,omitempty"`
		Hashes   []hash    `json:"hashes,omitempty"`
		Evidence *evidence `json:"evidence,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	evidence struct {
		Occurrences []occurrence `json:"occurrences"`
	}
	occurrence struct {
		Location string `json:"location"`
	}
	dependency struct {
		Ref       string   `json:"ref"`
		DependsOn []string `json:"dependsOn,omitempty"`
	}
)

// inventory is what was found so far.
type inventory struct {
	byRef map[string]*component
	needs map[string][]string
}

// describe returns the bill of materials of an image that consists of directories.
func describe(image string, dirs []string) ([]byte, error) {
	inv := &inventory{byRef: map[string]*component{}, needs: map[string][]string{}}
	for _, dir := range dirs {
		root := os.DirFS(dir)
		err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			return inv.add(dir, path)
		})
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", dir, err)
		}
	}
	own := component{Ref: "image:" + image, Type: "container", Name: "gatehouse/" + image}
	list := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{own}}
	for _, ref := range sortedKeys(inv.byRef) {
		list.Components = append(list.Components, inv.byRef[ref])
		list.Dependencies = append(list.Dependencies, dependency{ref, inv.needs[ref]})
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(list)
	return text.Bytes(), err
}

// add determines the origin of a file.
func (inv *inventory) add(dir, path string) error {
	file := filepath.Join(dir, path)
	switch {
	case path == "usr/local/bin/envoy":
		return inv.addEnvoy(file, path)
	case strings.HasPrefix(path, "usr/local/bin/"):
		return inv.addGo(file, path)
	case strings.HasPrefix(path, "lib"):
		return inv.addDebian(dir, "libc6", path)
	case strings.HasPrefix(path, "etc/ssl/certs/"):
		return inv.addDebian(dir, "ca-certificates", path)
	case strings.HasPrefix(path, "usr/share/doc/"), strings.HasPrefix(path, "var/lib/dpkg/status.d/"),
		slices.Contains([]string{"etc/passwd", "etc/group", "etc/nsswitch.conf"}, path):
		return nil // texts about the other files, written when the image is built
	}
	return fmt.Errorf("%s: no rule says where it comes from; add one to hack/sbom", path)
}

// addGo adds a Go program, and the modules that it lists.
func (inv *inventory) addGo(file, path string) error {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%s is neither Envoy nor a program of Go: %w", path, err)
	}
	version, err := versionOf(file, path)
	if err != nil {
		return err
	}
	ref := "pkg:golang/" + info.Main.Path + "@" + version
	if err := inv.note(component{Ref: ref, Type: "application", Name: filepath.Base(path), Version: version, PURL: ref}, file, path); err != nil {
		return err
	}
	add := func(name, version string) {
		module := "pkg:golang/" + name + "@" + version
		if inv.byRef[module] == nil {
			inv.byRef[module] = &component{Ref: module, Type: "library", Name: name, Version: version, PURL: module}
		}
		inv.needs[ref] = append(inv.needs[ref], module)
	}
	add("stdlib", strings.TrimPrefix(info.GoVersion, "go"))
	for _, m := range info.Deps {
		if m.Replace != nil {
			return fmt.Errorf("%s holds %s in place of %s: hack/sbom does not know what that is", path, m.Replace.Path, m.Path)
		}
		add(m.Path, m.Version)
	}
	slices.Sort(inv.needs[ref])
	return nil
}

// versionOf returns the version of a Go program: GATEHOUSE_VERSION, for one that this machine cannot run, or what it says.
func versionOf(file, path string) (string, error) {
	if given := os.Getenv("GATEHOUSE_VERSION"); given != "" {
		return given, nil
	}
	out, err := exec.CommandContext(context.Background(), file, "--version").Output() //nolint:gosec // what is to be described
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	words := strings.Fields(string(out))
	if len(words) < 2 {
		return "", fmt.Errorf("%s does not say its version", path)
	}
	return strings.TrimSuffix(words[1], ","), nil
}

func (inv *inventory) addEnvoy(file, path string) error {
	version, err := envoyVersion(file, path)
	if err != nil {
		return err
	}
	ref := "pkg:github/envoyproxy/envoy@v" + version
	return inv.note(component{
		Ref: ref, Type: "application", Name: "envoy", Version: version, PURL: ref,
		CPE: "cpe:2.3:a:envoyproxy:envoy:" + version + ":*:*:*:*:*:*:*",
	}, file, path)
}

// envoyVersion returns the version of Envoy: ENVOY_VERSION, for one that this machine cannot run, or what it prints:
// "envoy  version: <commit>/1.39.3/Clean/RELEASE/BoringSSL".
func envoyVersion(file, path string) (string, error) {
	if given := os.Getenv("ENVOY_VERSION"); given != "" {
		return given, nil
	}
	out, err := exec.CommandContext(context.Background(), file, "--version").Output() //nolint:gosec // what is to be described
	if err != nil {
		return "", fmt.Errorf("asking %s for its version: %w", path, err)
	}
	words := strings.Split(string(out), "/")
	if len(words) < 4 {
		return "", fmt.Errorf("%s does not say its version, but %q", path, out)
	}
	return words[len(words)-4], nil
}

// addDebian adds a file of a Debian package, which dpkg's records in dir describe.
func (inv *inventory) addDebian(dir, name, path string) error {
	status, err := os.ReadFile(filepath.Join(dir, "var/lib/dpkg/status.d", name))
	if err != nil {
		return err
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		fields[key] = strings.TrimSpace(value)
	}
	if fields["Package"] != name || fields["Version"] == "" {
		return fmt.Errorf("%s does not say the version of %s", filepath.Join(dir, "var/lib/dpkg/status.d", name), name)
	}
	ref := fmt.Sprintf("pkg:deb/debian/%s@%s?arch=%s&distro=debian-12", name, strings.ReplaceAll(fields["Version"], "+", "%2B"), fields["Architecture"])
	return inv.note(component{Ref: ref, Type: "library", Name: name, Version: fields["Version"], PURL: ref}, filepath.Join(dir, path), path)
}

// note adds a component with a file, or adds the file to an existing component. Only a
// component of a single file has a hash.
func (inv *inventory) note(c component, file, path string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	have := inv.byRef[c.Ref]
	if have == nil {
		sum := sha256.Sum256(data)
		have = &c
		have.Hashes = []hash{{"SHA-256", hex.EncodeToString(sum[:])}}
		have.Evidence = &evidence{}
		inv.byRef[c.Ref] = have
	} else {
		have.Hashes = nil
	}
	have.Evidence.Occurrences = append(have.Evidence.Occurrences, occurrence{"/" + path})
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
