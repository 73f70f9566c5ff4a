package model_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("A template of a header's value", func(value, request, response string) {
	for of, want := range map[string]string{"request": request, "response": response} {
		f := &model.Filter{Name: "f", Type: model.FilterHeaders, Config: model.JSON(fmt.Sprintf(`{"template":true,%q:{"set":{"x-a":%q}}}`, of, value))}
		var said []string
		for _, fault := range f.Validate() {
			said = append(said, fault.Message)
		}
		Expect(strings.Join(said, "; ")).To(Equal(want), of)
	}
},
	Entry("text", "a b", "", ""),
	Entry("a percent sign", "100%%", "", ""),
	Entry("a percent sign alone", "100%", notCommand, notCommand),
	Entry("percent signs that pair up otherwise", "%%%", notCommand, notCommand),
	Entry("a header", "%REQ(x-user)%", "", ""),
	Entry("two, with text", "%REQ(x-user)%@%REQ(:authority)%", "", ""),
	Entry("a header with another for it", "%REQ(x-user?x-client)%", "", ""),
	Entry("three", "%REQ(a?b?c)%", `"a?b?c" has more than two names`, `"a?b?c" has more than two names`),
	Entry("the longest length", "%REQ(x-user):4096%", "", ""),
	Entry("a longer one", "%REQ(x-user):4097%", "the length 4097 is not between 1 and 4096", "the length 4097 is not between 1 and 4096"),
	Entry("no length", "%REQ(x-user):0%", "the length 0 is not between 1 and 4096", "the length 0 is not between 1 and 4096"),
	Entry("a length that is no number of any size", "%REQ(a):99999999999999999999%", "the length 99999999999999999999 is not between 1 and 4096", "the length 99999999999999999999 is not between 1 and 4096"),
	Entry("no name", "%REQ()%", `"" is not an HTTP token`, `"" is not an HTTP token`),
	Entry("no parentheses", "%REQ%", `"" is not an HTTP token`, `"" is not an HTTP token`),
	Entry("a name with a space", "%REQ(a b)%", `"a b" is not an HTTP token`, `"a b" is not an HTTP token`),
	Entry("a name with a percent sign", "%REQ(a%b)%", `"a%b" is not an HTTP token`, `"a%b" is not an HTTP token`),
	Entry("another pseudo-header", "%REQ(:status)%", `":status" is not an HTTP token`, `":status" is not an HTTP token`),
	Entry("the request's cookies", "%REQ(Cookie)%", "", `an answer cannot repeat "Cookie" of its request, which scripts of a page must not read`),
	Entry("the request's credentials", "%REQ(x?Authorization)%", "", `an answer cannot repeat "Authorization" of its request, which scripts of a page must not read`),
	Entry("credentials for the gateway", "%REQ(proxy-authorization)%", "", `an answer cannot repeat "proxy-authorization" of its request, which scripts of a page must not read`),
	Entry("a header of the answer", "%RESP(x-a)%", `"%RESP(x-a)%" is not a command of templates; headers.md lists them`, ""),
	Entry("the status", "%RESPONSE_CODE%", `"%RESPONSE_CODE%" is not a command of templates; headers.md lists them`, ""),
	Entry("a time", "%START_TIME(%s.%3f)%", "", ""),
	Entry("a time in another form", "%START_TIME(%Y)%", `"%START_TIME(%Y)%": the command has no such argument, and no length`, `"%START_TIME(%Y)%": the command has no such argument, and no length`),
	Entry("an argument where there is none", "%PROTOCOL(a)%", `"%PROTOCOL(a)%": the command has no such argument, and no length`, `"%PROTOCOL(a)%": the command has no such argument, and no length`),
	Entry("a length where there is none", "%PROTOCOL:5%", `"%PROTOCOL:5%": the command has no such argument, and no length`, `"%PROTOCOL:5%": the command has no such argument, and no length`),
	Entry("what filters know of a client", "%DYNAMIC_METADATA(envoy.filters.http.jwt_authn)%", notCommandNamed("DYNAMIC_METADATA(envoy.filters.http.jwt_authn)"), notCommandNamed("DYNAMIC_METADATA(envoy.filters.http.jwt_authn)")),
	Entry("the environment of Envoy", "%ENVIRONMENT(HOME)%", notCommandNamed("ENVIRONMENT(HOME)"), notCommandNamed("ENVIRONMENT(HOME)")),
	Entry("the most commands", strings.Repeat("%PROTOCOL%", 50), "", ""),
	Entry("one more", strings.Repeat("%PROTOCOL%", 51), "has 51 commands in its templates; at most 50 are allowed", "has 51 commands in its templates; at most 50 are allowed"),
)

const notCommand = "has a % that begins no command; write %% for a percent sign"

func notCommandNamed(name string) string {
	return fmt.Sprintf(`"%%%s%%" is not a command of templates; headers.md lists them`, name)
}

var _ = DescribeTable("A template copies a header", func(value, name string, copies bool) {
	Expect(model.TemplateCopies(value, "REQ", name)).To(Equal(copies))
},
	Entry("that it names", "a %REQ(X-A)%", "x-a", true),
	Entry("that stands in", "%PROTOCOL% %REQ(x-b?x-a):5%", "x-a", true),
	Entry("not one with a longer name", "%REQ(x-ab)%", "x-a", false),
	Entry("not that of an answer", "%RESP(x-a)%", "x-a", false),
	Entry("not one in text", "x-a %%REQ(x-a)%%", "x-a", false),
)

var _ = DescribeTable("A header that is copied has a length", func(value, want string) {
	Expect(model.BoundedTemplate(value)).To(Equal(want))
},
	Entry("if it had none", "%REQ(a)%, %RESP(b?c)%", "%REQ(a):1024%, %RESP(b?c):1024%"),
	Entry("unless it has one", "%REQ(a):7%", "%REQ(a):7%"),
	Entry("but no other command", "%%REQ(a)%% %PROTOCOL% %START_TIME(%s)%", "%%REQ(a)%% %PROTOCOL% %START_TIME(%s)%"),
)
