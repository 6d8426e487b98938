package argocd

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Kinds about many nodes. They have a health, and no actions.
var fleetKinds = []string{"PerfValidationPolicy", "PerfBaseline"}

func fleetFolder(name string) string {
	return config + "resource_customizations/perfvalidation.dev/" + name + "/"
}

func fleetKey(name string) string {
	return "resource.customizations.health.perfvalidation.dev_" + name
}

func fleetScript(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(fleetFolder(name) + "health.lua")
	require.NoError(t, err)
	return string(text)
}

// Each saved object has the expected health in an installation, which runs scripts without Lua's libraries.
func TestHealthOfKindsAboutManyNodes(t *testing.T) {
	for _, name := range fleetKinds {
		folder := fleetFolder(name)
		overrides := lua.ResourceHealthOverrides{
			"perfvalidation.dev/" + name: appsv1.ResourceOverride{HealthLua: configMap(t).Data[fleetKey(name)]},
		}
		var tests healthTests
		read(t, folder+"health_test.yaml", &tests)
		var tested []string
		for _, test := range tests.Tests {
			tested = append(tested, folder+test.InputPath)
			t.Run(name+"/"+test.InputPath, func(t *testing.T) {
				result, err := overrides.GetResourceHealth(object(t, folder+test.InputPath))
				require.NoError(t, err)
				assert.Equal(t, &test.HealthStatus, result)
			})
		}
		saved, err := filepath.Glob(folder + "testdata/*.yaml")
		require.NoError(t, err)
		assert.ElementsMatch(t, saved, tested)
	}
}
