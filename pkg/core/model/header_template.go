package model

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	// maxHeaderCommands bounds what the templates of a filter can make of a message.
	maxHeaderCommands = 50
	// maxCopied is in bytes. Without it, a template that repeats a long header of a client fills Envoy's memory.
	maxCopied     = 4096
	defaultCopied = 1024
)

// headerCommand matches a percent sign with what it begins: another one, or a command of Envoy's with its arguments and
// the length at which its value is cut.
var headerCommand = regexp.MustCompile(`%(?:%|([A-Z][A-Z0-9_]*)(?:\(([^()]*)\))?(?::([0-9]+))?%)?`)

// requestCommands and responseCommands are the commands without a header that templates may use: those that tell
// nothing of other requests, of the gateway's network or of tokens.
func requestCommands() []string {
	return []string{
		"DOWNSTREAM_PEER_FINGERPRINT_256", "DOWNSTREAM_PEER_SUBJECT", "DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT",
		"DOWNSTREAM_TLS_VERSION", "PROTOCOL", "REQUESTED_SERVER_NAME", "START_TIME",
	}
}

func responseCommands() []string { return append(requestCommands(), "RESPONSE_CODE") }

// headerTemplate accepts a template of a header's value, and counts its commands. Envoy would refuse the routes of a
// whole proxy for one that it cannot read (HeaderMutation.append.header.value).
func (v *validator) headerTemplate(field, s string, response bool) (commands int) {
	for _, m := range headerCommand.FindAllStringSubmatch(s, -1) {
		whole, command, argument, length := m[0], m[1], m[2], m[3]
		switch {
		case whole == "%%":
			continue
		case whole == "%":
			v.add(field, "has a %% that begins no command; write %%%% for a percent sign")
		case command == "REQ" || command == "RESP" && response:
			v.copiedHeader(field, command, argument, length, response)
		case !slices.Contains(responseCommands(), command) || !response && !slices.Contains(requestCommands(), command):
			v.add(field, "%q is not a command of templates; headers.md lists them", whole)
		case whole != "%"+command+"%" && !slices.Contains([]string{"%START_TIME(%s)%", "%START_TIME(%s.%3f)%"}, whole):
			v.add(field, "%q: the command has no such argument, and no length", whole)
		}
		commands++
	}
	return commands
}

// copiedHeader accepts the arguments of REQ and RESP: NAME, or NAME?OTHER, which stands in for it.
func (v *validator) copiedHeader(field, command, argument, length string, response bool) {
	names := strings.Split(argument, "?")
	if len(names) > 2 {
		v.add(field, "%q has more than two names", argument)
	}
	for _, name := range names {
		lower := strings.ToLower(name)
		switch {
		case command == "REQ" && slices.Contains([]string{":authority", ":method", ":path", ":scheme"}, lower):
		case strings.Contains(name, "%"):
			v.add(field, "%q is not an HTTP token", name)
		case command == "REQ" && response &&
			slices.Contains([]string{"authorization", "cookie", "proxy-authorization"}, lower):
			v.add(field, "an answer cannot repeat %q of its request, which scripts of a page must not read", name)
		default:
			v.token(field, name)
		}
	}
	if n, err := strconv.Atoi(length); length != "" && (err != nil || n < 1 || n > maxCopied) {
		v.add(field, "the length %s is not between 1 and %d", length, maxCopied)
	}
}

// BoundedTemplate returns a template that the model accepts, with a length for each header that it copies without one.
func BoundedTemplate(s string) string {
	return headerCommand.ReplaceAllStringFunc(s, func(whole string) string {
		if m := headerCommand.FindStringSubmatch(whole); m[3] == "" && (m[1] == "REQ" || m[1] == "RESP") {
			return strings.TrimSuffix(whole, "%") + ":" + strconv.Itoa(defaultCopied) + "%"
		}
		return whole
	})
}

// TemplateCopies reports whether a template that the model accepts has a command, REQ or RESP, for a header.
func TemplateCopies(s, command, header string) bool {
	return slices.ContainsFunc(headerCommand.FindAllStringSubmatch(s, -1), func(m []string) bool {
		return m[1] == command && slices.ContainsFunc(strings.Split(m[2], "?"), func(name string) bool {
			return strings.EqualFold(name, header)
		})
	})
}
