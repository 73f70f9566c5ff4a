package conformance

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/gateway-api/conformance"
	confv1 "sigs.k8s.io/gateway-api/conformance/apis/v1"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
)

const (
	className      = "gatehouse"
	controllerName = "gateway.gatehouse.dev/gatehouse"
	// xdsAddr is the address of the control plane on the node.
	xdsAddr = "10.99.0.2:18000"
	apiAddr = "127.0.0.1:1323"
)

// TestConformance runs a control plane beside the node, and Envoys in Pods: one Deployment for each Gateway.
func TestConformance(t *testing.T) {
	if os.Getenv("GATEHOUSE_TEST_CLUSTER") == "" {
		t.Fatal("there is no node: run make conformance")
	}
	ctx, cancel := context.WithCancel(t.Context())
	controlPlane(ctx, t)
	options := conformance.DefaultOptions(t)
	class := &gwapi.GatewayClass{}
	class.Name, class.Spec.ControllerName = className, controllerName
	if err := options.Client.Create(ctx, class); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	// The features that are tested are those of the status.
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := options.Client.Get(ctx, client.ObjectKeyFromObject(class), class)
		return len(class.Status.SupportedFeatures) > 0, err
	})
	if err != nil {
		t.Fatalf("the GatewayClass has no features: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		deploy(ctx, t, options.Client)
	}()
	t.Cleanup(func() { cancel(); <-done })
	options.GatewayClassName = className
	options.CleanupBaseResources = false // the node ends with the test
	options.ConformanceProfiles = []suite.ConformanceProfileName{
		suite.GatewayHTTPConformanceProfileName, suite.GatewayGRPCConformanceProfileName, suite.GatewayTLSConformanceProfileName,
		suite.GatewayTCPConformanceProfileName, suite.GatewayUDPConformanceProfileName,
	}
	options.Implementation = confv1.Implementation{
		Organization: "gatehouse-gateway", Project: "gatehouse", URL: "https://github.com/gatehouse-gateway/gatehouse",
		Version: os.Getenv("VERSION"), Contact: []string{"https://github.com/gatehouse-gateway/gatehouse/issues"},
	}
	conformance.RunConformanceWithOptions(t, options)
}

// controlPlane runs a control plane until the test ends.
func controlPlane(ctx context.Context, t *testing.T) {
	t.Helper()
	log, err := os.Create(os.Getenv("GATEHOUSE_LOG"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, os.Getenv("GATEHOUSE"), "serve", "--mode", "kubernetes", "--kubeconfig", os.Getenv("KUBECONFIG"),
		"--api-addr", apiAddr, "--xds-addr", xdsAddr, "--insecure-xds") // #nosec G204 -- the program under test
	cmd.Env = append(os.Environ(), "POD_NAMESPACE=default", "POD_NAME=control-plane")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		<-ended
		_ = log.Close()
	})
	for end := time.Now().Add(time.Minute); ; {
		res, err := http.Get("http://" + apiAddr + "/ready") //nolint:noctx // it is on this machine
		if err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-ended:
			t.Fatalf("the control plane has ended: %s", tail(log.Name()))
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(end) {
			t.Fatalf("the control plane is not ready: %s", tail(log.Name()))
		}
	}
}

// tail returns the end of a file.
func tail(path string) string {
	text, _ := os.ReadFile(path) // #nosec G304 -- its own log
	return string(bytes.TrimSpace(text[max(0, len(text)-2000):]))
}
