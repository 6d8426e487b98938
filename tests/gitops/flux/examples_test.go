package flux

import (
	"bytes"
	"os"
	"reflect"
	"testing"

	helm "github.com/fluxcd/helm-controller/api/v2"
	kustomization "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	source "github.com/fluxcd/source-controller/api/v1"
	"sigs.k8s.io/yaml"
)

const examples = "../../../config/flux/examples/"

// documents decodes every document of a file into the type of its kind; an unknown field is an error.
func documents(t *testing.T, path string) []any {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var found []any
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var of struct{ Kind, APIVersion string }
		if err := yaml.Unmarshal(document, &of); err != nil {
			t.Fatal(err)
		}
		types := map[string]any{
			"GitRepository source.toolkit.fluxcd.io/v1":    &source.GitRepository{},
			"OCIRepository source.toolkit.fluxcd.io/v1":    &source.OCIRepository{},
			"Kustomization kustomize.toolkit.fluxcd.io/v1": &kustomization.Kustomization{},
			"HelmRelease helm.toolkit.fluxcd.io/v2":        &helm.HelmRelease{},
		}
		into, known := types[of.Kind+" "+of.APIVersion]
		if !known {
			t.Fatalf("%s: unknown kind %s of %s", path, of.Kind, of.APIVersion)
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Errorf("%s: %s: %v", path, of.Kind, err)
		}
		found = append(found, into)
	}
	return found
}

func TestExamplesAreOfFluxesTypes(t *testing.T) {
	if found := len(documents(t, examples+"operator.yaml")); found != 2 {
		t.Error("expected 2 objects, found", found)
	}
	if found := len(documents(t, examples+"validation.yaml")); found != 4 {
		t.Error("expected 4 objects, found", found)
	}
}

// The expressions of the example are the tested ones.
func TestExampleHoldsTheExpressions(t *testing.T) {
	var checks []kustomize.CustomHealthCheck
	fromYAML(t, "../../../config/flux/healthcheck.yaml", &checks)
	for _, document := range documents(t, examples+"validation.yaml") {
		step, is := document.(*kustomization.Kustomization)
		if is && len(step.Spec.HealthChecks) > 0 {
			if !reflect.DeepEqual(step.Spec.HealthCheckExprs, checks) {
				t.Errorf("expected %v, found %v", checks, step.Spec.HealthCheckExprs)
			}
			return
		}
	}
	t.Error("no step has health checks")
}
