package testkit

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// KubernetesOptions say how a Kubernetes differs from the default.
type KubernetesOptions struct {
	// Audit writes each request to the file AuditLog: who, what and when (level
	// Metadata).
	Audit bool
	// Args are additional arguments of kube-apiserver. They override the flags of this
	// package.
	Args []string
}

// Kubernetes is a running kube-apiserver with its etcd: the API, its validation,
// admission (including Pod Security) and RBAC are real. Nothing else runs: no node, and
// none of the controllers. So Pods are not started, a deleted namespace stays
// Terminating, owned objects are not garbage-collected, Services get no EndpointSlices,
// and namespaces no service account default (Pods need none, because the admission
// plugin ServiceAccount is off). A test writes what it needs of these. Its methods are
// for one goroutine, except those that call the API, ServiceAccount and User.
type Kubernetes struct {
	// Server is the process of kube-apiserver, for Freeze and Thaw. Start replaces it.
	Server *Process
	// URL is the address of the API, https://127.0.0.1:PORT.
	URL string
	// Kubeconfig is the path of a file with the permissions of a cluster administrator.
	Kubeconfig string
	// AuditLog is the path of the log for KubernetesOptions.Audit, one JSON object per
	// line.
	AuditLog string

	dir       string
	authority *Authority
	client    *http.Client
	etcd      *Process
	args      []string
}

// StartKubernetes runs etcd and kube-apiserver on free ports and returns when the API
// is ready, which takes some seconds: suites share one, and use a namespace for each
// spec. dir is an empty directory. End stops it.
func StartKubernetes(ctx context.Context, dir string, o KubernetesOptions) (*Kubernetes, error) {
	ports, err := freePorts(3)
	if err != nil {
		return nil, err
	}
	k := &Kubernetes{
		URL: fmt.Sprintf("https://127.0.0.1:%d", ports[2]), dir: dir,
		Kubeconfig: filepath.Join(dir, "admin.kubeconfig"), AuditLog: filepath.Join(dir, "audit.log"),
	}
	if err := k.makeKeys(); err != nil {
		return nil, err
	}
	etcdURL := fmt.Sprintf("http://127.0.0.1:%d", ports[0])
	if err := k.startEtcd(ctx, etcdURL, fmt.Sprintf("http://127.0.0.1:%d", ports[1])); err != nil {
		return nil, err
	}
	k.args, err = k.serverArgs(etcdURL, ports[2], o)
	if err == nil {
		err = k.Start(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, k.End())
	}
	return k, nil
}

// Start restarts the API after Stop, on its port and with its data.
func (k *Kubernetes) Start(ctx context.Context) error {
	path, err := Binary("kubernetes/kube-apiserver")
	if err != nil {
		return err
	}
	if k.Server, err = startProcess(path, nil, k.args...); err != nil {
		return err
	}
	err = k.Server.await(ctx, "kube-apiserver is ready", func() error { return get(ctx, k.client, k.URL+"/readyz") })
	if err != nil {
		return errors.Join(err, k.Server.Kill())
	}
	return nil
}

// Stop stops the API immediately: its connections are reset. Its data stays, for Start.
func (k *Kubernetes) Stop() error { return k.Server.Kill() }

// End stops everything. The test removes its files.
func (k *Kubernetes) End() error {
	k.client.CloseIdleConnections()
	var errs []error
	for _, p := range []*Process{k.Server, k.etcd} {
		if p != nil {
			errs = append(errs, p.Kill())
		}
	}
	return errors.Join(errs...)
}

// makeKeys writes the keys and certificates, and the file of the administrator.
func (k *Kubernetes) makeKeys() error {
	var err error
	if k.authority, err = NewAuthority("kubernetes"); err != nil {
		return err
	}
	server, err := k.authority.Issue(CertificateOptions{
		Subject: "kube-apiserver", Names: []string{"127.0.0.1", "localhost", "kubernetes.default.svc"},
		NotAfter: time.Now().Add(24 * time.Hour),
	})
	if err != nil {
		return err
	}
	accounts, err := k.authority.Issue(CertificateOptions{Subject: "service-accounts"})
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"ca.crt": k.authority.PEM, "server.crt": server.Cert, "server.key": server.Key, "accounts.crt": accounts.Cert,
		"accounts.key": accounts.Key,
		"audit.yaml": `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": ` +
			`[{"level": "Metadata"}]}`,
	} {
		if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("writing the keys of Kubernetes: %w", err)
		}
	}
	admin, err := k.clientPair("admin", "system:masters")
	if err != nil {
		return err
	}
	if k.client, err = k.httpClient(admin); err != nil {
		return err
	}
	return k.writeKubeconfig(k.Kubeconfig, certificateUser(admin))
}

// clientPair returns the certificate of a user in groups.
func (k *Kubernetes) clientPair(user string, groups ...string) (Pair, error) {
	return k.authority.Issue(CertificateOptions{
		Subject: user, Client: true, NotAfter: time.Now().Add(24 * time.Hour),
		Change: func(c *x509.Certificate) { c.Subject.Organization = groups },
	})
}

func (k *Kubernetes) startEtcd(ctx context.Context, clients, peers string) error {
	path, err := Binary("kubernetes/etcd")
	if err != nil {
		return err
	}
	// It is faster without fsync; a power failure does not matter here.
	k.etcd, err = startProcess(path, nil, "--name=test", "--data-dir="+filepath.Join(k.dir, "etcd"), "--unsafe-no-fsync",
		"--log-level=warn", "--listen-client-urls="+clients, "--advertise-client-urls="+clients,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=test="+peers)
	if err != nil {
		return err
	}
	if err := k.etcd.await(ctx, "etcd is ready",
		func() error { return get(ctx, http.DefaultClient, clients+"/readyz") }); err != nil {
		return errors.Join(err, k.etcd.Kill())
	}
	return nil
}

func (k *Kubernetes) serverArgs(etcd string, port int, o KubernetesOptions) ([]string, error) {
	in := func(name string) string { return filepath.Join(k.dir, name) }
	args := []string{
		"--etcd-servers=" + etcd, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true",
		"--authorization-mode=RBAC", "--disable-admission-plugins=ServiceAccount", "--anonymous-auth=false",
		"--client-ca-file=" + in("ca.crt"), "--tls-cert-file=" + in("server.crt"),
		"--tls-private-key-file=" + in("server.key"), "--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + in("accounts.crt"), "--service-account-signing-key-file=" + in("accounts.key"),
		// A test that stops it does not wait for running requests.
		"--shutdown-delay-duration=0s",
	}
	if o.Audit {
		if err := os.WriteFile(k.AuditLog, nil, 0o600); err != nil {
			return nil, err
		}
		args = append(args, "--audit-policy-file="+in("audit.yaml"), "--audit-log-path="+k.AuditLog)
	}
	return append(args, o.Args...), nil
}

// get requests an address that must answer 200.
func get(ctx context.Context, client *http.Client, url string) error {
	_, err := read(ctx, client, url, "*/*")
	return err
}

func read(ctx context.Context, client *http.Client, url, accept string) (text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %d: %s", url, resp.StatusCode, strings.TrimSpace(string(body)))
	}
	return string(body), err
}
