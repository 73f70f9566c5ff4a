package model_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("Spans and logs", func() {
	refusals := func(kind, config string) []string {
		var list []string
		for _, e := range (&model.GlobalConfig{Name: "g", Type: kind, Config: model.JSON(config)}).Validate() {
			list = append(list, e.Field+" "+e.Message)
		}
		return list
	}

	DescribeTable("are sent with a key that is a secret's, and that a collector can have", func(kind, config string, want ...any) {
		Expect(refusals(kind, config)).To(ConsistOf(want...))
	},
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","credential":{"secret":"k"}}`),
		Entry(nil, model.GlobalConfigAccessLog, `{"upstream":"c","credential":{"secret":"k","header":"X-Key"}}`),
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","credential":{}}`, "config.credential.secret is required"),
		Entry("the key itself", model.GlobalConfigTracing, `{"upstream":"c","credential":{"secret":"Bearer abc"}}`,
			And(HavePrefix("config.credential.secret must be the name of a secret"), Not(ContainSubstring("abc")))),
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","credential":{"secret":"k","header":":authority"}}`, ContainSubstring("config.credential.header")),
		Entry(nil, model.GlobalConfigAccessLog, `{"upstream":"c","credential":{"secret":"k","header":"content-length"}}`, ContainSubstring("config.credential.header")),
		Entry("no collector", model.GlobalConfigAccessLog, `{"credential":{"secret":"k"}}`, "config.credential is for a collector; name it in upstream"),
	)

	It("join the traces of Zipkin's clients only where they join any", func() {
		Expect(refusals(model.GlobalConfigTracing, `{"upstream":"c","b3":true}`)).To(BeEmpty())
		Expect(refusals(model.GlobalConfigTracing, `{"upstream":"c","b3":true,"parent":"ignore"}`)).To(Equal([]string{
			"config.b3 cannot be with parent ignore, which reads no trace of a client",
		}))
	})

	DescribeTable("may have the consumer, from one source", func(kind, config string, want ...string) {
		Expect(refusals(kind, config)).To(HaveExactElements(want))
	},
		Entry(nil, model.GlobalConfigAccessLog, `{"text":"{who} {in}","fields":[{"name":"who","consumer":"name"},{"name":"in","consumer":"groups"}]}`),
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","tags":[{"name":"who","consumer":"name"},{"name":"in","consumer":"groups"}]}`),
		Entry(nil, model.GlobalConfigAccessLog, `{"fields":[{"name":"who","consumer":"key"}]}`, `config.fields[0].consumer "key" is not one of name, groups`),
		Entry(nil, model.GlobalConfigAccessLog, `{"fields":[{"name":"who","consumer":"name","header":"x-who"}]}`,
			"config.fields[0] needs exactly one of value, header, response_header, claim, tlv, consumer"),
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","tags":[{"name":"who","consumer":"name","header":"x-who"}]}`,
			"config.tags[0] needs exactly one of value, header, response_header, consumer"),
	)

	DescribeTable("have no header with a secret", func(header, message string) {
		for kind, config := range map[string]string{
			model.GlobalConfigTracing:   `{"upstream":"c","tags":[{"name":"a","header":%[1]q},{"name":"b","response_header":%[1]q}],"force_header":%[1]q}`,
			model.GlobalConfigAccessLog: `{"fields":[{"name":"a","header":%[1]q},{"name":"b","response_header":%[1]q}]}`,
		} {
			list := refusals(kind, fmt.Sprintf(config, header))
			Expect(len(list)).To(BeNumerically(">=", 2), kind)
			Expect(list).To(HaveEach(ContainSubstring(message)))
		}
	},
		Entry(nil, "Authorization", "has credentials"),
		Entry(nil, "cookie", "has credentials"),
		Entry(nil, "Set-Cookie", "has credentials"),
		Entry(nil, "Proxy-Authorization", "has credentials"),
		Entry(nil, "X-Api-Key", "has credentials"),
		Entry(nil, "Referer", "has an address with its query"),
		Entry(nil, "Location", "has an address with its query"),
		Entry(nil, ":path", "has an address with its query"),
		Entry(nil, "a%REQ(cookie)%", "is not an HTTP token"),
		Entry(nil, "a%b", "is not an HTTP token"),
		Entry(nil, "a?cookie", "is not an HTTP token"),
		Entry(nil, strings.Repeat("a", 300), "has more than"),
	)

	It("are bounded", func() {
		many := strings.TrimSuffix(strings.Repeat(`{"name":"a","value":"b"},`, 33), ",")
		Expect(refusals(model.GlobalConfigTracing, `{"upstream":"c","tags":[`+many+`]}`)).To(Equal([]string{"config.tags has 33 tags; at most 32 are allowed"}))
		Expect(refusals(model.GlobalConfigAccessLog, `{"fields":[`+many+`]}`)).To(Equal([]string{"config.fields has 33 fields; at most 32 are allowed"}))
		long := strings.Repeat("x", 257)
		Expect(refusals(model.GlobalConfigTracing, `{"upstream":"c","tags":[{"name":"a","value":"`+long+`"}]}`)).To(Equal([]string{"config.tags[0].value has more than 256 characters"}))
	})

	DescribeTable("are a share that Envoy can take", func(kind, config string, refused bool) {
		Expect(refusals(kind, config)).To(HaveLen(map[bool]int{true: 1}[refused]), config)
	},
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","sampling":0}`, false),
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","sampling":0.01}`, false),
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","sampling":0.001}`, true),
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","sampling":100.1}`, true),
		Entry(nil, model.GlobalConfigTracing, `{"upstream":"c","sampling":-1}`, true),
		Entry(nil, model.GlobalConfigAccessLog, `{"only":{"percent":0.0001}}`, false),
		Entry(nil, model.GlobalConfigAccessLog, `{"only":{"percent":0.00001}}`, true),
	)

	It("have a field", func() {
		all := `"` + strings.Join(model.LogFieldNames(), `","`) + `"`
		Expect(refusals(model.GlobalConfigAccessLog, `{"omit":[`+all+`]}`)).To(Equal([]string{"config.omit leaves no field; leave it out or add fields"}))
		Expect(refusals(model.GlobalConfigAccessLog, `{"omit":[`+all+`],"fields":[{"name":"a","value":"b"}]}`)).To(BeEmpty())
	})

	DescribeTable("have one name for each field", func(config, refusal string) {
		if refusal == "" {
			Expect(refusals(model.GlobalConfigAccessLog, config)).To(BeEmpty())
			return
		}
		Expect(refusals(model.GlobalConfigAccessLog, config)).To(Equal([]string{refusal}))
	},
		Entry("a name that is free", `{"rename":{"path":"url"}}`, ""),
		Entry("the name of another", `{"rename":{"path":"service"}}`, `config.rename.path "service" is another field`),
		Entry("the name of one that is left out", `{"rename":{"path":"service"},"omit":["service"]}`, ""),
		Entry("one that has another name itself", `{"rename":{"path":"service","service":"name"}}`, ""),
		Entry("one name for two", `{"rename":{"path":"url","service":"url"}}`, `config.rename.service "url" is another field`),
		Entry("a field instead of another", `{"fields":[{"name":"service","value":"x"}]}`, ""),
		Entry("an empty name", `{"rename":{"path":""}}`, "config.rename.path is required"),
	)

	DescribeTable("of text", func(config string, refused ...any) {
		Expect(refusals(model.GlobalConfigAccessLog, config)).To(HaveExactElements(refused...))
	},
		Entry("a line", `{"text":"{{ {start_time}}} {a} 100%","fields":[{"name":"a","value":"b"}]}`),
		Entry("an unknown field", `{"text":"{stat}"}`, HavePrefix(`config.text "stat" is not one of authority, bytes_received`)),
		Entry("a field with spaces", `{"text":"{ path }"}`, HavePrefix(`config.text " path " is not one of authority`)),
		Entry("an open brace", `{"text":"{path"}`, `config.text has a { without the name of a field; write {{ for the character`),
		Entry("a closed brace", `{"text":"path}"}`, `config.text has a } without the name of a field; write }} for the character`),
		Entry("no name", `{"text":"{}"}`, `config.text has a { without the name of a field; write {{ for the character`),
		Entry("two lines", `{"text":"{path}\n"}`, `config.text has a control character; a line break is added to each line`),
		Entry("a tab", `{"text":"{path}\t{method}"}`),
		Entry("a collector", `{"text":"{path}","upstream":"c"}`, "config.text is for standard output, and upstream is a collector, which gets fields"),
		Entry("fields that are left out or renamed", `{"text":"{path}","omit":["service"],"rename":{"path":"url"}}`,
			"config.omit cannot be with text, which names the fields that it has", "config.rename cannot be with text, which names the fields that it has"),
		Entry("the longest", `{"text":"`+strings.Repeat("x", 4096)+`"}`),
		Entry("a longer one", `{"text":"`+strings.Repeat("x", 4097)+`"}`, "config.text has 4097 bytes; at most 4096 are allowed"),
		Entry("the most fields", `{"text":"`+strings.Repeat("{path}", 64)+`"}`),
		Entry("more fields", `{"text":"`+strings.Repeat("{path}", 65)+`"}`, "config.text has 65 fields; at most 64 are allowed"),
		Entry("all services, and only some", `{"always":true,"attached_only":true}`, "config.attached_only cannot be with always, which takes the requests of all services"),
	)

	DescribeTable("for Envoy's access log service", func(more string, refused ...any) {
		Expect(refusals(model.GlobalConfigAccessLog, `{"upstream":"c","protocol":"als"`+more+`}`)).To(HaveExactElements(refused...))
	},
		Entry("with consent", `,"discloses":["query","referer","metadata"]`),
		Entry("without", ``, HavePrefix("config.discloses must name query, referer, metadata: entries of the protocol als have the path with its query")),
		Entry("with less", `,"discloses":["query","metadata"]`, HavePrefix("config.discloses must name referer:")),
	)

	DescribeTable("for a file", func(name, config string, refused ...any) {
		var list []string
		for _, e := range (&model.GlobalConfig{Name: name, Type: model.GlobalConfigAccessLog, Config: model.JSON(config)}).Validate() {
			list = append(list, e.Field+" "+e.Message)
		}
		Expect(list).To(HaveExactElements(refused...))
	},
		Entry("the longest name", strings.Repeat("a", 200), `{"file":true}`),
		Entry("a longer one", strings.Repeat("a", 201), `{"file":true}`, "config.file needs a globalconfig_name of at most 200 characters, which is the name of the file"),
		Entry("a collector", "a", `{"file":true,"upstream":"c"}`, "config.file cannot be with upstream: a log goes to one place"),
		Entry("text", "a", `{"file":true,"text":"{path}"}`),
	)

	It("have lines of text with their parts", func() {
		c := model.AccessLogConfig{Text: "{{{path}}} 100% {a}{b}}}"}
		Expect(c.Line()).To(Equal([]model.LogPart{
			{Text: "{"}, {Field: "path"}, {Text: "} 100% "}, {Field: "a"}, {Field: "b"}, {Text: "}"},
		}))
	})

	DescribeTable("of a claim", func(claim, refusal string) {
		list := refusals(model.GlobalConfigAccessLog, fmt.Sprintf(`{"fields":[{"name":"a","claim":%q}]}`, claim))
		if refusal == "" {
			Expect(list).To(BeEmpty())
			return
		}
		Expect(list).To(ContainElement(ContainSubstring(refusal)))
	},
		Entry(nil, "realm.roles", ""),
		Entry(nil, "a:b", "which a field cannot read"),
		Entry(nil, "a)%REQ(cookie)%", "which a field cannot read"),
		Entry(nil, "a..b", "is not the name of a claim"),
	)
})

var _ = DescribeTable("A filter of logs", func(config string, refused ...any) {
	var list []string
	for _, e := range (&model.Filter{Name: "f", Type: model.FilterAccessLog, Config: model.JSON(config)}).Validate() {
		list = append(list, e.Field+" "+e.Message)
	}
	Expect(list).To(HaveExactElements(refused...))
},
	Entry("none", `{"logs":[]}`),
	Entry("eight", `{"logs":["a","b","c","d","e","f","g","h"]}`),
	Entry("nine", `{"logs":["a","b","c","d","e","f","g","h","i"]}`, "Filter_config.logs has 9 names; at most 8 are allowed"),
	Entry("no list", `{}`, "Filter_config.logs is required; [] means no log"),
	Entry("no name", `{"logs":["a",""]}`, "Filter_config.logs[1] is required"),
	Entry("not a name", `{"logs":["a'b"]}`, `Filter_config.logs[0] "a'b" may contain only the characters A-Z a-z 0-9 . _ -`),
)
