package argocd

import (
	"os"
	"path/filepath"
	"testing"

	appsv1 "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

const examples = config + "examples/"

func TestExamplesAreOfArgoCDsTypes(t *testing.T) {
	paths, err := filepath.Glob(examples + "pools/apps/*.yaml")
	require.NoError(t, err)
	require.Len(t, paths, 2)
	paths = append(paths, examples+"operator.yaml", examples+"pools/root.yaml", examples+"wave/application.yaml")
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		var application appsv1.Application
		require.NoError(t, yaml.UnmarshalStrict(text, &application), path)
		assert.Equal(t, "Application", application.Kind, path)
		// What it syncs is in this repository.
		_, err = os.Stat("../../../" + application.Spec.Source.Path)
		assert.NoError(t, err, path)
	}
}
