// Tests of what Flux and other users of kstatus make of a PerfValidation, by their own libraries, on the objects that
// Argo CD's health check is tested on.
package flux

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

const folder = "../../../config/argocd/resource_customizations/perfvalidation.dev/PerfValidation/"

func fromYAML(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
}

// stored decodes an object as a Kubernetes client does: whole numbers are int64.
func stored(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, err = yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	content := map[string]any{}
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: content}
}

// saved are the objects of testdata by their names.
func saved(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	paths, err := filepath.Glob(folder + "testdata/*.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no saved objects", err)
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, path := range paths {
		objects[strings.TrimSuffix(filepath.Base(path), ".yaml")] = stored(t, path)
	}
	return objects
}

// argoHealth is what Argo CD says of each object.
func argoHealth(t *testing.T) map[string]string {
	t.Helper()
	var tests struct {
		Tests []struct {
			InputPath    string
			HealthStatus struct{ Status string }
		}
	}
	fromYAML(t, folder+"health_test.yaml", &tests)
	expected := map[string]string{}
	for _, test := range tests.Tests {
		expected[strings.TrimSuffix(filepath.Base(test.InputPath), ".yaml")] = test.HealthStatus.Status
	}
	return expected
}
