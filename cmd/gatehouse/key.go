package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/client"
)

func newKey() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "key",
		Short: "Create API keys",
		Long: `Creates API keys. gatehouse get keys KEYSET lists those of a set, and
gatehouse delete key/KEYSET/NAME revokes one.`,
		Example: "  gatehouse key create partners/mobile > mobile.key",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newKeyCreate())
	return cmd
}

func newKeyCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create KEYSET/NAME",
		Short: "Create an API key and print it; it is never shown again",
		Example: `  gatehouse key create partners/mobile > mobile.key
  gatehouse key create partners/mobile-2 --description "the phone app, from May on" --wait`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text := strings.Join(args, "/")
			if kind, name, err := client.ParseObject(text); err == nil && kind.Name == "key" {
				text = name
			}
			set, name, ok := strings.Cut(text, "/")
			if !ok || set == "" || name == "" || strings.Contains(name, "/") {
				return fmt.Errorf("%q does not name a key; write KEYSET/NAME", text)
			}
			return createKey(cmd, set, name)
		},
	}
	cmd.Flags().String("description", "", "who uses the key")
	return withServer(withWrite(cmd))
}

// createKey makes a key and prints it, also where the wait for the Envoys ended too early.
func createKey(cmd *cobra.Command, set, name string) error {
	fields := url.Values{"Key_name": {name}}
	if d := text(cmd, "description"); d != "" {
		fields.Set("Key_description", d)
	}
	req := client.Request{
		Method: http.MethodPost, Path: client.Path("keyset", set, "key"), ContentType: "application/x-www-form-urlencoded", Body: []byte(fields.Encode()),
	}
	if err := addWait(cmd, &req.Query); err != nil {
		return err
	}
	r, err := connect(cmd)
	if err != nil {
		return err
	}
	defer r.Close()
	var answer client.Answer
	err = r.call(cmd.Context(), func() (err error) {
		answer, err = r.Do(cmd.Context(), req)
		return err
	})
	if err != nil {
		return err
	}
	var made struct{ Key string }
	if err := json.Unmarshal(answer.Data, &made); err != nil || made.Key == "" {
		return &runError{errors.New("the answer has no key; does the server have another version? See gatehouse get keys " + set)}
	}
	p := printer{w: r.out}
	p.line("%s", client.Printable(made.Key))
	return errors.Join(p.outputError(), checkLag(answer))
}
