package flux

import (
	"bytes"
	"os"
	"reflect"
	"testing"
	"time"

	helm "github.com/fluxcd/helm-controller/api/v2"
	kustomization "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/kustomize"
	source "github.com/fluxcd/source-controller/api/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// validationStep is the step of the example that waits for the validation.
func validationStep(t *testing.T) *kustomization.Kustomization {
	t.Helper()
	for _, document := range documents(t, examples+"validation.yaml") {
		if step, is := document.(*kustomization.Kustomization); is && len(step.Spec.HealthChecks) > 0 {
			return step
		}
	}
	t.Fatal("no step has health checks")
	return nil
}

// The expressions of the example are the tested ones.
func TestExampleHoldsTheExpressions(t *testing.T) {
	var checks []kustomize.CustomHealthCheck
	fromYAML(t, "../../../config/flux/healthcheck.yaml", &checks)
	if found := validationStep(t).Spec.HealthCheckExprs; !reflect.DeepEqual(found, checks) {
		t.Errorf("expected %v, found %v", checks, found)
	}
}

// The step ends after all time-outs of the sample that it waits for. All probes are within endpointReady.
func TestStepOutlastsTheValidation(t *testing.T) {
	step := validationStep(t)
	object := stored(t, "../../../config/samples/"+step.Spec.HealthChecks[0].Name+".yaml").Object
	structural, _ := schemaOfPerfValidation(t)
	defaulting.Default(object, structural)
	limits, _, err := unstructured.NestedStringMap(object, "spec", "timeouts")
	if err != nil {
		t.Fatal(err)
	}
	trials, found, err := unstructured.NestedInt64(object, "spec", "trials", "max")
	if err != nil || !found {
		t.Fatal("no limit of trials", err)
	}
	delete(limits, "endpointProbe")
	var sum time.Duration
	for name, text := range limits {
		limit, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(name, err)
		}
		if name == "benchmark" {
			limit *= time.Duration(trials)
		}
		sum += limit
	}
	if len(limits) < 7 || step.Spec.Timeout.Duration <= sum {
		t.Errorf("expected more than %v for %v, found %v", sum, limits, step.Spec.Timeout.Duration)
	}
}
