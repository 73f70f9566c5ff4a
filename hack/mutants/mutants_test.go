package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"
)

func TestMutants(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "mutants")
}

const code = `package calc

// Add adds.
func Add(a, b int) int {
	return a + b
}

// Down counts to nothing.
func Down(n int) {
	for n > 0 {
		n--
	}
}

// Unseen is in no spec.
func Unseen() int { return 1 }
`

// The flags are those of ginkgo.
const specsOfCode = `package calc

import ("flag"; "testing")

var (
	_ = flag.Bool("ginkgo.fail-fast", false, "")
	_ = flag.Bool("ginkgo.no-color", false, "")
	_ = flag.String("ginkgo.focus", "", "")
)

func TestAll(t *testing.T) {
	if Add(1, 2) != 3 { t.Fatal("wrong sum") }
	Down(2)
}
`

const table = `# What can be broken in calc.

calc/calc.go: a sum is a difference
specs: calc
-	return a + b
+	return a - b

calc/calc.go: nothing counts down
specs: calc some focus
 	for n > 0 {
-		n--
+		_ = n

calc/calc.go: nobody looks
specs: calc
-func Unseen() int { return 1 }
+func Unseen() int { return 2 }

calc/calc.go: the text has changed
specs: calc
-	return a * b
+	return b

calc/calc.go: the text is in two places
specs: calc
-int
+int64

calc/calc.go: what is no code
specs: calc
-	return a + b
+	return a +
`

var _ = Describe("the mutants", func() {
	var root string
	write := func(name, text string) {
		GinkgoHelper()
		path := filepath.Join(root, name)
		Expect(os.MkdirAll(filepath.Dir(path), 0o700)).To(Succeed())
		Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	}
	BeforeEach(func() {
		root = GinkgoT().TempDir()
		GinkgoT().Setenv("TMPDIR", GinkgoT().TempDir())
		write("go.mod", "module example.com/m\n\ngo 1.26\n")
		write("calc/calc.go", code)
		write("calc/calc_test.go", specsOfCode)
		write("hack/mutants/calc.txt", table)
		write("bin/program", "built")
		write(".gitignore", "/bin/\n")
		Expect(exec.Command("git", "init", "--quiet", root).Run()).To(Succeed())
		GinkgoT().Chdir(root)
	})
	// files returns the contents of files by name.
	files := func(dir string) map[string]string {
		GinkgoHelper()
		all := map[string]string{}
		Expect(filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			all[path] = string(text)
			return err
		})).To(Succeed())
		return all
	}

	It("reports for each whether it is caught, and touches nothing", func(ctx SpecContext) {
		before := files(root)
		out := &strings.Builder{}
		err := run(ctx, []string{"-timeout", "6s"}, out)
		Expect(err).To(MatchError(ContainSubstring("needs a spec")))
		var verdicts []string
		for line := range strings.Lines(out.String()) {
			if !strings.HasPrefix(line, " ") {
				verdicts = append(verdicts, strings.Join(append(strings.Fields(line)[:1], strings.Fields(line)[2:]...), " "))
			}
		}
		Expect(verdicts).To(Equal([]string{
			"caught calc-1 calc/calc.go: a sum is a difference",
			"hangs calc-2 calc/calc.go: nothing counts down",
			"SURVIVED calc-3 calc/calc.go: nobody looks",
			"STALE calc-4 calc/calc.go: the text has changed",
			"STALE calc-5 calc/calc.go: the text is in two places",
			"BROKEN calc-6 calc/calc.go: what is no code",
			"2 6 mutants caught (33%)",
		}))
		Expect(out.String()).To(ContainSubstring("the text occurs 4 times"))
		Expect(out.String()).To(ContainSubstring("it does not compile"))
		Expect(files(root)).To(Equal(before))
		Expect(files(os.Getenv("TMPDIR"))).To(BeEmpty())
	})

	It("succeeds if all that were chosen are caught", func(ctx SpecContext) {
		out := &strings.Builder{}
		Expect(run(ctx, []string{"calc-1"}, out)).To(Succeed())
		Expect(out.String()).To(HaveSuffix("1 of 1 mutants caught (100%)\n"))
	})

	It("does not count specs that also fail without the mutant", func(ctx SpecContext) {
		write("calc/more_test.go", "package calc\n\nimport \"testing\"\n\nfunc TestMore(t *testing.T) { t.Fatal(\"always\") }\n")
		out := &strings.Builder{}
		Expect(run(ctx, []string{"calc-1"}, out)).NotTo(Succeed())
		Expect(out.String()).To(ContainSubstring("BROKEN"))
		Expect(out.String()).To(ContainSubstring("without the mutant"))
		Expect(out.String()).To(HaveSuffix("0 of 1 mutants caught (0%)\n"))
	})

	It("leaves nothing behind when it is interrupted", func(ctx SpecContext) {
		before := files(root)
		ctx2, cancel := context.WithCancel(ctx)
		out := gbytes.NewBuffer()
		ended := make(chan error, 1)
		go func() { ended <- run(ctx2, []string{"calc-1", "calc-2"}, out) }()
		Eventually(out).WithTimeout(time.Minute).Should(gbytes.Say("calc-1")) // calc-2 hangs, or will
		cancel()
		Eventually(ended).WithTimeout(time.Minute).Should(Receive(MatchError("interrupted")))
		Expect(files(root)).To(Equal(before))
		Expect(files(os.Getenv("TMPDIR"))).To(BeEmpty())
	})

	It("lists them, and which are stale", func(ctx SpecContext) {
		out := &strings.Builder{}
		Expect(run(ctx, []string{"-list"}, out)).To(MatchError("2 are stale"))
		Expect(strings.Count(out.String(), "STALE")).To(Equal(2))
		out.Reset()
		Expect(run(ctx, []string{"-list", "calc-1", "calc/calc.go"}, out)).To(MatchError("2 are stale"))
		Expect(out.String()).To(HaveSuffix("6 mutants\n"))
		Expect(run(ctx, []string{"nothing-7"}, out)).To(MatchError(ContainSubstring(`"nothing-7"`)))
	})

	It("picks some at random, and the same ones for the same seed", func(ctx SpecContext) {
		listed := func(args ...string) string {
			out := &strings.Builder{}
			_ = run(ctx, append([]string{"-list"}, args...), out)
			return out.String()
		}
		Expect(listed("-sample", "3", "-seed", "7")).To(HaveSuffix("3 mutants\n"))
		Expect(listed("-sample", "3", "-seed", "7")).To(Equal(listed("-sample", "3", "-seed", "7")))
		Expect(listed("-sample", "3", "-seed", "7")).NotTo(Equal(listed("-sample", "3", "-seed", "8")))
		Expect(listed("-sample", "9")).To(Equal(listed()), "as they are listed, each once")
	})

	DescribeTable("refuses a table that is wrong", func(text, want string) {
		_, err := parseTable("t", text)
		Expect(err).To(MatchError(ContainSubstring(want)))
	},
		Entry("no file", "\n# x\nno colon\n", `in line 3: "no colon" must be the file`),
		Entry("no specs", "a.go: b\n-x\n+y\n", "it says no specs"),
		Entry("no change", "a.go: b\nspecs: p\n x\n", "it changes nothing"),
		Entry("no diff", "a.go: b\nspecs: p\nx\n", `"x" must begin with`),
	)
})

var _ = It("can read the tables of this repository", func() {
	list, err := readTables(".")
	Expect(err).NotTo(HaveOccurred())
	Expect(len(list)).To(BeNumerically(">", 1000))
})
