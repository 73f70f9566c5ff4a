package main

import (
	"html"
	"path"
	"regexp"
	"slices"
	"strings"
)

var (
	tagOf     = regexp.MustCompile(`(?s)<([a-z][a-z0-9-]*)((?:\s+[a-zA-Z_:@-]+(?:=(?:"[^"]*"|'[^']*'|[^\s"'>]+))?)*)\s*/?>`)
	attribute = regexp.MustCompile(`(?s)\s([a-zA-Z_:@-]+)(?:=(?:"([^"]*)"|'([^']*)'|([^\s"'>]+)))?`)
	loads     = regexp.MustCompile(`url\(\s*['"]?([^'")]*)|@import\s+['"]([^'"]*)`)
)

// tag is an element of a page with its attributes.
type tag struct {
	name       string
	attributes map[string]string
}

// tagsOf returns the elements of a page that a generator wrote, which is well-formed.
func tagsOf(page []byte) (list []tag) {
	for _, m := range tagOf.FindAllSubmatch(page, -1) {
		t := tag{string(m[1]), map[string]string{}}
		for _, a := range attribute.FindAllSubmatch(m[2], -1) {
			t.attributes[string(a[1])] = html.UnescapeString(string(slices.Concat(a[2], a[3], a[4])))
		}
		list = append(list, t)
	}
	return list
}

// check returns what is wrong on a site: links to files and headings that do not exist, scripts within pages, and
// anything that a browser would load from elsewhere.
func check(files map[string][]byte) (wrong []string) {
	pages := map[string][]tag{}
	anchors := map[string]bool{}
	for name, content := range files {
		if path.Ext(name) != ".html" {
			continue
		}
		pages[name] = tagsOf(content)
		for _, t := range pages[name] {
			if id := t.attributes["id"]; id != "" {
				anchors[name+"#"+id] = true
			}
		}
	}
	for name, tags := range pages {
		for _, t := range tags {
			wrong = append(wrong, checkTag(name, t, files, anchors)...)
		}
	}
	for name, content := range files {
		if path.Ext(name) != ".css" {
			continue
		}
		for _, m := range loads.FindAllSubmatch(content, -1) {
			if from := string(slices.Concat(m[1], m[2])); strings.Contains(from, "//") && !strings.HasPrefix(from, "data:") {
				wrong = append(wrong, name+" loads "+from)
			}
		}
	}
	slices.Sort(wrong)
	return slices.Compact(wrong)
}

func checkTag(page string, t tag, files map[string][]byte, anchors map[string]bool) (wrong []string) {
	if t.name == "script" && t.attributes["src"] == "" && t.attributes["type"] != "application/json" {
		wrong = append(wrong, page+" has a script within the page")
	}
	for name, link := range t.attributes {
		if strings.HasPrefix(name, "on") {
			wrong = append(wrong, page+" has a script in the attribute "+name)
		}
		if !slices.Contains([]string{"href", "src", "srcset", "action", "data", "poster"}, name) || link == "" {
			continue
		}
		if strings.Contains(link, "//") || strings.HasPrefix(link, "data:") {
			if t.name != "a" {
				wrong = append(wrong, page+" loads "+link)
			}
			continue
		}
		file, anchor, _ := strings.Cut(link, "#")
		to := path.Join(path.Dir(page), file)
		if rest, ok := strings.CutPrefix(file, "/docs/"); ok {
			to = path.Clean(rest)
		}
		if file == "" {
			to = page
		}
		if to == "." {
			to = "index.html"
		}
		if to == "api" { // the viewer of the API, which is not a part of the site
			continue
		}
		if files[to] == nil {
			wrong = append(wrong, page+" links to "+link+", which does not exist")
		} else if anchor != "" && !anchors[to+"#"+anchor] {
			wrong = append(wrong, page+" links to "+link+", which has no such heading")
		}
	}
	return wrong
}

var article = regexp.MustCompile(`(?s)<article.*</article>`)

// linked returns the pages of the site to which the text of a page links.
func linked(page string, content []byte) (pages []string) {
	for _, t := range tagsOf(article.Find(content)) {
		link, _, _ := strings.Cut(t.attributes["href"], "#")
		if t.name == "a" && strings.HasSuffix(link, ".html") && !strings.Contains(link, "//") {
			pages = append(pages, path.Join(path.Dir(page), link))
		}
	}
	return pages
}
