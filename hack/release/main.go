// Command release packs what hack/release.sh built: archives and Debian packages of the programs, images, and an archive
// of the Helm chart. The same files give the same bytes, whoever packs them, and when. It prints the digests of the images.
//
// usage:
//
//	release packages VERSION DIRECTORY OUT
//	release images VERSION DIRECTORY OUT
//
// DIRECTORY has one for each architecture: the files of packages, or what hack/image.sh collects. SOURCE_DATE_EPOCH is
// the time of all files, in seconds since 1970; COMMIT is in the labels of images.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "release: "+err.Error())
		os.Exit(1)
	}
}

// release is what is packed.
type release struct {
	version, commit string // version without the v
	root            string // the checkout
	from            string // a directory for each architecture
	out             string
	time            time.Time
}

func run(args []string) error {
	const wanted = 4
	if len(args) != wanted {
		return errors.New("usage: release packages|images VERSION DIRECTORY OUT")
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return err
	}
	r := release{strings.TrimPrefix(args[1], "v"), os.Getenv("COMMIT"), root, args[2], args[3], time.Unix(seconds, 0).UTC()}
	entries, err := os.ReadDir(r.from)
	if err != nil {
		return err
	}
	architectures := make([]string, len(entries))
	for i, e := range entries {
		architectures[i] = e.Name()
	}
	switch args[0] {
	case "packages":
		return r.packages(architectures)
	case "images":
		return r.images(architectures)
	}
	return fmt.Errorf("%q is neither packages nor images", args[0])
}

func (r release) packages(architectures []string) error {
	for _, a := range architectures {
		if err := errors.Join(r.archive(a), r.debian(a)); err != nil {
			return err
		}
	}
	return r.chart()
}

// archive packs the directory of an architecture.
func (r release) archive(arch string) error {
	name := "gatehouse-" + r.version + "-linux-" + arch
	return r.pack(name+".tar.gz", filepath.Join(r.from, arch), name, nil)
}

var (
	chartVersion = regexp.MustCompile(`(?m)^version: .*$`)
	appVersion   = regexp.MustCompile(`(?m)^appVersion: .*$`)
)

// chart packs the Helm chart with the version of the release.
func (r release) chart() error {
	return r.pack("gatehouse-chart-"+r.version+".tgz", filepath.Join(r.root, "charts", "gatehouse"), "gatehouse",
		func(name string, content []byte) []byte {
			if name != "Chart.yaml" {
				return content
			}
			content = chartVersion.ReplaceAll(content, []byte("version: "+r.version))
			return appVersion.ReplaceAll(content, []byte(`appVersion: "`+r.version+`"`))
		})
}

// pack writes a compressed archive of a directory, in which everything is under top. change may replace the content of
// a file.
func (r release) pack(file, dir, top string, change func(name string, content []byte) []byte) error {
	var out bytes.Buffer
	compressed := gzip.NewWriter(&out)
	if err := errors.Join(r.tree(compressed, dir, top, 0, change), compressed.Close()); err != nil {
		return fmt.Errorf("packing %s: %w", file, err)
	}
	return os.WriteFile(filepath.Join(r.out, file), out.Bytes(), 0o644) //nolint:gosec // everybody may read a release
}

// tree writes an archive of a directory, in which everything is below top, belongs to owner and has the time of the
// release. change may replace the content of a file.
func (r release) tree(to io.Writer, dir, top string, owner int, change func(name string, content []byte) []byte) error {
	archive := tar.NewWriter(to)
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == dir {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		h := &tar.Header{
			Name: strings.TrimPrefix(path.Join(top, filepath.ToSlash(name)), "/"), Uid: owner, Gid: owner, ModTime: r.time, Format: tar.FormatPAX,
		}
		if h.Mode, err = modeOf(d); err != nil {
			return err
		}
		if d.IsDir() {
			h.Typeflag, h.Name = tar.TypeDir, h.Name+"/"
			return archive.WriteHeader(h)
		}
		content, err := os.ReadFile(file) //nolint:gosec // a file of the release
		if err != nil {
			return err
		}
		if change != nil {
			content = change(name, content)
		}
		h.Size = int64(len(content))
		if err := archive.WriteHeader(h); err != nil {
			return err
		}
		_, err = archive.Write(content)
		return err
	})
	return errors.Join(err, archive.Close())
}

// modeOf ignores the umask of whoever built the file. A directory that others may not read stays so.
func modeOf(d fs.DirEntry) (int64, error) {
	const program, own, text, anybody, others = 0o755, 0o750, 0o644, 0o111, 0o007
	info, err := d.Info()
	switch {
	case err != nil:
		return 0, err
	case d.IsDir() && info.Mode()&others == 0:
		return own, nil
	case info.Mode()&anybody != 0:
		return program, nil
	}
	return text, nil
}

// debian packs a Debian package: the programs, their units, settings, manual pages and completions.
func (r release) debian(arch string) error {
	dir := filepath.Join(r.from, arch)
	scripts := filepath.Join(r.root, "hack", "release", "deb")
	file := func(source, destination string, mode os.FileMode, kind string) *files.Content {
		return &files.Content{
			Source: source, Destination: destination, Type: kind,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.time},
		}
	}
	const program, text = 0o755, 0o644
	contents := files.Contents{
		file(filepath.Join(dir, "gatehouse"), "/usr/bin/gatehouse", program, files.TypeFile),
		file(filepath.Join(dir, "envoy"), "/usr/lib/gatehouse/envoy", program, files.TypeFile),
		file(filepath.Join(scripts, "gatehouse.yaml"), "/etc/gatehouse/gatehouse.yaml", text, files.TypeConfigNoReplace),
		file(filepath.Join(dir, "completions", "gatehouse.bash"), "/usr/share/bash-completion/completions/gatehouse", text, files.TypeFile),
		file(filepath.Join(dir, "completions", "_gatehouse"), "/usr/share/zsh/vendor-completions/_gatehouse", text, files.TypeFile),
		file(filepath.Join(dir, "completions", "gatehouse.fish"), "/usr/share/fish/vendor_completions.d/gatehouse.fish", text, files.TypeFile),
	}
	for pattern, destination := range map[string]string{
		"systemd/*": "/lib/systemd/system", "man/*": "/usr/share/man/man1", "doc/*": "/usr/share/doc/gatehouse",
	} {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		if err != nil || len(found) == 0 {
			return errors.Join(err, fmt.Errorf("%s has no %s", dir, pattern))
		}
		for _, f := range found {
			contents = append(contents, file(f, path.Join(destination, filepath.Base(f)), text, files.TypeFile))
		}
	}
	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "gatehouse", Arch: arch, Platform: "linux", Version: r.version, VersionSchema: "semver",
		Section: "net", Priority: "optional", Maintainer: "Gatehouse maintainers <maintainers@gatehouse.dev>",
		Description: "API gateway: Envoy, configured with a REST API\n" +
			"The control plane, the Envoy that it runs, and their units of systemd. After the\ninstallation the gateway runs, and only this machine reaches it.",
		Homepage: "https://github.com/gatehouse-gateway/gatehouse", License: "Apache-2.0", MTime: r.time,
		Overridables: nfpm.Overridables{
			Depends:    []string{"libc6 (>= 2.31)", "passwd"},
			Recommends: []string{"ca-certificates"},
			Contents:   contents,
			Scripts: nfpm.Scripts{
				PostInstall: filepath.Join(scripts, "postinst"), PreRemove: filepath.Join(scripts, "prerm"),
				PostRemove: filepath.Join(scripts, "postrm"),
			},
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return fmt.Errorf("describing the package: %w", err)
	}
	var out bytes.Buffer
	if err := deb.Default.Package(info, &out); err != nil {
		return fmt.Errorf("packing the package: %w", err)
	}
	name := "gatehouse_" + r.version + "_" + arch + ".deb"
	return os.WriteFile(filepath.Join(r.out, name), out.Bytes(), 0o644) //nolint:gosec // everybody may read a release
}
