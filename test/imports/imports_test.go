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
	table    map[string][]string // stage or package -> its column "may import"; nil for everything
	does     map[string]bool     // packages that say what they do
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

// readTable returns the tables of docs/internals/packages.md that have a column "may import".
func readTable(document string) map[string][]string {
	table := map[string][]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]* \\| ([^|]+) \\|$").FindAllStringSubmatch(document, -1) {
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

// readDoes returns the packages of the table "what each package does".
func readDoes(document string) map[string]bool {
	does := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| [^|]+ \\|$").FindAllStringSubmatch(document, -1) {
		does[row[1]] = true
	}
	return does
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
	document := read("docs/internals/packages.md")
	r := repository{readTable(document), readDoes(document), config.Linters.Settings.Depguard.Rules, nil, map[string]string{}}
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

// isStage reports whether a directory is a folder of packages, all of which have one rule.
func (r repository) isStage(dir string) bool {
	return !strings.HasSuffix(dir, "/*") && !slices.Contains(r.packages, dir) &&
		slices.ContainsFunc(r.packages, func(p string) bool { return strings.HasPrefix(p, dir+"/") })
}

// matches reports whether an entry in a row of a table stands for the allowed path.
// An entry names a stage or a package of this repository by its path without pkg/, and a
// library by a part of its path.
func (r repository) matches(entry, allowed string) bool {
	if r.isStage("pkg/" + entry) {
		return allowed == module+"pkg/"+entry+"/"
	}
	for _, own := range []string{entry, "pkg/" + entry} {
		if slices.Contains(r.packages, own) {
			return allowed == module+own+"$"
		}
	}
	return !strings.HasPrefix(allowed, module) && strings.Contains("/"+strings.TrimSuffix(allowed, "$")+"/", "/"+entry+"/")
}

// covers reports whether a row stands for a package.
func (r repository) covers(row, dir string) bool {
	return row == dir || path.Dir(dir)+"/*" == row || r.isStage(row) && strings.HasPrefix(dir, row+"/")
}

// files returns the files of the rule for a row.
func (r repository) files(row string) []string {
	if r.isStage(row) {
		return []string{"**/" + row + "/**", "!$test"}
	}
	return []string{"**/" + row + "/*.go", "!$test"}
}

// disagreements returns where the tables, the rules and the code disagree, with what to
// change.
func (r repository) disagreements() (found []string) {
	rules := map[string]string{} // stage or package -> name of its rule
	for _, name := range slices.Sorted(maps.Keys(r.rules)) {
		if r.rules[name].Mode != "strict" || len(r.rules[name].Files) == 0 {
			continue
		}
		dir := strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(r.rules[name].Files[0], "**/"), "/*.go"), "/**")
		rules[dir] = name
		if r.table[dir] == nil {
			found = append(found, ".golangci.yml has the rule "+name+` for "`+r.rules[name].Files[0]+`": remove it, or say in docs/internals/packages.md what `+dir+" may import")
		}
	}
	rows := slices.Sorted(maps.Keys(r.table))
	for _, dir := range r.packages {
		if !slices.ContainsFunc(rows, func(row string) bool { return r.covers(row, dir) }) {
			found = append(found, dir+" is in no stage, and docs/internals/packages.md does not say what it may import: move it into a stage")
		}
		if !r.does[dir] && !r.does[path.Dir(dir)+"/*"] {
			found = append(found, dir+" has no row in docs/internals/packages.md: add one with what it does")
		}
		if regexp.MustCompile(`\b(imports|may import)\b`).MatchString(r.docs[dir]) {
			found = append(found, dir+"/doc.go repeats what the package may import: remove the sentence, docs/internals/packages.md has it")
		}
	}
	for _, row := range slices.Sorted(maps.Keys(r.does)) {
		if !slices.ContainsFunc(r.packages, func(p string) bool { return row == p || path.Dir(p)+"/*" == row }) {
			found = append(found, "docs/internals/packages.md has a row for "+row+", which has no Go files: remove the row")
		}
	}
	for _, row := range rows {
		if !slices.ContainsFunc(r.packages, func(p string) bool { return r.covers(row, p) }) {
			found = append(found, "docs/internals/packages.md says what "+row+" may import, which has no Go files: remove the row")
		}
		if r.table[row] != nil {
			found = append(found, r.compare(row, rules[row])...)
		}
	}
	return found
}

// compare returns where the row of a package and its rule disagree.
func (r repository) compare(dir, name string) (found []string) {
	files := r.files(dir)
	if name == "" {
		return []string{`.golangci.yml has no rule for ` + dir + `: add one under depguard with "list-mode: strict" and "files: ["` + strings.Join(files, `", "`) + `"]"`}
	}
	if !slices.Equal(r.rules[name].Files, files) {
		found = append(found, ".golangci.yml: files of the rule "+name+` have to be "`+strings.Join(files, `" and "`)+`"`)
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
		Expect(len(r.table)).To(BeNumerically(">", 20))
		Expect(len(r.does)).To(BeNumerically(">", 50))
		Expect(r.disagreements()).To(BeEmpty())
	})

	DescribeTable("are compared", func(change func(repository), want string) {
		r := repository{
			table: map[string][]string{"api": {}, "pkg/core": {"core"}, "pkg/core/model": {}, "pkg/xds": {"core", "xds", "yaml/v3"}, "pkg/xds/plan": {"core/model"}, "pkg/run": nil},
			does:  map[string]bool{"api": true, "pkg/core/model": true, "pkg/xds/plan": true, "pkg/run/app": true},
			rules: map[string]rule{
				"api":   {"strict", []string{"**/api/*.go", "!$test"}, []string{"$gostd"}},
				"core":  {"strict", []string{"**/pkg/core/**", "!$test"}, []string{"$gostd", module + "pkg/core/"}},
				"model": {"strict", []string{"**/pkg/core/model/*.go", "!$test"}, []string{"$gostd"}},
				"xds":   {"strict", []string{"**/pkg/xds/**", "!$test"}, []string{"$gostd", module + "pkg/core/", module + "pkg/xds/", "go.yaml.in/yaml/v3"}},
				"plan":  {"strict", []string{"**/pkg/xds/plan/*.go", "!$test"}, []string{"$gostd", module + "pkg/core/model$"}},
				"gin":   {"lax", []string{"!**/pkg/input/rest/*.go"}, nil},
			},
			packages: []string{"api", "pkg/core/model", "pkg/xds/plan", "pkg/run/app"},
			docs:     map[string]string{"pkg/core/model": "Package model holds the domain types."},
		}
		Expect(r.disagreements()).To(BeEmpty())
		change(r)
		Expect(r.disagreements()).To(Equal([]string{want}))
	},
		Entry("a package that only the table allows", func(r repository) { r.table["pkg/xds/plan"] = []string{"core/model", "api"} },
			"docs/internals/packages.md lets pkg/xds/plan import api, .golangci.yml does not: add it to the rule plan, or remove it from the row"),
		Entry("a stage that only the table allows", func(r repository) { r.table["pkg/core"] = []string{"core", "xds"} },
			"docs/internals/packages.md lets pkg/core import xds, .golangci.yml does not: add it to the rule core, or remove it from the row"),
		Entry("a package that only depguard allows", func(r repository) { r.table["pkg/xds/plan"] = []string{} },
			".golangci.yml lets pkg/xds/plan import "+module+"pkg/core/model$, docs/internals/packages.md does not: remove it from the rule plan, or add it to the row"),
		Entry("a stage that only depguard allows", func(r repository) { r.table["pkg/xds"] = []string{"xds", "yaml/v3"} },
			".golangci.yml lets pkg/xds import "+module+"pkg/core/, docs/internals/packages.md does not: remove it from the rule xds, or add it to the row"),
		Entry("a library that only depguard allows", func(r repository) { r.table["pkg/xds"] = []string{"core", "xds"} },
			".golangci.yml lets pkg/xds import go.yaml.in/yaml/v3, docs/internals/packages.md does not: remove it from the rule xds, or add it to the row"),
		Entry("a package in no stage", func(r repository) {
			r.packages[3] = "pkg/model"
			delete(r.table, "pkg/run")
			delete(r.does, "pkg/run/app")
			r.does["pkg/model"] = true
		},
			"pkg/model is in no stage, and docs/internals/packages.md does not say what it may import: move it into a stage"),
		Entry("a package that says nothing of itself", func(r repository) { delete(r.does, "pkg/run/app") },
			"pkg/run/app has no row in docs/internals/packages.md: add one with what it does"),
		Entry("a row without a package", func(r repository) { r.does["pkg/core/gone"] = true },
			"docs/internals/packages.md has a row for pkg/core/gone, which has no Go files: remove the row"),
		Entry("imports of no package", func(r repository) { r.table["pkg/gone"] = nil },
			"docs/internals/packages.md says what pkg/gone may import, which has no Go files: remove the row"),
		Entry("a package without its rule", func(r repository) { delete(r.rules, "model") },
			`.golangci.yml has no rule for pkg/core/model: add one under depguard with "list-mode: strict" and "files: ["**/pkg/core/model/*.go", "!$test"]"`),
		Entry("a stage without its rule", func(r repository) { delete(r.rules, "core") },
			`.golangci.yml has no rule for pkg/core: add one under depguard with "list-mode: strict" and "files: ["**/pkg/core/**", "!$test"]"`),
		Entry("a rule for a package that may import everything", func(r repository) {
			r.rules["app"] = rule{"strict", []string{"**/pkg/run/app/*.go"}, []string{"$gostd"}}
		}, `.golangci.yml has the rule app for "**/pkg/run/app/*.go": remove it, or say in docs/internals/packages.md what pkg/run/app may import`),
		Entry("a rule that skips files", func(r repository) {
			r.rules["api"] = rule{"strict", []string{"**/api/*.go", "!**/api/one.go"}, []string{"$gostd"}}
		}, `.golangci.yml: files of the rule api have to be "**/api/*.go" and "!$test"`),
		Entry("a list in a doc.go", func(r repository) { r.docs["pkg/core/model"] = "// It imports the standard library only." },
			"pkg/core/model/doc.go repeats what the package may import: remove the sentence, docs/internals/packages.md has it"),
	)
})
