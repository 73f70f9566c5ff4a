package chart_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// chart is the path of the chart from this directory.
const chart = "../../charts/gatehouse"

func TestChart(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "The chart")
}

func limit() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	DeferCleanup(cancel)
	return ctx
}

// helm runs helm without the user's settings.
func helm(args ...string) (stdout, stderr string, err error) {
	GinkgoHelper()
	path, err := testkit.Binary("kubernetes/helm")
	Expect(err).NotTo(HaveOccurred())
	var out, errOut bytes.Buffer
	cmd := exec.CommandContext(limit(), path, args...)
	home := GinkgoT().TempDir()
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + filepath.Join(home, "none")}
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

// values writes a file of values and returns the argument that names it. The gateway reads all namespaces unless
// the values say what it reads.
func values(text string) string {
	GinkgoHelper()
	if !strings.Contains(text, "kubernetes:") {
		text += "\nkubernetes: {allNamespaces: true}"
	}
	path := filepath.Join(GinkgoT().TempDir(), "values.yaml")
	Expect(os.WriteFile(path, []byte(text), 0o600)).To(Succeed())
	return "--values=" + path
}

// render returns helm's output for values, for release gatehouse in namespace gw.
func render(text string, args ...string) objects {
	GinkgoHelper()
	args = append([]string{"template", "gatehouse", chart, "--namespace=gw", "--kube-version=1.36.3", values(text)}, args...)
	out, errOut, err := helm(args...)
	Expect(err).NotTo(HaveOccurred(), errOut)
	return parse(out)
}

// refusal returns why helm refuses values.
func refusal(text string) string {
	GinkgoHelper()
	out, errOut, err := helm("template", "gatehouse", chart, "--namespace=gw", "--kube-version=1.36.3", values(text))
	Expect(err).To(HaveOccurred(), out)
	return errOut
}

// object is a Kubernetes object.
type object map[string]any

type objects []object

func parse(text string) (list objects) {
	GinkgoHelper()
	for _, document := range strings.Split("\n"+text, "\n---\n") {
		var o object
		Expect(yaml.UnmarshalStrict([]byte(document), &o)).To(Succeed(), document)
		if len(o) > 0 {
			list = append(list, o)
		}
	}
	return list
}

// yaml returns the list as documents.
func (list objects) yaml() string {
	GinkgoHelper()
	var b strings.Builder
	for _, o := range list {
		text, err := yaml.Marshal(o)
		Expect(err).NotTo(HaveOccurred())
		fmt.Fprintf(&b, "---\n%s", text)
	}
	return b.String()
}

func (o object) kind() string { return fmt.Sprint(o["kind"]) }
func (o object) name() string { return fmt.Sprint(o.at("metadata.name")) }

// at returns the value at a path such as spec.containers.0.image, or nil. A bar stands
// for a dot inside a step.
func (o object) at(path string) any {
	var here any = map[string]any(o)
	for _, step := range strings.Split(path, ".") {
		switch x := here.(type) {
		case map[string]any:
			here = x[strings.ReplaceAll(step, "|", ".")]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(x) {
				return nil
			}
			here = x[i]
		default:
			return nil
		}
	}
	return here
}

// names returns KIND/NAME of each.
func (list objects) names() (names []string) {
	for _, o := range list {
		names = append(names, o.kind()+"/"+o.name())
	}
	return names
}

// get returns the object KIND/NAME.
func (list objects) get(name string) object {
	GinkgoHelper()
	for _, o := range list {
		if o.kind()+"/"+o.name() == name {
			return o
		}
	}
	Fail(fmt.Sprintf("no %s is among %q", name, list.names()))
	return nil
}

// pods returns a Pod for each pod template, with the name of its owner.
func (list objects) pods() (pods objects) {
	for _, o := range list {
		var template any
		switch o.kind() {
		case "Deployment", "DaemonSet", "StatefulSet", "Job":
			template = o.at("spec.template")
		case "CronJob":
			template = o.at("spec.jobTemplate.spec.template")
		case "Pod":
			template = map[string]any(o)
		default:
			continue
		}
		t := object(template.(map[string]any))
		// A StatefulSet creates the volumes of its claims.
		claims, _ := o.at("spec.volumeClaimTemplates").([]any)
		for _, claim := range claims {
			name := object(claim.(map[string]any)).name()
			spec := t["spec"].(map[string]any)
			volumes, _ := spec["volumes"].([]any)
			spec["volumes"] = append(volumes, map[string]any{"name": name, "persistentVolumeClaim": map[string]any{"claimName": name}})
		}
		metadata := map[string]any{"name": strings.ToLower(o.kind()) + "-" + o.name(), "namespace": "gw", "labels": t.at("metadata.labels")}
		pods = append(pods, object{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": t.at("spec")})
	}
	return pods
}

// environment returns the variables of the first container; for those without a value,
// where they are read from.
func (o object) environment() map[string]any {
	env := map[string]any{}
	list, _ := o.at("spec.template.spec.containers.0.env").([]any)
	for _, one := range list {
		v := one.(map[string]any)
		env[v["name"].(string)] = v["value"]
		if v["valueFrom"] != nil {
			env[v["name"].(string)] = v["valueFrom"]
		}
	}
	return env
}
