package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
)

// readSite returns the files of a folder.
func readSite(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	site := os.DirFS(dir)
	err := fs.WalkDir(site, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[name], err = fs.ReadFile(site, name)
		return err
	})
	return files, err
}

// needed reports whether the site needs a file of the theme: it has one language, and no search engine reads it.
func needed(name string) bool {
	return !strings.HasPrefix(name, "assets/javascripts/lunr/") && !strings.HasPrefix(name, "sitemap.xml") && path.Ext(name) != ".map"
}

var (
	inline   = regexp.MustCompile(`(?s)<script>(.*?)</script>`)
	sources  = regexp.MustCompile(`(?m)\n?(?://|/\*)# sourceMappingURL=\S+(?: \*/)?$`)
	absolute = regexp.MustCompile(`((?:href|src)="|"base": ")/`)
)

// finish returns the site as it is served. Scripts in pages become files, so that the Content-Security-Policy needs no
// exception for them. The page for what does not exist has absolute links; the program serves the site below /docs/.
func finish(files map[string][]byte) map[string][]byte {
	done := map[string][]byte{}
	for name, content := range files {
		if !needed(name) {
			continue
		}
		switch path.Ext(name) {
		case ".js", ".css":
			content = sources.ReplaceAll(content, nil)
		case ".html":
			up := strings.Repeat("../", strings.Count(name, "/"))
			if name == "404.html" {
				up = "/docs/"
				content = absolute.ReplaceAll(content, []byte("${1}/docs/"))
			}
			content = inline.ReplaceAllFunc(content, func(found []byte) []byte {
				script := bytes.TrimSpace(inline.FindSubmatch(found)[1])
				sum := sha256.Sum256(script)
				file := "assets/inline/" + hex.EncodeToString(sum[:8]) + ".js"
				done[file] = script
				return []byte(`<script src="` + up + file + `"></script>`)
			})
		}
		done[name] = content
	}
	return done
}
