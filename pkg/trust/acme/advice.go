package acme

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"

	protocol "github.com/mholt/acmez/v3/acme"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// mostText bounds what is kept of the words of an authority, in bytes.
const mostText = 500

// explain returns what an attempt failed with, in the authority's own words where it has some, and what to do.
func explain(err error, host string) (text, advice string) {
	var problem protocol.Problem
	if errors.As(err, &problem) {
		detail := problem.Detail
		for _, sub := range problem.Subproblems {
			detail += "; " + sub.Detail
		}
		kind := strings.TrimPrefix(problem.Type, protocol.ProblemTypeNamespace)
		advice = adviceOn(kind, host)
		if _, is := errors.AsType[*unregistered](err); is && (kind == "unauthorized" || kind == "malformed") { // RFC 8555 section 7.3.4
			advice = "correct external_account in the global config: the authority shows you key_id and hmac_key"
		}
		return plain(kind + ": " + detail), advice
	}
	if hook, is := errors.AsType[*hookError](err); is {
		return plain(hook.text), hook.advice
	}
	var of *url.Error
	var dns *net.DNSError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "the authority did not answer in time", "check whether this machine reaches it"
	case errors.As(err, &dns):
		return "the name " + plain(dns.Name) + " of the authority does not resolve here", "correct the directory, or check the resolver"
	case errors.As(err, &of):
		return plain("the authority cannot be reached: " + of.Err.Error()), "check the directory, and whether this machine reaches it"
	}
	if e, is := errors.AsType[*model.Error](err); is && e.Kind == model.Unavailable {
		return "the database is away", "it is tried again"
	}
	return plain(err.Error()), "it is tried again"
}

// adviceOn says what to do about a type of problem (RFC 8555 section 6.7).
func adviceOn(problem, host string) string {
	switch problem {
	case "dns":
		return fmt.Sprintf("check the records of %s in public DNS: A and AAAA must lead to the gateway", host)
	case "connection":
		return fmt.Sprintf("open port 80 of %s to the internet, and lead it to the proxy's plain HTTP port (Http_port); "+
			"a wrong AAAA record counts too", host)
	case "unauthorized", "incorrectResponse":
		return fmt.Sprintf("something else answers for %s on port 80: DNS points elsewhere, or a proxy in front of the gateway "+
			"answers %s itself", host, model.ChallengePath)
	case "caa":
		return fmt.Sprintf("a CAA record of %s, or of a domain above it, does not allow this authority: change it", host)
	case "rateLimited":
		return "wait; use the directory staging for tests"
	case "rejectedIdentifier", "unsupportedIdentifier":
		return fmt.Sprintf("the authority issues no certificates for %s: attach a certificate of another one, and set Certificate=manual", host)
	case "externalAccountRequired":
		return "the authority wants external_account in the global config: it shows you key_id and hmac_key"
	case "userActionRequired":
		return "the terms of the authority have changed: agree to them at the address in its message"
	case "invalidProfile":
		return "correct profile in the global config"
	case "invalidContact", "unsupportedContact":
		return "correct email in the global config"
	case "serverInternal":
		return "it is tried again"
	}
	return "it is tried again; correct the global config if the message is about it"
}

// plain returns a text of somebody else for use in a line.
func plain(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), mostText)]
}
