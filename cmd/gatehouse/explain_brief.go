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
func shorten(list []explained) sheet {
	var s sheet
	if len(list) == 1 {
		list[0].addBrief(&s)
	} else {
		for _, e := range list[:min(briefAnswers, len(list))] {
			e.addHead(&s)
		}
		if more := len(list) - briefAnswers; more > 0 {
			s.say("and %s in other states", count(more, "group of Envoys", "groups of Envoys"))
		}
	}
	for i, line := range s {
		if r := []rune(line); len(r) > briefLine {
			s[i] = string(r[:briefLine-1]) + "…"
		}
	}
	return s
}

func (e explained) addBrief(s *sheet) {
	e.addHead(s)
	for _, step := range e.tellingSteps() {
		s.say("  %s", step)
	}
	if len(e.Hosts) > 0 {
		before := ""
		if others := len(e.Hosts) - 1; others > 0 {
			before = ", before " + count(others, "other that matches", "others that match")
		}
		s.say("host: %s of service %s%s", e.Hosts[0].Domain, e.Hosts[0].Service, before)
	}
	e.addBriefRoutes(s)
	left := briefDescriptors
	for _, f := range e.Filters {
		for _, d := range f.Descriptors {
			if d.Sent && left > 0 {
				s.say("rate limit: %s", d.Message)
				left--
			}
		}
	}
	if e.Forward != nil {
		e.addForward(s, briefUpstreams)
	}
}

// tellingSteps are the steps that the rest does not say.
func (e explained) tellingSteps() []string {
	said := []string{"host", "filter", "route", "forward", "answer"}
	var list []string
	for _, step := range e.Steps {
		if slices.Contains(said, step.Code) || step.Message == e.Message ||
			step.Code == "listener" && strings.HasSuffix(step.Message, "takes the connection") {
			continue
		}
		list = append(list, step.Message)
	}
	return list[:min(briefSteps, len(list))]
}

func (e explained) addBriefRoutes(s *sheet) {
	if len(e.Routes) == 0 {
		return
	}
	s.say("routes:")
	tried, chosen := e.Routes, explainedRoute{}
	if last := e.Routes[len(e.Routes)-1]; last.Matches {
		tried, chosen = e.Routes[:len(e.Routes)-1], last
	}
	if more := len(tried) - briefRoutes; more > 0 {
		s.say("  %s before", count(more, "other", "others"))
		tried = tried[more:]
	}
	for _, r := range tried {
		s.say("  - %s: %s", r.Route, r.why(false))
	}
	if !chosen.Matches {
		return
	}
	s.say("  + %s: %s", chosen.Route, chosen.why(true))
	told := 0
	for _, r := range e.Later {
		if r.Matches && told < briefRoutes {
			s.say("    %s %s", r.Route, r.Message)
			told++
		}
	}
	if more := len(e.Later) + e.MoreRoutes - told; more > 0 {
		s.say("    %s behind it", count(more, "other", "others"))
	}
}

// why is the first check that holds, or does not.
func (r explainedRoute) why(holds bool) string {
	for _, c := range r.Checks {
		if c.Holds == holds {
			return c.Message
		}
	}
	return ""
}
