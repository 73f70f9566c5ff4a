package imports_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"
)

const (
	root   = "../.."
	module = "github.com/gatehouse-gateway/gatehouse/"
)

func TestImports(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Imports")
}

// rule is one rule of depguard.
type rule struct {
	Mode  string   `yaml:"list-mode"`
	Files []string `yaml:"files"`
	Allow []string `yaml:"allow"`
}

// repository is what the specs compare.
type repository struct {
	table    map[string][]string // package -> its column "may import"; nil for everything
	rules    map[string]rule     // by name
	packages []string            // directories with Go files
	docs     map[string]string   // package -> doc.go
}

func read(name string) string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(root, name))
	Expect(err).NotTo(HaveOccurred())
	return string(text)
}

// readTable returns the table of docs/internals/packages.md.
func readTable(document string) map[string][]string {
	table := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|.*\\| ([^|]+) \\|$").FindAllStringSubmatch(document, -1) {
		switch row[2] {
		case "everything":
			table[row[1]] = nil
		case "standard library only":
			table[row[1]] = []string{}
		default:
			table[row[1]] = regexp.MustCompile("[,;] ").Split(row[2], -1)
		}
	}
	return table
}

func readRepository() repository {
	GinkgoHelper()
	var config struct {
		Linters struct {
			Settings struct {
				Depguard struct {
					Rules map[string]rule `yaml:"rules"`
				} `yaml:"depguard"`
			} `yaml:"settings"`
		} `yaml:"linters"`
	}
	Expect(yaml.Unmarshal([]byte(read(".golangci.yml")), &config)).To(Succeed())
	r := repository{readTable(read("docs/internals/packages.md")), config.Linters.Settings.Depguard.Rules, nil, map[string]string{}}
	for _, top := range []string{"api", "cmd", "envoy", "pkg"} {
		Expect(filepath.WalkDir(filepath.Join(root, top), func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			file, err := filepath.Rel(root, name)
			dir := path.Dir(filepath.ToSlash(file))
			if !slices.Contains(r.packages, dir) {
				r.packages = append(r.packages, dir)
			}
			if path.Base(file) == "doc.go" {
				r.docs[dir] = read(file)
			}
			return err
		})).To(Succeed())
	}
	return r
}

// matches reports whether an entry in a row of the table stands for the allowed path.
// An entry names a package of this repository by its path without pkg/, and a library
// by a part of its path. An entry that ends in /* stands for all packages in a directory.
func (r repository) matches(entry, allowed string) bool {
	if parent, below := strings.CutSuffix(entry, "/*"); below {
		return allowed == module+"pkg/"+parent+"/"
	}
	for _, own := range []string{entry, "pkg/" + entry} {
		if slices.Contains(r.packages, own) {
			return allowed == module+own+"$"
		}
	}
	return !strings.HasPrefix(allowed, module) && strings.Contains("/"+strings.TrimSuffix(allowed, "$")+"/", "/"+entry+"/")
}

// disagreements returns where the table, the rules and the code disagree, with what to
// change.
func (r repository) disagreements() (found []string) {
	rules := map[string]string{} // package -> name of its rule
	for _, name := range slices.Sorted(maps.Keys(r.rules)) {
		if r.rules[name].Mode != "strict" || len(r.rules[name].Files) == 0 {
			continue
		}
		dir := strings.TrimSuffix(strings.TrimPrefix(r.rules[name].Files[0], "**/"), "/*.go")
		rules[dir] = name
		if row, ok := r.table[dir]; row == nil && (ok || !slices.Contains(r.packages, dir)) {
			found = append(found, ".golangci.yml has the rule "+name+` for "`+r.rules[name].Files[0]+`": remove it, or name the packages of `+dir+" in its row of docs/internals/packages.md")
		}
	}
	for _, dir := range r.packages {
		if _, ok := r.table[dir]; !ok && r.table[path.Dir(dir)+"/*"] == nil {
			found = append(found, dir+" has no row in docs/internals/packages.md: add one with what it may import")
		}
		if regexp.MustCompile(`\b(imports|may import)\b`).MatchString(r.docs[dir]) {
			found = append(found, dir+"/doc.go repeats what the package may import: remove the sentence, docs/internals/packages.md has it")
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(r.table)) {
		if !slices.ContainsFunc(r.packages, func(p string) bool { return p == dir || path.Dir(p)+"/*" == dir }) {
			found = append(found, "docs/internals/packages.md has a row for "+dir+", which has no Go files: remove the row")
		}
		if r.table[dir] != nil {
			found = append(found, r.compare(dir, rules[dir])...)
		}
	}
	return found
}

// compare returns where the row of a package and its rule disagree.
func (r repository) compare(dir, name string) (found []string) {
	if name == "" {
		return []string{`.golangci.yml has no rule for ` + dir + `: add one under depguard with "list-mode: strict" and "files: ["**/` + dir + `/*.go", "!$test"]"`}
	}
	if !slices.Equal(r.rules[name].Files, []string{"**/" + dir + "/*.go", "!$test"}) {
		found = append(found, `.golangci.yml: files of the rule `+name+` have to be "**/`+dir+`/*.go" and "!$test"`)
	}
	allow := r.rules[name].Allow
	if !slices.Contains(allow, "$gostd") {
		found = append(found, ".golangci.yml: add $gostd to the rule "+name)
	}
	for _, entry := range r.table[dir] {
		if !slices.ContainsFunc(allow, func(allowed string) bool { return r.matches(entry, allowed) }) {
			found = append(found, "docs/internals/packages.md lets "+dir+" import "+entry+", .golangci.yml does not: add it to the rule "+name+", or remove it from the row")
		}
	}
	for _, allowed := range allow {
		if allowed != "$gostd" && !slices.ContainsFunc(r.table[dir], func(entry string) bool { return r.matches(entry, allowed) }) {
			found = append(found, ".golangci.yml lets "+dir+" import "+allowed+", docs/internals/packages.md does not: remove it from the rule "+name+", or add it to the row")
		}
	}
	return found
}

var _ = Describe("The import rules", func() {
	It("are the same in docs/internals/packages.md and .golangci.yml, and exist nowhere else", func() {
		r := readRepository()
		Expect(len(r.table)).To(BeNumerically(">", 30))
		Expect(r.disagreements()).To(BeEmpty())
	})

	DescribeTable("are compared", func(change func(repository), want string) {
		r := repository{
			table: map[string][]string{"api": {}, "pkg/model": {}, "pkg/xds/plan": {"model", "yaml/v3"}, "pkg/app": nil},
			rules: map[string]rule{
				"api":   {"strict", []string{"**/api/*.go", "!$test"}, []string{"$gostd"}},
				"model": {"strict", []string{"**/pkg/model/*.go", "!$test"}, []string{"$gostd"}},
				"plan":  {"strict", []string{"**/pkg/xds/plan/*.go", "!$test"}, []string{"$gostd", module + "pkg/model$", "go.yaml.in/yaml/v3"}},
				"gin":   {"lax", []string{"!**/pkg/rest/*.go"}, nil},
			},
			packages: []string{"api", "pkg/model", "pkg/xds/plan", "pkg/app"},
			docs:     map[string]string{"pkg/model": "Package model holds the domain types."},
		}
		Expect(r.disagreements()).To(BeEmpty())
		change(r)
		Expect(r.disagreements()).To(Equal([]string{want}))
	},
		Entry("a package that only the table allows", func(r repository) { r.table["pkg/xds/plan"] = []string{"model", "yaml/v3", "api"} },
			"docs/internals/packages.md lets pkg/xds/plan import api, .golangci.yml does not: add it to the rule plan, or remove it from the row"),
		Entry("packages of a directory that only the table allows", func(r repository) {
			r.table["pkg/filter/*"], r.packages[3] = []string{"model", "filter/*"}, "pkg/filter/csrf"
			delete(r.table, "pkg/app")
			r.rules["filters"] = rule{"strict", []string{"**/pkg/filter/*/*.go", "!$test"}, []string{"$gostd", module + "pkg/model$"}}
		}, "docs/internals/packages.md lets pkg/filter/* import filter/*, .golangci.yml does not: add it to the rule filters, or remove it from the row"),
		Entry("a package that only depguard allows", func(r repository) { r.table["pkg/xds/plan"] = []string{"yaml/v3"} },
			".golangci.yml lets pkg/xds/plan import "+module+"pkg/model$, docs/internals/packages.md does not: remove it from the rule plan, or add it to the row"),
		Entry("a library that only depguard allows", func(r repository) { r.table["pkg/xds/plan"] = []string{"model"} },
			".golangci.yml lets pkg/xds/plan import go.yaml.in/yaml/v3, docs/internals/packages.md does not: remove it from the rule plan, or add it to the row"),
		Entry("a package without a row", func(r repository) { delete(r.table, "pkg/app") },
			"pkg/app has no row in docs/internals/packages.md: add one with what it may import"),
		Entry("a row without a package", func(r repository) { r.table["pkg/gone"] = nil },
			"docs/internals/packages.md has a row for pkg/gone, which has no Go files: remove the row"),
		Entry("a package without a rule", func(r repository) { delete(r.rules, "model") },
			`.golangci.yml has no rule for pkg/model: add one under depguard with "list-mode: strict" and "files: ["**/pkg/model/*.go", "!$test"]"`),
		Entry("a rule for a package that may import everything", func(r repository) {
			r.rules["app"] = rule{"strict", []string{"**/pkg/app/*.go"}, []string{"$gostd"}}
		}, `.golangci.yml has the rule app for "**/pkg/app/*.go": remove it, or name the packages of pkg/app in its row of docs/internals/packages.md`),
		Entry("a rule that skips files", func(r repository) {
			r.rules["api"] = rule{"strict", []string{"**/api/*.go", "!**/api/one.go"}, []string{"$gostd"}}
		}, `.golangci.yml: files of the rule api have to be "**/api/*.go" and "!$test"`),
		Entry("a list in a doc.go", func(r repository) { r.docs["pkg/model"] = "// It imports the standard library only." },
			"pkg/model/doc.go repeats what the package may import: remove the sentence, docs/internals/packages.md has it"),
	)
})
