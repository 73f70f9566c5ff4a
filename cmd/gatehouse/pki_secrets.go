package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientv1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/pki"
)

// secretsLimit is how long the whole command may take.
const secretsLimit = 2 * time.Minute

// randomBytes is how much chance a password or token has.
const randomBytes = 32

// secretFlags name the Secrets and what belongs into each.
type secretFlags struct {
	kubeconfig, namespace        string
	authority, server, ratelimit string
	hosts, proxies               []string
	random, keys                 []string
}

func newPKISecrets() *cobra.Command {
	var f secretFlags
	cmd := &cobra.Command{
		Use:   "secrets",
		Short: "Fill Secrets of Kubernetes with certificates, and renew them: the Job of the Helm chart",
		Long: `Makes an authority and certificates as "gatehouse pki" does, in Secrets of Kubernetes
that exist: tls.crt, tls.key and ca.crt. Valid certificates are kept; those that expire within
30 days are made again with the same key. With --random and --secret-key, it also makes
tokens, passwords and the key that seals secrets, where there are none. It needs the
rights get and update of these Secrets.`,
		Example: `  gatehouse pki secrets --namespace gw --authority gateway-ca --server control-tls --host control.gw.svc \
    --proxy edge=edge-tls --ratelimit ratelimit-tls --random api/token`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			wanted, err := f.pairs()
			if err != nil {
				return err
			}
			client, err := f.client()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), secretsLimit)
			defer cancel()
			v := &vault{client: client, namespace: f.namespace, out: cmd.OutOrStdout()}
			if err := f.fill(ctx, v, wanted, time.Now()); err != nil {
				return &runError{err}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file that says how to reach Kubernetes (default: as a pod does, else KUBECONFIG)")
	flags.StringVar(&f.namespace, "namespace", "", "namespace of the Secrets")
	flags.StringVar(&f.authority, "authority", "", "Secret of the authority: ca.crt and ca.key")
	flags.StringVar(&f.server, "server", "", "Secret of the control plane")
	flags.StringSliceVar(&f.hosts, "host", nil, "DNS names and addresses under which Envoys reach the control plane")
	flags.StringArrayVar(&f.proxies, "proxy", nil, "NAME=SECRET: Secret of the Envoys of a proxy; may be repeated")
	flags.StringVar(&f.ratelimit, "ratelimit", "", "Secret of the rate-limit engine")
	flags.StringArrayVar(&f.random, "random", nil, "SECRET/KEY that gets a random text, if it has none; may be repeated")
	flags.StringArrayVar(&f.keys, "secret-key", nil, "SECRET/KEY that gets a new key for --secret-key-file, if it has none; may be repeated")
	cobra.CheckErr(cmd.MarkFlagRequired("namespace"))
	return cmd
}

// wantedPair is a Secret and whose certificate it is for.
type wantedPair struct {
	secret   string
	identity pki.Identity
}

// pairs are the Secrets that get a certificate.
func (f *secretFlags) pairs() (list []wantedPair, err error) {
	add := func(secret, purpose, name string, hosts []string) {
		i, e := pki.NewIdentity(purpose, name, hosts)
		list, err = append(list, wantedPair{secret, i}), errors.Join(err, e)
	}
	if f.server != "" {
		if len(f.hosts) == 0 {
			return nil, errors.New("--server needs --host: the names and addresses under which Envoys reach the control plane")
		}
		add(f.server, string(pki.Server), "", f.hosts)
	}
	for _, given := range f.proxies {
		name, secret, found := strings.Cut(given, "=")
		if !found || secret == "" {
			return nil, fmt.Errorf("--proxy %q is not NAME=SECRET", given)
		}
		add(secret, string(pki.Proxy), name, nil)
	}
	if f.ratelimit != "" {
		add(f.ratelimit, string(pki.RateLimit), "", nil)
	}
	if len(list) > 0 && f.authority == "" {
		return nil, errors.New("--authority is missing: the Secret of the authority that signs the certificates")
	}
	return list, err
}

func (f *secretFlags) client() (clientv1.SecretsGetter, error) {
	load := func() (*rest.Config, error) { return clientcmd.BuildConfigFromFlags("", f.kubeconfig) }
	if f.kubeconfig == "" {
		if f.kubeconfig = os.Getenv("KUBECONFIG"); f.kubeconfig == "" {
			load = rest.InClusterConfig
		}
	}
	cfg, err := load()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig: %w (name a file, or run it in a pod with a token of its service account)", err)
	}
	return clientv1.NewForConfig(cfg)
}

// fill brings the Secrets to what they should have. The authority is written first,
// so that nobody trusts one that is nowhere.
func (f *secretFlags) fill(ctx context.Context, v *vault, wanted []wantedPair, now time.Time) error {
	if len(wanted) > 0 {
		if err := f.certificates(ctx, v, wanted, now); err != nil {
			return err
		}
	}
	for _, given := range f.random {
		if err := v.create(ctx, "--random", given, randomText); err != nil {
			return err
		}
	}
	for _, given := range f.keys {
		if err := v.create(ctx, "--secret-key", given, newSecretKeyText); err != nil {
			return err
		}
	}
	return nil
}

func (f *secretFlags) certificates(ctx context.Context, v *vault, wanted []wantedPair, now time.Time) error {
	authority, err := v.get(ctx, f.authority)
	if err != nil {
		return err
	}
	secrets := make([]*corev1.Secret, len(wanted))
	pairs := make([]pki.SecretPair, len(wanted))
	for i, w := range wanted {
		if secrets[i], err = v.get(ctx, w.secret); err != nil {
			return err
		}
		pairs[i] = pki.SecretPair{Identity: w.identity, Data: secrets[i].Data}
	}
	lifetimes := pki.Lifetimes{Authority: authorityDays * day, Certificate: certificateDays * day, RenewWithin: renewWithin * day}
	root, all, err := pki.Refresh(authority.Data, pairs, now, lifetimes)
	if err != nil {
		return fmt.Errorf("%w (Secret %s)", err, f.authority)
	}
	if err := v.update(ctx, authority, root); err != nil {
		return err
	}
	for i, s := range secrets {
		if err := v.update(ctx, s, all[i]); err != nil {
			return err
		}
	}
	return nil
}

// vault reads and writes Secrets of a namespace.
type vault struct {
	client    clientv1.SecretsGetter
	namespace string
	out       io.Writer
}

func (v *vault) get(ctx context.Context, name string) (*corev1.Secret, error) {
	s, err := v.client.Secrets(v.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s/%s: %w", v.namespace, name, err)
	}
	return s, nil
}

// update writes a Secret whose data differs. Another writer in between is an error:
// what was made is of no use then, and the next run looks again.
func (v *vault) update(ctx context.Context, s *corev1.Secret, data map[string][]byte) error {
	word := "unchanged"
	if !reflect.DeepEqual(s.Data, data) {
		changed := s.DeepCopy()
		changed.Data = data
		if _, err := v.client.Secrets(v.namespace).Update(ctx, changed, metav1.UpdateOptions{}); err != nil {
			return fmt.Errorf("writing Secret %s/%s: %w", v.namespace, s.Name, err)
		}
		word = "written: " + strings.Join(slices.Sorted(maps.Keys(data)), ", ")
	}
	_, err := fmt.Fprintf(v.out, "Secret %s/%s: %s\n", v.namespace, s.Name, word)
	return err
}

// create gives a key of a Secret a value, if it has none.
func (v *vault) create(ctx context.Context, flag, given string, value func() ([]byte, error)) error {
	name, key, found := strings.Cut(given, "/")
	if !found || name == "" || key == "" {
		return fmt.Errorf("%s %q is not SECRET/KEY", flag, given)
	}
	s, err := v.get(ctx, name)
	if err != nil {
		return err
	}
	data := maps.Clone(s.Data)
	if len(data[key]) == 0 {
		if data == nil {
			data = map[string][]byte{}
		}
		if data[key], err = value(); err != nil {
			return err
		}
	}
	return v.update(ctx, s, data)
}

func randomText() ([]byte, error) {
	b := make([]byte, randomBytes)
	_, err := rand.Read(b)
	return []byte(hex.EncodeToString(b)), err
}

// newSecretKeyText is the content of a new file for --secret-key-file.
func newSecretKeyText() (text []byte, err error) {
	dir, err := os.MkdirTemp("", "gatehouse-key-")
	if err != nil {
		return nil, fmt.Errorf("making a directory for the key: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "secret.key")
	if err := app.NewSecretKey(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}
