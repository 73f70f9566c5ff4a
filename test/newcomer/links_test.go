package newcomer_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	link      = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noAnchors = regexp.MustCompile(`[^\w\- ]`)
)

// anchors returns the anchors of the headings of a document.
func anchors(text string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(text, -1) {
		list = append(list, strings.ReplaceAll(noAnchors.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return list
}

var _ = Describe("The documents", func() {
	It("link to files and headings that exist", func() {
		root, seen := "../..", 0
		Expect(filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() && (entry.Name() == "bin" || strings.HasPrefix(entry.Name(), ".") && name != root) {
				return filepath.SkipDir
			}
			if err != nil || !strings.HasSuffix(name, ".md") {
				return err
			}
			text, err := os.ReadFile(name)
			for _, m := range link.FindAllStringSubmatch(string(text), -1) {
				file, anchor, _ := strings.Cut(m[1], "#")
				if strings.Contains(m[1], "://") {
					continue
				}
				seen++
				target := name
				if file != "" {
					target = filepath.Join(filepath.Dir(name), file)
				}
				Expect(target).To(Or(BeAnExistingFile(), BeADirectory()), "%s links to %s", name, m[1])
				if anchor != "" {
					to, err := os.ReadFile(target)
					Expect(err).NotTo(HaveOccurred())
					Expect(anchors(string(to))).To(ContainElement(anchor), "%s links to %s", name, m[1])
				}
			}
			return err
		})).To(Succeed())
		Expect(seen).To(BeNumerically(">", 60))
	})
})
