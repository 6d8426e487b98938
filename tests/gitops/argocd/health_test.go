package argocd

import (
	"testing"

	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/argoproj/gitops-engine/pkg/health"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The layout of health_test.yaml is Argo CD's: util/lua/health_test.go.
type healthTests struct {
	Tests []struct {
		InputPath    string              `yaml:"inputPath"`
		HealthStatus health.HealthStatus `yaml:"healthStatus"`
	} `yaml:"tests"`
}

func expectedHealth(t *testing.T) healthTests {
	t.Helper()
	var tests healthTests
	read(t, folder+"health_test.yaml", &tests)
	return tests
}

func TestHealthAsInArgoCDsRepository(t *testing.T) {
	text := script(t, "health.lua")
	for _, test := range expectedHealth(t).Tests {
		t.Run(test.InputPath, func(t *testing.T) {
			vm := lua.VM{UseOpenLibs: true}
			result, err := vm.ExecuteHealthLua(object(t, folder+test.InputPath), text)
			require.NoError(t, err)
			assert.Equal(t, &test.HealthStatus, result)
		})
	}
}

func TestHealthAsInstalled(t *testing.T) {
	engine := lua.ResourceHealthOverrides(installed(t).ResourceOverrides)
	for _, test := range expectedHealth(t).Tests {
		t.Run(test.InputPath, func(t *testing.T) {
			result, err := engine.GetResourceHealth(object(t, folder+test.InputPath))
			require.NoError(t, err)
			assert.Equal(t, &test.HealthStatus, result)
		})
	}
}

func TestEverySavedObjectHasAnExpectedHealth(t *testing.T) {
	var tested []string
	for _, test := range expectedHealth(t).Tests {
		tested = append(tested, test.InputPath)
	}
	assert.ElementsMatch(t, saved(t), tested)
}

// What a synced object and a hook make of a deletion: only a hook's script is asked.
func TestDeletion(t *testing.T) {
	engine := lua.ResourceHealthOverrides(installed(t).ResourceOverrides)
	health := func(name string, change func(*unstructured.Unstructured)) string {
		obj := object(t, folder+"testdata/"+name)
		change(obj)
		result, err := health.GetResourceHealth(obj, engine)
		require.NoError(t, err)
		return string(result.Status) + ", " + result.Message
	}
	asIs := func(*unstructured.Unstructured) {}
	assert.Equal(t, "Progressing, Pending deletion", health("deleting-passed.yaml", asIs))
	held := func(obj *unstructured.Unstructured) {
		obj.SetFinalizers(append(obj.GetFinalizers(), "argocd.argoproj.io/hook-finalizer"))
	}
	assert.Contains(t, health("deleting-passed.yaml", held), "Progressing, CleaningUp: ")
	assert.Contains(t, health("deleted-passed.yaml", asIs), "Healthy, ")
}
