package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/buildkit/frontend/dockerfile/shell"
)

// images packs each target of the Dockerfile, for all architectures, without an engine: nothing of it has to be run,
// so this machine can do it for another one, and the same files give the same digests.
func (r release) images(architectures []string) error {
	file, err := os.Open(filepath.Join(r.root, "Dockerfile"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	parsed, err := parser.Parse(file)
	if err != nil {
		return fmt.Errorf("Dockerfile: %w", err)
	}
	stages, _, err := instructions.Parse(parsed.AST, nil)
	if err != nil {
		return fmt.Errorf("Dockerfile: %w", err)
	}
	layers := map[string]v1.Layer{}
	for _, stage := range stages {
		name := "gatehouse"
		if stage.Name != "standalone" {
			name += "-" + stage.Name
		}
		if err := r.image(name, stage, architectures, layers); err != nil {
			return fmt.Errorf("image %s: %w", name, err)
		}
	}
	return nil
}

// image packs an image as an archive of an OCI layout, whose index has all architectures. For older engines it is also
// one that "docker load" reads; there, the tag ends with the architecture.
func (r release) image(name string, stage instructions.Stage, architectures []string, layers map[string]v1.Layer) error {
	dir, err := os.MkdirTemp("", "image")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	type docker struct {
		Config   string
		RepoTags []string
		Layers   []string
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	var older []docker
	for _, arch := range architectures {
		image, err := r.build(stage, arch, layers)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}},
		})
		manifest, err := image.Manifest()
		if err != nil {
			return err
		}
		entry := docker{blob(manifest.Config.Digest), []string{name + ":" + r.version + "-" + arch}, nil}
		for _, l := range manifest.Layers {
			entry.Layers = append(entry.Layers, blob(l.Digest))
		}
		older = append(older, entry)
	}
	of, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	// How containerd, and tools that follow the specification of OCI, name what they import.
	if err := of.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"io.containerd.image.name": name + ":" + r.version, "org.opencontainers.image.ref.name": r.version,
	})); err != nil {
		return err
	}
	list, err := json.Marshal(older)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "manifest.json"), list, 0o600); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.out, name+"-image-"+r.version+".tar")) //nolint:gosec // of the release
	if err != nil {
		return err
	}
	if err := errors.Join(r.tree(out, dir, "", 0, nil), out.Close()); err != nil {
		return err
	}
	_, err = fmt.Printf("%s  %s:%s\n", digest, name, r.version)
	return err
}

func blob(h v1.Hash) string { return "blobs/" + h.Algorithm + "/" + h.Hex }

// build returns the image of a stage for an architecture. It knows the instructions that the Dockerfile has.
func (r release) build(stage instructions.Stage, arch string, layers map[string]v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	config := v1.ConfigFile{OS: "linux", Architecture: arch, Created: v1.Time{Time: r.time}}
	c := &config.Config
	c.ExposedPorts, c.Volumes, c.Labels = map[string]struct{}{}, map[string]struct{}{}, map[string]string{}
	words, arguments := shell.NewLex('\\'), shell.EnvsFromSlice([]string{"VERSION=v" + r.version, "COMMIT=" + r.commit})
	expand := func(word string) (string, error) {
		word, _, err := words.ProcessWord(word, arguments)
		return word, err
	}
	for _, command := range stage.Commands {
		if c, ok := command.(instructions.SupportsSingleWordExpansion); ok {
			if err := c.Expand(expand); err != nil {
				return nil, fmt.Errorf("%s: %w", command, err)
			}
		}
		switch i := command.(type) {
		case *instructions.CopyCommand:
			layer, err := r.layer(i, arch, layers)
			if err != nil {
				return nil, err
			}
			if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: v1.History{CreatedBy: i.String(), Created: v1.Time{Time: r.time}}}); err != nil {
				return nil, err
			}
		case *instructions.EnvCommand:
			for _, kv := range i.Env {
				c.Env = append(c.Env, kv.Key+"="+kv.Value)
			}
		case *instructions.LabelCommand:
			for _, kv := range i.Labels {
				c.Labels[kv.Key] = kv.Value
			}
		case *instructions.VolumeCommand:
			for _, v := range i.Volumes {
				c.Volumes[v] = struct{}{}
			}
		case *instructions.ExposeCommand:
			for _, p := range i.Ports {
				if !strings.Contains(p, "/") {
					p += "/tcp"
				}
				c.ExposedPorts[p] = struct{}{}
			}
		case *instructions.HealthCheckCommand:
			c.Healthcheck = &v1.HealthConfig{Test: i.Health.Test, Interval: i.Health.Interval, Timeout: i.Health.Timeout, StartPeriod: i.Health.StartPeriod}
		case *instructions.UserCommand:
			c.User = i.User
		case *instructions.StopSignalCommand:
			c.StopSignal = i.Signal
		case *instructions.EntrypointCommand:
			c.Entrypoint = i.CmdLine
		case *instructions.CmdCommand:
			c.Cmd = i.CmdLine
		case *instructions.ArgCommand: // VERSION and COMMIT
		default:
			return nil, fmt.Errorf("hack/release does not know %s of the Dockerfile; add it to image.go", command.Name())
		}
	}
	packed, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.RootFS, config.History = packed.RootFS, packed.History
	return mutate.ConfigFile(image, &config)
}

// layer returns what a COPY of the Dockerfile copies. Images share layers.
func (r release) layer(i *instructions.CopyCommand, arch string, layers map[string]v1.Layer) (v1.Layer, error) {
	if len(i.SourcePaths) != 1 {
		return nil, fmt.Errorf("%s: hack/release copies one directory at a time", i)
	}
	source, ok := strings.CutPrefix(i.SourcePaths[0], "bin/image/")
	if !ok {
		return nil, fmt.Errorf("%s: hack/release copies from bin/image only", i)
	}
	key := arch + " " + i.String()
	if have := layers[key]; have != nil {
		return have, nil
	}
	owner := 0
	if i.Chown != "" {
		var err error
		if owner, err = strconv.Atoi(strings.Split(i.Chown, ":")[0]); err != nil {
			return nil, fmt.Errorf("%s: %w", i, err)
		}
	}
	var content bytes.Buffer
	if err := r.tree(&content, filepath.Join(r.from, arch, source), i.DestPath, owner, nil); err != nil {
		return nil, err
	}
	// Programs, compressed twice as fast and 5% larger.
	const fast = 1
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithCompressionLevel(fast), tarball.WithMediaType(types.OCILayer), tarball.WithCompressedCaching)
	if err == nil {
		layers[key] = layer
	}
	return layer, err
}
