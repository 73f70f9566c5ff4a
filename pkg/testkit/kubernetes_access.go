package testkit

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// KubernetesRule is a permission, as an RBAC rule.
type KubernetesRule struct {
	// Namespace is where the permission applies; empty means everywhere, including
	// objects without a namespace.
	Namespace string
	// Groups are the API groups; none means the core group.
	Groups []string
	// Resources are resources such as secrets, or gatewayhosts/status.
	Resources []string
	// Names are those of the objects; none means all.
	Names []string
	Verbs []string
}

// Kubectl runs kubectl as the administrator and returns its output. An error contains
// the error output.
func (k *Kubernetes) Kubectl(ctx context.Context, args ...string) (string, error) {
	return k.kubectl(ctx, "", args...)
}

// Read returns what the API has at a path, in the form that the header Accept asks for. It is faster than Kubectl.
func (k *Kubernetes) Read(ctx context.Context, path, accept string) (string, error) {
	return read(ctx, k.client, k.URL+path, accept)
}

// Apply passes YAML documents to kubectl apply, with additional arguments such as
// --server-side or --dry-run=server, and returns its output.
func (k *Kubernetes) Apply(ctx context.Context, yaml string, args ...string) (string, error) {
	return k.kubectl(ctx, yaml, append([]string{"apply", "-f", "-"}, args...)...)
}

func (k *Kubernetes) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	path, err := Binary("kubernetes/kubectl")
	if err != nil {
		return "", err
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, path, append([]string{"--kubeconfig", k.Kubeconfig}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	// Discovery results of one API must not be used for another.
	cmd.Env = append(os.Environ(), "KUBECACHEDIR="+filepath.Join(k.dir, "kubectl-cache"))
	cmd.SysProcAttr = sysProcAttr()
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err,
			strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Namespace creates a namespace with labels such as
// pod-security.kubernetes.io/enforce=restricted.
func (k *Kubernetes) Namespace(ctx context.Context, name string, labels ...string) error {
	if _, err := k.Kubectl(ctx, "create", "namespace", name); err != nil {
		return err
	}
	if len(labels) == 0 {
		return nil
	}
	_, err := k.Kubectl(ctx, append([]string{"label", "namespace", name}, labels...)...)
	return err
}

// User returns the path of a kubeconfig for a user with only these permissions. The
// user's name is new.
func (k *Kubernetes) User(ctx context.Context, name string, rules ...KubernetesRule) (string, error) {
	pair, err := k.clientPair(name)
	if err != nil {
		return "", err
	}
	subject := map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": name}
	if err := k.grant(ctx, "test:user:"+name, subject, rules); err != nil {
		return "", err
	}
	path := filepath.Join(k.dir, "user-"+name+".kubeconfig")
	return path, k.writeKubeconfig(path, certificateUser(pair))
}

// ServiceAccount creates a service account unless it exists, adds these permissions to
// those that it has, and returns the path of a kubeconfig with its token.
func (k *Kubernetes) ServiceAccount(
	ctx context.Context, namespace, name string, rules ...KubernetesRule,
) (string, error) {
	if _, err := k.Apply(ctx, manifest("v1", "ServiceAccount", namespace, name, nil), "--server-side"); err != nil {
		return "", err
	}
	subject := map[string]any{"kind": "ServiceAccount", "namespace": namespace, "name": name}
	if err := k.grant(ctx, "test:serviceaccount:"+namespace+":"+name, subject, rules); err != nil {
		return "", err
	}
	token, err := k.Kubectl(ctx, "create", "token", name, "--namespace", namespace, "--duration", "24h")
	if err != nil {
		return "", err
	}
	path := filepath.Join(k.dir, "serviceaccount-"+namespace+"-"+name+".kubeconfig")
	return path, k.writeKubeconfig(path, map[string]any{"token": strings.TrimSpace(token)})
}

// grant creates a role and its binding for each namespace in the rules.
func (k *Kubernetes) grant(ctx context.Context, name string, subject map[string]any, rules []KubernetesRule) error {
	byNamespace := map[string][]map[string]any{}
	for _, r := range rules {
		rule := map[string]any{"apiGroups": r.Groups, "resources": r.Resources, "verbs": r.Verbs}
		if len(r.Groups) == 0 {
			rule["apiGroups"] = []string{""}
		}
		if len(r.Names) > 0 {
			rule["resourceNames"] = r.Names
		}
		byNamespace[r.Namespace] = append(byNamespace[r.Namespace], rule)
	}
	for namespace, rules := range byNamespace {
		kind := "Role"
		if namespace == "" {
			kind = "ClusterRole"
		}
		const group = "rbac.authorization.k8s.io"
		role := manifest(group+"/v1", kind, namespace, name, map[string]any{"rules": rules})
		binding := manifest(group+"/v1", kind+"Binding", namespace, name, map[string]any{
			"roleRef": map[string]any{"apiGroup": group, "kind": kind, "name": name}, "subjects": []any{subject},
		})
		if _, err := k.Apply(ctx, role+"---\n"+binding, "--server-side"); err != nil {
			return err
		}
	}
	return nil
}

// manifest returns an object as JSON, which is also YAML.
func manifest(apiVersion, kind, namespace, name string, fields map[string]any) string {
	metadata := map[string]any{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata}
	for key, value := range fields {
		object[key] = value
	}
	return toJSON(object) + "\n"
}

// certificateUser returns a user of a kubeconfig.
func certificateUser(p Pair) map[string]any {
	return map[string]any{"client-certificate-data": []byte(p.Cert), "client-key-data": []byte(p.Key)}
}

// writeKubeconfig writes a kubeconfig in JSON, which is also YAML; bytes are in base64.
func (k *Kubernetes) writeKubeconfig(path string, user map[string]any) error {
	text := toJSON(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test", "cluster": map[string]any{
			"server": k.URL, "certificate-authority-data": []byte(k.authority.PEM),
		}}},
		"users":    []any{map[string]any{"name": "test", "user": user}},
		"contexts": []any{map[string]any{"name": "test", "context": map[string]any{"cluster": "test", "user": "test"}}},
	})
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return fmt.Errorf("writing a kubeconfig: %w", err)
	}
	return nil
}

// httpClient returns a client of the API that authenticates with a certificate.
func (k *Kubernetes) httpClient(p Pair) (*http.Client, error) {
	cert, err := p.TLS()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: k.authority.Pool(), Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
	}}}, nil
}

func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values are only texts and maps of them
	}
	return string(b)
}
