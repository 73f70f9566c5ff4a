package explain_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = It("Every code of an answer is in the description of the API", func() {
	var codes []string
	for _, m := range regexp.MustCompile(`(?m)^\t[A-Z]\w+ += "([a-z_]+)"`).FindAllStringSubmatch(string(must(os.ReadFile("answer.go"))), -1) {
		codes = append(codes, m[1])
	}
	for _, file := range must(filepath.Glob("../../core/filter/*/*.go")) {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range regexp.MustCompile(`\bCode: +"([a-z_]+)"`).FindAllStringSubmatch(string(must(os.ReadFile(file))), -1) {
			codes = append(codes, m[1])
		}
	}
	lists := regexp.MustCompile(`enum: \[(forwarded, [^\]]+)\]`).FindAllStringSubmatch(string(must(os.ReadFile("../../../api/openapi.yaml"))), -1)
	Expect(lists).To(HaveLen(2), "that of explain, and that of a test of rate limits")
	for _, list := range lists {
		Expect(strings.Split(list[1], ", ")).To(ConsistOf(codes))
	}
})
