// Tests of config/argocd: Argo CD's own engine runs the health check and the actions, once as if the folder lay in
// Argo CD's repository, and once from the ConfigMap that a user installs.
package argocd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	config    = "../../../config/argocd/"
	folder    = config + "resource_customizations/perfvalidation.dev/PerfValidation/"
	kind      = "perfvalidation.dev_PerfValidation"
	overrides = "perfvalidation.dev/PerfValidation"
)

// read decodes YAML as Argo CD's tests do: every number is a float64.
func read(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, into))
}

func object(t *testing.T, path string) *unstructured.Unstructured {
	t.Helper()
	content := map[string]any{}
	read(t, path, &content)
	return &unstructured.Unstructured{Object: content}
}

func script(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(folder + path)
	require.NoError(t, err)
	return string(text)
}

// installed is the engine with what the ConfigMap says, as an installation runs it: without Lua's libraries.
func installed(t *testing.T) lua.VM {
	t.Helper()
	data := configMap(t).Data
	override := appsv1.ResourceOverride{
		HealthLua: data["resource.customizations.health."+kind],
		Actions:   data["resource.customizations.actions."+kind],
	}
	require.NotEmpty(t, override.HealthLua)
	return lua.VM{ResourceOverrides: map[string]appsv1.ResourceOverride{overrides: override}}
}

// saved lists the objects of testdata by their names.
func saved(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob(folder + "testdata/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	names := make([]string, 0, len(paths))
	for _, path := range paths {
		names = append(names, strings.TrimPrefix(path, folder))
	}
	return names
}
