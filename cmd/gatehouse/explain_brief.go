package main

import (
	"slices"
	"strings"
)

// What an answer that is more than a screen is cut to: together no more than
// fit.
const (
	briefAnswers     = 5 // of several
	briefSteps       = 2
	briefRoutes      = 2 // before the chosen one, and behind it
	briefDescriptors = 2
	briefUpstreams   = 3
	briefLine        = 240
)

// shorten says what matters most, in less than a screen.
func shorten(list []explanation) sheet {
	var s sheet
	if len(list) == 1 {
		list[0].addBrief(&s)
	} else {
		for _, e := range list[:min(briefAnswers, len(list))] {
			e.addHead(&s)
		}
		if more := len(list) - briefAnswers; more > 0 {
			s.addLine("and %s in other states", plural(more, "group of Envoys", "groups of Envoys"))
		}
	}
	for i, line := range s {
		if r := []rune(line); len(r) > briefLine {
			s[i] = string(r[:briefLine-1]) + "…"
		}
	}
	return s
}

func (e explanation) addBrief(s *sheet) {
	e.addHead(s)
	for _, step := range e.keySteps() {
		s.addLine("  %s", step)
	}
	if e.TLS != nil && len(e.TLS.Certificates) > 0 && e.TLS.Certificates[0].Source != "" {
		s.addLine("  it is %s", e.TLS.Certificates[0].origin())
	}
	if len(e.Hosts) > 0 {
		before := ""
		if others := len(e.Hosts) - 1; others > 0 {
			before = ", before " + plural(others, "other that matches", "others that match")
		}
		s.addLine("host: %s of service %s%s", e.Hosts[0].Domain, e.Hosts[0].Service, before)
	}
	e.addBriefRoutes(s)
	left := briefDescriptors
	for _, f := range e.Filters {
		for _, d := range f.Descriptors {
			if d.Sent && left > 0 {
				s.addLine("rate limit: %s", d.Message)
				left--
			}
		}
	}
	if e.Forward != nil {
		e.addForward(s, briefUpstreams)
	}
}

// keySteps returns the steps that the rest of the text does not state.
func (e explanation) keySteps() []string {
	said := []string{"host", "filter", "route", "forward", "answer", "tls"}
	var list []string
	for _, step := range e.Steps {
		if slices.Contains(said, step.Code) || step.Message == e.Message ||
			step.Code == "listener" && strings.HasSuffix(step.Message, "accepts the connection") {
			continue
		}
		if step.Code == "certificate" { // the others lose to the first
			said = append(said, step.Code)
		}
		list = append(list, step.Message)
	}
	return list[:min(briefSteps, len(list))]
}

func (e explanation) addBriefRoutes(s *sheet) {
	if len(e.Routes) == 0 {
		return
	}
	s.addLine("routes:")
	tried, chosen := e.Routes, explainedRoute{}
	if last := e.Routes[len(e.Routes)-1]; last.Matches {
		tried, chosen = e.Routes[:len(e.Routes)-1], last
	}
	if more := len(tried) - briefRoutes; more > 0 {
		s.addLine("  %s before", plural(more, "other", "others"))
		tried = tried[more:]
	}
	for _, r := range tried {
		s.addLine("  - %s: %s", r.Route, r.decidingCheck(false))
	}
	if !chosen.Matches {
		return
	}
	s.addLine("  + %s: %s", chosen.Route, chosen.decidingCheck(true))
	told := 0
	for _, r := range e.Later {
		if r.Matches && told < briefRoutes {
			s.addLine("    %s %s", r.Route, r.Message)
			told++
		}
	}
	if more := len(e.Later) + e.MoreRoutes - told; more > 0 {
		s.addLine("    %s behind it", plural(more, "other", "others"))
	}
}

// decidingCheck returns the first check that holds, or that does not.
func (r explainedRoute) decidingCheck(holds bool) string {
	for _, c := range r.Checks {
		if c.Holds == holds {
			return c.Message
		}
	}
	return ""
}
