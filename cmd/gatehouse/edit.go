package main

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newEdit() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "edit KIND/NAME",
		Short: "Change an object in an editor",
		Long: `Opens the fields of an object as YAML in $VISUAL, $EDITOR or vi, and sends those that
you changed when the editor ends. A line that you remove resets its field to the default. A
text that is not changed sends nothing. What the server refuses is opened again with the
reasons. If somebody else has changed the object meanwhile, nothing is sent, and the file
with your text stays.`,
		Example: `  gatehouse edit upstream web
  EDITOR=nano gatehouse edit route/shop/root --wait`,
		Args:              cobra.RangeArgs(1, 2),
		ValidArgsFunction: completeObject,
		RunE:              edit,
	}
	return withFormat(withServer(withWrite(cmd)), "", formatTable, formatJSON, formatYAML)
}

func edit(cmd *cobra.Command, args []string) error {
	kind, name, path, err := namedPath(cmd, args)
	if err != nil {
		return err
	}
	object, etag, err := readObject(cmd, path)
	if err != nil {
		return err
	}
	before, err := kind.EditText(object)
	if err != nil {
		return &runError{err}
	}
	dir, err := os.MkdirTemp("", "gatehouse-edit-")
	if err != nil {
		return &runError{err}
	}
	e := editing{
		cmd: cmd, kind: kind, name: name, before: before, file: filepath.Join(dir, kind.Name+".yaml"),
		req: client.Request{Method: http.MethodPatch, Path: path, Header: http.Header{"If-Match": {etag}}},
	}
	err = e.run()
	if e.keep {
		return &runError{fmt.Errorf("%w; your text is in %s", err, e.file)}
	}
	return errors.Join(err, os.RemoveAll(dir))
}

// editing is one object that a person changes.
type editing struct {
	cmd        *cobra.Command
	kind       client.Kind
	name       string
	before     string
	file       string
	req        client.Request
	keep, sent bool
}

// run opens the editor until the text is sent, not changed any more, or cannot be sent.
func (e *editing) run() error {
	text, reason := e.before, ""
	for {
		shown := e.heading(reason) + text
		if err := os.WriteFile(e.file, []byte(shown), 0o600); err != nil {
			return &runError{err}
		}
		if err := e.openEditor(); err != nil {
			e.keep = reason != ""
			return &runError{err}
		}
		raw, err := os.ReadFile(e.file)
		if err != nil {
			return &runError{fmt.Errorf("reading what was edited: %w", err)}
		}
		after := withoutHeading(string(raw))
		switch {
		case string(raw) == shown && reason != "":
			e.keep = true
			return errors.New("nothing was changed: the text is still refused: " + reason)
		case after == e.before || strings.TrimSpace(after) == "":
			p := printer{w: e.cmd.ErrOrStderr()}
			p.line("nothing was changed")
			return p.outputError()
		}
		text = after
		err = e.send(after)
		switch {
		case err == nil:
			return nil
		case isStatus(err, http.StatusPreconditionFailed):
			e.keep = true
			return fmt.Errorf("%s %s was changed by somebody else meanwhile, and your change was not sent: "+
				"see gatehouse history, then edit it again", e.kind.Name, e.name)
		case e.sent && !client.IsRefusal(err):
			_, lags := errors.AsType[*lagError](err)
			e.keep = !lags
			return err
		}
		reason = err.Error()
	}
}

// send sends the fields that differ.
func (e *editing) send(after string) error {
	e.sent = false
	body, err := e.kind.Edited(e.before, after)
	if err != nil {
		return err
	}
	if len(body) == 0 {
		return printEach(e.cmd.ErrOrStderr(), "", []string{"nothing was changed"})
	}
	e.sent = true
	return sendFields(e.cmd, e.req, body, e.kind.Name+" "+e.name+" is changed")
}

const headingMark = "#: "

// heading is the comment above the fields.
func (e *editing) heading(reason string) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(strings.TrimRight(headingMark+text, " ") + "\n") }
	line(e.kind.Name + " " + e.name + ": change the fields below, save, and end the editor. An empty file changes nothing.")
	if reason != "" {
		line("")
		for text := range strings.SplitSeq(reason, "\n") {
			line(text)
		}
	}
	return b.String()
}

func withoutHeading(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, strings.TrimSpace(headingMark)) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// openEditor runs the editor until it ends. It gets the signals of the terminal itself.
func (e *editing) openEditor() error {
	editor := cmp.Or(os.Getenv("VISUAL"), os.Getenv("EDITOR"), "vi")
	c := exec.Command("sh", "-c", editor+` "$1"`, "sh", e.file) //nolint:gosec // the editor is a command line of the user
	c.Stdin, c.Stdout, c.Stderr = e.cmd.InOrStdin(), e.cmd.ErrOrStderr(), e.cmd.ErrOrStderr()
	if f, ok := e.cmd.OutOrStdout().(*os.File); ok && isTerminal(f) {
		c.Stdout = f
	}
	if err := c.Run(); err != nil {
		return fmt.Errorf("the editor %q ended with an error (%w); nothing was changed", editor, err)
	}
	return nil
}
