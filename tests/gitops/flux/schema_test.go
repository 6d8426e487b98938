package flux

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// schemaOfPerfValidation is what the API server knows of a PerfValidation.
func schemaOfPerfValidation(t *testing.T) (*schema.Structural, validation.SchemaValidator) {
	t.Helper()
	var definition v1.CustomResourceDefinition
	fromYAML(t, "../../../config/crd/perfvalidations.perfvalidation.dev.yaml", &definition)
	internal := &apiextensions.CustomResourceValidation{}
	if err := v1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(
		definition.Spec.Versions[0].Schema, internal, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(internal.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	return structural, validator
}

// rendered is what `kubectl kustomize` makes of a folder.
func rendered(t *testing.T, folder string) []byte {
	t.Helper()
	objects, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		t.Fatal(err)
	}
	text, err := objects.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// examplesOfPerfValidations are whole files, rendered folders and embedded manifests.
func examplesOfPerfValidations(t *testing.T) map[string]map[string]any {
	t.Helper()
	texts := map[string][]byte{
		"argo-workflows.yaml":    workflowObject(t),
		"nvsentinel-values.yaml": nvsentinelObject(t),
	}
	for _, root := range []string{"../../../config/argocd/examples", "../../../config/flux/examples"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, document := range strings.Split(string(text), "\n---\n") {
				if strings.Contains(document, "\nkind: PerfValidation\n") {
					texts[path] = []byte(document)
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, pool := range []string{"h100", "gb200"} {
		texts["pool "+pool] = rendered(t, "../../../config/argocd/examples/pools/"+pool)
	}
	found := map[string]map[string]any{}
	for path, text := range texts {
		object := map[string]any{}
		if err := yaml.Unmarshal(text, &object); err != nil {
			t.Fatalf("%s: %v\n%s", path, err, text)
		}
		found[path] = object
	}
	if len(found) < 5 {
		t.Fatal("too few examples:", len(found))
	}
	return found
}

// The component adds its keys to an argocd-cm, whose own stay.
func TestComponentAddsItsKeys(t *testing.T) {
	files := filesys.MakeFsInMemory()
	write := func(path, text string) {
		if err := files.WriteFile(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kustomization.yaml", "argocd-cm.yaml"} {
		text, err := os.ReadFile("../../../config/argocd/" + name)
		if err != nil {
			t.Fatal(err)
		}
		write("/ours/"+name, string(text))
	}
	write("/theirs/kustomization.yaml", "{namespace: argocd, resources: [cm.yaml], components: [../ours]}")
	write("/theirs/cm.yaml", "{apiVersion: v1, kind: ConfigMap, metadata: {name: argocd-cm}, data: {url: here}}")
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(files, "/theirs")
	if err != nil {
		t.Fatal(err)
	}
	var ours struct{ Data map[string]string }
	text, err := files.ReadFile("/ours/argocd-cm.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &ours); err != nil {
		t.Fatal(err)
	}
	data := made.Resources()[0].GetDataMap()
	if len(ours.Data) < 3 || len(data) != 1+len(ours.Data) || data["url"] != "here" {
		t.Errorf("expected their key and %d of ours, found %d keys", len(ours.Data), len(data))
	}
}

func TestExamplesFitTheSchema(t *testing.T) {
	structural, validator := schemaOfPerfValidation(t)
	for path, object := range examplesOfPerfValidations(t) {
		for _, wrong := range validation.ValidateCustomResource(nil, object, validator) {
			t.Errorf("%s: %v", path, wrong)
		}
		pruned := runtime.DeepCopyJSON(object)
		pruning.Prune(pruned, structural, true)
		if !reflect.DeepEqual(pruned, object) {
			t.Errorf("%s: a field that the schema does not know: %v", path, object)
		}
	}
}

// NVSentinel names its objects itself, with up to 63 characters (lifecycle-manager, attemptObjectName).
func TestNamesOfNVSentinelFit(t *testing.T) {
	var definition v1.CustomResourceDefinition
	fromYAML(t, "../../../config/crd/perfvalidations.perfvalidation.dev.yaml", &definition)
	for _, rule := range definition.Spec.Versions[0].Schema.OpenAPIV3Schema.XValidations {
		if strings.Contains(rule.Rule, "metadata.name") && rule.Rule != "size(self.metadata.name) <= 63" {
			t.Error("shorter names only:", rule.Rule)
		}
	}
}
