package main

import "slices"

// series are the values of one side, a list for each thing that was measured.
type series struct {
	names  []string // in the order in which they came
	units  map[string]string
	values map[string][]float64
}

func newSeries() *series { return &series{units: map[string]string{}, values: map[string][]float64{}} }

func (s *series) add(what, unit string, value float64) {
	if !slices.Contains(s.names, what) {
		s.names = append(s.names, what)
		s.units[what] = unit
	}
	s.values[what] = append(s.values[what], value)
}

func (s *series) median(what string) float64 { return quantile(s.values[what], 0.5) }

// rows are lines of a table.
type rows []row

// medians returns a row for everything that was measured for Gatehouse. What was not
// measured for the other side has one number.
func medians(gatehouse, other *series) rows {
	var list rows
	for _, what := range gatehouse.names {
		r := row{What: what, Unit: gatehouse.units[what], Gatehouse: gatehouse.median(what)}
		if len(other.values[what]) > 0 {
			r = beside(what, r.Unit, r.Gatehouse, other.median(what))
		}
		list = append(list, r)
	}
	return list
}

// aim sets an aim of one of the rows: row.atMost compares the ratio of the row with the
// limit, row.below its number.
func (list rows) aim(what string, how func(row, float64) row, limit float64) {
	for i, r := range list {
		if r.What == what {
			list[i] = how(r, limit)
			return
		}
	}
	panic("no row " + what) // a mistake in this program
}

// summarize returns some of the rows without their aims, with a prefix.
func summarize(prefix string, list rows, whats ...string) rows {
	var out rows
	for _, what := range whats {
		i := slices.IndexFunc(list, func(r row) bool { return r.What == what })
		r := list[i]
		r.What, r.Aim, r.Met = prefix+what, "", nil
		out = append(out, r)
	}
	return out
}
