package kube

import (
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// userAgent identifies the client in the audit log of the API server.
const userAgent = "gatehouse"

// Config returns how to reach the API server: by the kubeconfig file or, without one, by the service account of
// the Pod. An error is one line for the user.
func Config(kubeconfig string) (*rest.Config, error) {
	var config *rest.Config
	var err error
	if kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("this process does not run in a Pod with a service account: %w; "+
				"name a kubeconfig file with --kubeconfig", err)
		}
	} else if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("--kubeconfig: reading %s: %w", kubeconfig, err)
	}
	config.UserAgent = userAgent
	// The API server itself limits requests (API Priority and Fairness).
	config.QPS = -1
	return config, nil
}
