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

const (
	policyFolder = config + "resource_customizations/perfvalidation.dev/PerfValidationPolicy/"
	policyKind   = "perfvalidation.dev_PerfValidationPolicy"
)

func policyScript(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(policyFolder + "health.lua")
	require.NoError(t, err)
	return string(text)
}

// Each saved policy has the expected health in an installation, which runs scripts without Lua's libraries.
func TestHealthOfPolicies(t *testing.T) {
	overrides := lua.ResourceHealthOverrides{
		"perfvalidation.dev/PerfValidationPolicy": appsv1.ResourceOverride{
			HealthLua: configMap(t).Data["resource.customizations.health."+policyKind],
		},
	}
	var tests healthTests
	read(t, policyFolder+"health_test.yaml", &tests)
	var tested []string
	for _, test := range tests.Tests {
		tested = append(tested, policyFolder+test.InputPath)
		t.Run(test.InputPath, func(t *testing.T) {
			result, err := overrides.GetResourceHealth(object(t, policyFolder+test.InputPath))
			require.NoError(t, err)
			assert.Equal(t, &test.HealthStatus, result)
		})
	}
	saved, err := filepath.Glob(policyFolder + "testdata/*.yaml")
	require.NoError(t, err)
	assert.ElementsMatch(t, saved, tested)
}
