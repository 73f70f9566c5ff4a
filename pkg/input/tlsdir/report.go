package tlsdir

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// place returns the key of a condition on something that is not a secret.
func (d *Dir) place(path string) model.Key {
	return model.NewKey(Actor, filepath.Base(path))
}

// add adds a problem; only the first one of an object is shown.
func add(problems map[model.Key]string, key model.Key, text string) {
	if _, has := problems[key]; !has {
		problems[key] = text
	}
}

// report logs what has become wrong or right, and sets the conditions.
func (d *Dir) report(problems map[model.Key]string) {
	for key, text := range problems {
		if d.problems[key] != text {
			d.opts.Log.Warn("the directory of certificates has errors", "object", key.Path(), "reason", text)
		}
	}
	for key := range d.problems {
		if _, still := problems[key]; !still {
			d.opts.Log.Info("the directory of certificates has no errors any more", "object", key.Path())
		}
	}
	d.problems = problems
	var conditions []model.Condition
	for key, text := range problems {
		conditions = append(conditions, model.Condition{Key: key, Code: model.TLSDirectory, Message: text})
	}
	slices.SortFunc(conditions, func(a, b model.Condition) int { return cmp.Compare(a.Key.Path(), b.Key.Path()) })
	d.opts.Status.SetConditions(Actor, conditions)
}

// reportIgnored logs once what is ignored.
func (d *Dir) reportIgnored(notes []note) {
	ignored := map[string]string{}
	for _, n := range notes {
		if n.wrong {
			continue
		}
		ignored[n.path] = n.text
		if d.ignored[n.path] != n.text {
			d.opts.Log.Info("ignored in the directory of certificates", "path", n.path, "reason", n.text)
		}
	}
	d.ignored = ignored
}
