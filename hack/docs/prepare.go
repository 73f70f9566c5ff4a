package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// forge is where links to files that are no pages lead.
const forge = "https://github.com/gatehouse-gateway/gatehouse"

// index is the start page, whose list is the navigation of the site.
const index = "docs/README.md"

// comparison is the page with a table of what other gateways call a feature.
const comparison = "docs/coming-from.md"

// outside are the pages of the site that are not below docs, and their names there.
func outside() map[string]string {
	return map[string]string{
		"README.md":                  "overview.md",
		"ARCHITECTURE.md":            "architecture.md",
		"CONTRIBUTING.md":            "contributing.md",
		"CHANGELOG.md":               "changelog.md",
		"charts/gatehouse/README.md": "chart.md",
		"ratelimit/README.md":        "ratelimit-engine.md",
	}
}

// prepare returns the files that MkDocs works on: its configuration, and the pages and pictures in "pages".
func prepare(root string) (map[string][]byte, error) {
	config, err := os.ReadFile(filepath.Join(root, "hack/docs/mkdocs.yml"))
	if err != nil {
		return nil, err
	}
	sources, err := read(root)
	if err != nil {
		return nil, err
	}
	exists := func(name string) (file, dir bool) {
		info, err := os.Stat(filepath.Join(root, name))
		return err == nil, err == nil && info.IsDir()
	}
	files := map[string][]byte{}
	var wrong []string
	elsewhere := namesElsewhere(string(sources[comparison]))
	for source, text := range sources {
		to := onSite(source)
		if path.Ext(source) == ".md" {
			page, dead := forSite(string(text), source, sources, exists)
			wrong = append(wrong, dead...)
			text = []byte(forSearch(page, source, elsewhere[source]))
		}
		files["pages/"+to] = text
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return nil, fmt.Errorf("links lead nowhere:\n  %s", strings.Join(wrong, "\n  "))
	}
	nav, err := json.Marshal(navigation(string(sources[index])))
	if err != nil {
		return nil, err
	}
	files["mkdocs.yml"] = fmt.Appendf(config, "nav: %s\n", nav)
	return files, nil
}

// forSearch returns a page with what its search needs to know: other names, and whether it is for users.
func forSearch(page, source string, elsewhere names) string {
	head := ""
	if len(elsewhere) > 0 {
		head += fmt.Sprintf("tags: %s\n", elsewhere)
	}
	if strings.HasPrefix(source, "docs/adr/") || strings.HasPrefix(source, "docs/internals/") || source == "CHANGELOG.md" {
		head += "search: {boost: 0.1}\n"
	}
	if head == "" {
		return page
	}
	return "---\n" + head + "---\n" + page
}

// read returns the files that become part of the site, by their names in the repository: pages, and the pictures that
// pages show.
func read(root string) (map[string][]byte, error) {
	sources := map[string][]byte{}
	names := make([]string, 0, len(outside()))
	for name := range outside() {
		names = append(names, name)
	}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && slices.Contains([]string{".md", ".svg", ".webp"}, filepath.Ext(name)) {
			inside, _ := filepath.Rel(root, name)
			names = append(names, filepath.ToSlash(inside))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if sources[name], err = os.ReadFile(filepath.Join(root, name)); err != nil {
			return nil, err
		}
	}
	maps.DeleteFunc(sources, func(name string, _ []byte) bool {
		return path.Ext(name) == ".webp" && !isShown(path.Base(name), sources)
	})
	return sources, nil
}

// isShown reports whether a page names a picture.
func isShown(picture string, sources map[string][]byte) bool {
	for name, text := range sources {
		if path.Ext(name) == ".md" && bytes.Contains(text, []byte("/"+picture+")")) {
			return true
		}
	}
	return false
}

// onSite returns the name on the site of a file of the repository.
func onSite(source string) string {
	if to, ok := outside()[source]; ok {
		return to
	}
	return strings.TrimPrefix(source, "docs/")
}

var (
	linkOf = regexp.MustCompile(`(\]\()([^)\s]+)(\))`)
	// What may follow a paragraph directly: an item, and no number but 1; a table.
	itemOf  = regexp.MustCompile(`^( *)(?:[-*]|1\.) `)
	tableOf = regexp.MustCompile(`^\|.*\|$`)
)

// forSite returns a page as MkDocs needs it, and its dead links. A list or table may follow a paragraph without an
// empty line on a forge, and inner lists are indented less.
func forSite(text, source string, sources map[string][]byte, exists func(string) (file, dir bool)) (page string, dead []string) {
	var lines []string
	fenced, before := false, ""
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimLeft(line, " "), "```") {
			fenced = !fenced
			if fenced && before != "" {
				lines = append(lines, "")
			}
		} else if !fenced {
			line = linkOf.ReplaceAllStringFunc(line, func(found string) string {
				m := linkOf.FindStringSubmatch(found)
				to, ok := target(m[2], source, sources, exists)
				if !ok {
					dead = append(dead, source+": "+m[2])
				}
				return m[1] + to + m[3]
			})
			m := itemOf.FindStringSubmatch(line)
			table := tableOf.MatchString(line) && !tableOf.MatchString(before)
			list := m != nil && m[1] == "" && !strings.HasPrefix(before, " ") && !itemOf.MatchString(before)
			if before != "" && (list || table) {
				lines = append(lines, "")
			}
			if m != nil {
				line = m[1] + line
			}
		}
		lines = append(lines, line)
		before = line
	}
	return strings.Join(lines, "\n") + "\n", dead
}

// target returns the link on the site for a link of a page, and whether it leads anywhere. MkDocs checks those within
// the site.
func target(link, source string, sources map[string][]byte, exists func(string) (file, dir bool)) (to string, ok bool) {
	if strings.Contains(link, "://") || strings.HasPrefix(link, "#") {
		return link, true
	}
	name, anchor, _ := strings.Cut(link, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	name = path.Join(path.Dir(source), name)
	if _, ok := sources[name]; ok {
		to, err := filepath.Rel(path.Dir(onSite(source)), onSite(name))
		return filepath.ToSlash(to) + anchor, err == nil
	}
	file, dir := exists(name)
	if dir {
		return forge + "/tree/main/" + name, file
	}
	return forge + "/blob/main/" + name + anchor, file && !strings.HasPrefix(name, "..")
}

var (
	headingOf = regexp.MustCompile(`^(##|###) (.+)$`)
	entryOf   = regexp.MustCompile(`^- \[([^\]]+)\]\(([^)#]+)`)
)

// navigation returns what the start page lists, in the form of MkDocs: a section for each heading, and a page for each
// item that begins with a link. The start page itself begins the first section.
func navigation(text string) []any {
	type entry = map[string]any
	type group struct {
		title string
		items []any
		parts []*group
	}
	var groups []*group
	var at *group
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if m := headingOf.FindStringSubmatch(line); m != nil {
			at = &group{title: m[2]}
			if m[1] == "##" {
				groups = append(groups, at)
			} else {
				last := groups[len(groups)-1]
				last.parts = append(last.parts, at)
			}
		} else if m := entryOf.FindStringSubmatch(line); m != nil && at != nil {
			at.items = append(at.items, entry{m[1]: onSite(path.Join(path.Dir(index), m[2]))})
		}
	}
	var nav []any
	for i, g := range groups {
		items := g.items
		if i == 0 {
			items = append([]any{entry{"Documentation": onSite(index)}}, items...)
		}
		for _, part := range g.parts {
			items = append(items, entry{part.title: part.items})
		}
		nav = append(nav, entry{g.title: items})
	}
	return nav
}

var (
	nameOf = regexp.MustCompile("`([^`]+)`")
	hereOf = regexp.MustCompile(`\]\(([a-z0-9-]+\.md)`)
)

// names is a list in the form of YAML.
type names []string

func (n names) String() string {
	text, _ := json.Marshal([]string(n)) // of strings it cannot fail
	return string(text)
}

// namesElsewhere returns what other gateways call the features of each page, so that the search finds the page by these
// names: those in the rows of the table that lead to it. Of a name with dots, the last part is a name too.
func namesElsewhere(table string) map[string]names {
	pages := map[string]names{}
	for line := range strings.Lines(table) {
		columns := strings.Split(line, " | ")
		if len(columns) != 6 {
			continue
		}
		for _, link := range hereOf.FindAllStringSubmatch(columns[5], -1) {
			page := "docs/" + link[1]
			for _, m := range nameOf.FindAllStringSubmatch(strings.Join(columns[1:5], " "), -1) {
				for _, name := range []string{m[1], m[1][strings.LastIndex(m[1], ".")+1:]} {
					if name != "" && !slices.Contains(pages[page], name) {
						pages[page] = append(pages[page], name)
					}
				}
			}
		}
	}
	return pages
}
