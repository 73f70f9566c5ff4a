package newcomer_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var (
	decisionTitle  = regexp.MustCompile(`^# (\d{4})\. (.+)\n\nStatus: ((?:.+\n)+)`)
	decisionStatus = regexp.MustCompile(
		`^(?:accepted|superseded by \[\d{4}\]\([^)]+\))(?:; amends [^;]+)?(?:; amended by [^;]+)?$`)
	decisionLink = regexp.MustCompile(`\[(\d{4})\]\(([^)]+)\)`)
	decisionRow  = regexp.MustCompile(`(?m)^\| \[(\d{4})\]\(([^)]+)\) \| (.+) \| (.+) \| (.+) \|$`)
)

// relation returns the decisions that the status of one names after a word.
func relation(status, word string) (list []string) {
	for part := range strings.SplitSeq(status, "; ") {
		if rest, ok := strings.CutPrefix(part, word+" "); ok {
			for _, m := range decisionLink.FindAllStringSubmatch(rest, -1) {
				list = append(list, m[1])
			}
		}
	}
	return list
}

// stateOf returns the column "state" for a status.
func stateOf(status string) string {
	if by := relation(status, "superseded by"); by != nil {
		return "superseded by " + by[0]
	}
	if by := relation(status, "amended by"); by != nil {
		return "binding, amended by " + strings.Join(by, ", ")
	}
	return "binding"
}

// wrongDecisions returns where decisions (file name -> text) and their index disagree.
func wrongDecisions(decisions map[string]string, index string) (wrong []string) {
	rows, statuses := map[string][]string{}, map[string]string{}
	for _, m := range decisionRow.FindAllStringSubmatch(index, -1) {
		if rows[m[1]] != nil {
			wrong = append(wrong, m[1]+" has two rows in the index")
		}
		rows[m[1]] = m
	}
	for _, file := range slices.Sorted(maps.Keys(decisions)) {
		head := decisionTitle.FindStringSubmatch(decisions[file])
		if head != nil {
			head[3] = strings.Join(strings.Fields(head[3]), " ") // it may have several lines
		}
		if head == nil || !strings.HasPrefix(file, head[1]+"-") || !decisionStatus.MatchString(head[3]) {
			wrong = append(wrong, file+" must begin with its number, its title and a status of the template's form")
			continue
		}
		number, title, status := head[1], head[2], head[3]
		statuses[number] = status
		row := rows[number]
		delete(rows, number)
		switch {
		case row == nil:
			wrong = append(wrong, file+" has no row in the index: docs/adr/README.md")
		case row[2] != file || row[3] != title:
			wrong = append(wrong, "the row of "+number+" in the index must have the file "+file+" and the title "+title)
		case row[5] != stateOf(status):
			wrong = append(wrong, "the row of "+number+" in the index says "+row[5]+", its status "+stateOf(status))
		}
	}
	for _, number := range slices.Sorted(maps.Keys(rows)) {
		wrong = append(wrong, "the index has a row for "+number+", which is not a decision")
	}
	for _, number := range slices.Sorted(maps.Keys(statuses)) {
		for _, pair := range [][2]string{{"amended by", "amends"}, {"amends", "amended by"}} {
			for _, other := range relation(statuses[number], pair[0]) {
				if !slices.Contains(relation(statuses[other], pair[1]), number) {
					wrong = append(wrong, "the status of "+number+" says "+pair[0]+" "+other+
						", that of "+other+" does not say "+pair[1]+" "+number)
				}
			}
		}
	}
	return wrong
}

var _ = Describe("The index of decisions", func() {
	It("has all of them, with their state", func() {
		files, err := filepath.Glob("../../docs/adr/[0-9]*.md")
		Expect(err).NotTo(HaveOccurred())
		decisions := map[string]string{}
		for _, file := range files {
			text, err := os.ReadFile(file)
			Expect(err).NotTo(HaveOccurred())
			decisions[filepath.Base(file)] = string(text)
		}
		delete(decisions, "0000-template.md")
		index, err := os.ReadFile("../../docs/adr/README.md")
		Expect(err).NotTo(HaveOccurred())
		Expect(len(decisions)).To(BeNumerically(">", 90))
		Expect(wrongDecisions(decisions, string(index))).To(BeEmpty())
	})

	DescribeTable("is compared with them", func(change func(map[string]string, *string), want ...string) {
		decisions := map[string]string{
			"0001-one.md": "# 0001. One log\n\nStatus: accepted;\namended by [0002](0002-two.md)\n",
			"0002-two.md": "# 0002. Two logs\n\nStatus: accepted; amends [0001](0001-one.md)\n",
			"0003-red.md": "# 0003. Red\n\nStatus: superseded by [0002](0002-two.md)\n",
		}
		index := `| [0001](0001-one.md) | One log | what | binding, amended by 0002 |
| [0002](0002-two.md) | Two logs | what | binding |
| [0003](0003-red.md) | Red | what | superseded by 0002 |
`
		Expect(wrongDecisions(decisions, index)).To(BeEmpty())
		change(decisions, &index)
		Expect(wrongDecisions(decisions, index)).To(Equal(want))
	},
		Entry("a decision without a row", func(d map[string]string, _ *string) {
			d["0004-new.md"] = "# 0004. New\n\nStatus: accepted\n"
		},
			"0004-new.md has no row in the index: docs/adr/README.md"),
		Entry("a row without a decision", func(d map[string]string, _ *string) { delete(d, "0003-red.md") },
			"the index has a row for 0003, which is not a decision"),
		Entry("another title", func(_ map[string]string, index *string) {
			*index = strings.Replace(*index, "One log", "A log", 1)
		},
			"the row of 0001 in the index must have the file 0001-one.md and the title One log"),
		Entry("another state", func(_ map[string]string, index *string) {
			*index = strings.Replace(*index, "superseded by 0002", "binding", 1)
		}, "the row of 0003 in the index says binding, its status superseded by 0002"),
		Entry("an amendment that the later one does not name", func(d map[string]string, _ *string) {
			d["0002-two.md"] = "# 0002. Two logs\n\nStatus: accepted\n"
		},
			"the status of 0001 says amended by 0002, that of 0002 does not say amends 0001"),
		Entry("an amendment that the earlier one does not name", func(d map[string]string, index *string) {
			d["0001-one.md"] = "# 0001. One log\n\nStatus: accepted\n"
			*index = strings.Replace(*index, ", amended by 0002", "", 1)
		}, "the status of 0002 says amends 0001, that of 0001 does not say amended by 0002"),
		Entry("a status in other words", func(d map[string]string, index *string) {
			d["0002-two.md"] = "# 0002. Two logs\n\nStatus: done; amends [0001](0001-one.md)\n"
		}, "0002-two.md must begin with its number, its title and a status of the template's form",
			"the index has a row for 0002, which is not a decision",
			"the status of 0001 says amended by 0002, that of 0002 does not say amends 0001"),
		Entry("two rows", func(_ map[string]string, index *string) {
			*index += "| [0001](0001-one.md) | One log | what | binding, amended by 0002 |\n"
		},
			"0001 has two rows in the index"),
	)
})
