package deploy_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"berth/internal/config"
)

// kubernetes is the folder with the kustomize base.
const kubernetes = "kubernetes"

// manifest is an object of the base, with the fields that the tests read.
type manifest struct {
	Kind     string
	Metadata struct{ Name string }
	Data     map[string]string
	Spec     struct {
		Selector       any
		PodSelector    selector `yaml:"podSelector"`
		ScaleTargetRef struct{ Kind, Name string }
		Ports          []struct{ TargetPort string }
		Template       struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
	}
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type podSpec struct {
	AutomountServiceAccountToken *bool `yaml:"automountServiceAccountToken"`
	SecurityContext              struct {
		RunAsNonRoot bool `yaml:"runAsNonRoot"`
	} `yaml:"securityContext"`
	Containers []container
	Volumes    []struct {
		Secret struct{ Items []struct{ Key string } }
	}
}

type container struct {
	Command         []string
	Env             []struct{ Name, Value string }
	Ports           []struct{ Name string }
	ReadinessProbe  probe `yaml:"readinessProbe"`
	LivenessProbe   probe `yaml:"livenessProbe"`
	Resources       struct{ Limits, Requests map[string]string }
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct{ Drop []string }
	} `yaml:"securityContext"`
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// readBase returns the names of the files of the base, and their objects.
func readBase(t *testing.T) (files []string, objects []manifest) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(kubernetes, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Base(path))
		for d := yaml.NewDecoder(bytes.NewReader(raw)); ; {
			var m manifest
			err := d.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			objects = append(objects, m)
		}
	}
	return files, objects
}

// TestKubernetes_FilesAreValid compares the files with the schemas of Kubernetes.
func TestKubernetes_FilesAreValid(t *testing.T) {
	t.Parallel()
	files, _ := readBase(t)
	raw, err := os.ReadFile(filepath.Join(kubernetes, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var base struct{ Resources []string }
	if err := yaml.Unmarshal(raw, &base); err != nil {
		t.Fatal(err)
	}
	slices.Sort(base.Resources)
	if d := cmp.Diff(files, base.Resources); d != "" {
		t.Errorf("resources of kustomization.yaml (-files +resources):\n%s", d)
	}
	// The first run also prints that it installs the packages.
	lines := strings.Fields(output(t, filepath.Join("..", "tools", "venv.sh"), "kubernetes"))
	c := exec.CommandContext(t.Context(), lines[len(lines)-1],
		append([]string{"-m", "kubernetes_validate", "--strict"}, files...)...)
	c.Dir = kubernetes
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("kubernetes-validate: %v\n%s", err, out)
	}
}

func TestKubernetes_PodsAreHardenedProbedAndLimited(t *testing.T) {
	t.Parallel()
	_, objects := readBase(t)
	pods := 0
	for _, o := range objects {
		spec := o.Spec.Template.Spec
		for _, c := range spec.Containers {
			pods++
			hardened := spec.SecurityContext.RunAsNonRoot &&
				spec.AutomountServiceAccountToken != nil && !*spec.AutomountServiceAccountToken &&
				c.SecurityContext.AllowPrivilegeEscalation != nil && !*c.SecurityContext.AllowPrivilegeEscalation &&
				c.SecurityContext.ReadOnlyRootFilesystem && slices.Equal(c.SecurityContext.Capabilities.Drop, []string{"ALL"})
			if !hardened {
				t.Errorf("%s %s: want an unprivileged container without a token of the cluster", o.Kind, o.Metadata.Name)
			}
			if c.Resources.Limits["memory"] == "" || c.Resources.Requests["cpu"] == "" {
				t.Errorf("%s %s: got the resources %v, want a limit of the memory and a request for CPU",
					o.Kind, o.Metadata.Name, c.Resources)
			}
			if o.Kind == "Deployment" &&
				(c.ReadinessProbe.HTTPGet.Path != "/readyz" || c.LivenessProbe.HTTPGet.Path != "/healthz") {
				t.Errorf("%s %s: got the probes %v and %v, want /readyz and /healthz",
					o.Kind, o.Metadata.Name, c.ReadinessProbe, c.LivenessProbe)
			}
		}
	}
	if pods != 4 {
		t.Errorf("containers of the base: got %d, want those of api, worker, rpc and migrate", pods)
	}
}

// TestKubernetes_SettingsAreAccepted loads the settings of each Deployment as berth does, with files instead
// of the Secret.
func TestKubernetes_SettingsAreAccepted(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{
		"database_url":      "postgres://berth:secret@postgres.example/berth?sslmode=verify-full",
		"keystone_password": "secret",
		"rabbitmq_url":      "amqps://berth:secret@rabbitmq.example:5671/",
		"odl_password":      "secret",
	}
	folder := t.TempDir()
	for name, text := range secrets {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, objects := readBase(t)
	shared := map[string]string{}
	for _, o := range objects {
		for name, value := range o.Data {
			shared[name] = value
		}
	}
	read := slices.Concat(config.Variables(), config.SecretFileVariables(),
		[]string{"GOMEMLIMIT", "TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE"})
	roles := map[string]string{}
	for _, o := range objects {
		if o.Kind != "Deployment" {
			continue
		}
		spec := o.Spec.Template.Spec
		environment := []string{}
		add := func(name, value string) {
			if !slices.Contains(read, name) {
				t.Errorf("%s: no program reads %s", o.Metadata.Name, name)
			}
			if key, ok := strings.CutPrefix(value, "/run/secrets/berth/"); ok {
				mounted := slices.ContainsFunc(spec.Volumes[1].Secret.Items, func(i struct{ Key string }) bool { return i.Key == key })
				if !mounted || secrets[key] == "" {
					t.Errorf("%s: the file of %s is not mounted", o.Metadata.Name, name)
				}
				value = filepath.Join(folder, key)
			}
			environment = append(environment, name+"="+value)
		}
		for name, value := range shared {
			add(name, value)
		}
		for _, e := range spec.Containers[0].Env {
			add(e.Name, e.Value)
		}
		command := spec.Containers[0].Command
		cfg, err := config.Load(append(environment, "BERTH_ROLES="+command[len(command)-1]))
		if err != nil {
			t.Errorf("settings of %s: %v", o.Metadata.Name, err)
		}
		roles[o.Metadata.Name] = strings.Join(cfg.Roles, ",")
	}
	want := map[string]string{"berth-api": "api", "berth-worker": "relay,temporal", "berth-rpc": "rpc"}
	if d := cmp.Diff(want, roles); d != "" {
		t.Errorf("roles of the Deployments (-want +got):\n%s", d)
	}
}

// TestKubernetes_ReferencesExist checks that each Service, budget, policy and autoscaler finds its pods.
func TestKubernetes_ReferencesExist(t *testing.T) {
	t.Parallel()
	_, objects := readBase(t)
	selects := func(labels map[string]string) bool {
		return slices.ContainsFunc(objects, func(o manifest) bool {
			if o.Kind != "Deployment" {
				return false
			}
			for name, value := range labels {
				if o.Spec.Template.Metadata.Labels[name] != value {
					return false
				}
			}
			return true
		})
	}
	for _, o := range objects {
		labels := map[string]string{}
		if given, ok := o.Spec.Selector.(map[string]any); ok {
			if match, ok := given["matchLabels"].(map[string]any); ok {
				given = match
			}
			for name, value := range given {
				labels[name], _ = value.(string)
			}
		}
		for name, value := range o.Spec.PodSelector.MatchLabels {
			labels[name] = value
		}
		if !selects(labels) {
			t.Errorf("%s %s: no Deployment has the labels %v", o.Kind, o.Metadata.Name, labels)
		}
		if target := o.Spec.ScaleTargetRef.Name; target != "" &&
			!slices.ContainsFunc(objects, func(d manifest) bool { return d.Kind == "Deployment" && d.Metadata.Name == target }) {
			t.Errorf("%s %s: no Deployment has the name %s", o.Kind, o.Metadata.Name, target)
		}
	}
}
