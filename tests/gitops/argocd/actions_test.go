package argocd

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	appsv1 "github.com/argoproj/argo-cd/v3/pkg/apis/application/v1alpha1"
	"github.com/argoproj/argo-cd/v3/util/lua"
	jsonpatch "github.com/evanphx/json-patch"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// The layout of action_test.yaml is Argo CD's: util/lua/custom_actions_test.go.
type actionTests struct {
	DiscoveryTests []struct {
		InputPath string                  `yaml:"inputPath"`
		Result    []appsv1.ResourceAction `yaml:"result"`
	} `yaml:"discoveryTests"`
	ActionTests []struct {
		Action             string `yaml:"action"`
		InputPath          string `yaml:"inputPath"`
		ExpectedOutputPath string `yaml:"expectedOutputPath"`
	} `yaml:"actionTests"`
}

const token = "perfvalidation.dev/rerun"

func expectedActions(t *testing.T) actionTests {
	t.Helper()
	var tests actionTests
	read(t, folder+"actions/action_test.yaml", &tests)
	require.NotEmpty(t, tests.DiscoveryTests)
	require.NotEmpty(t, tests.ActionTests)
	return tests
}

// engines are the two ways in which the scripts are found; neither has Lua's libraries when an action runs.
func engines(t *testing.T) map[string]func(action string) (lua.VM, string) {
	vm := installed(t)
	return map[string]func(string) (lua.VM, string){
		"folder": func(action string) (lua.VM, string) {
			return lua.VM{}, script(t, "actions/"+action+"/action.lua")
		},
		"ConfigMap": func(action string) (lua.VM, string) {
			found, err := vm.GetResourceAction(object(t, folder+"testdata/passed.yaml"), action)
			require.NoError(t, err)
			return vm, found.ActionLua
		},
	}
}

func TestDiscovery(t *testing.T) {
	vm := installed(t)
	for _, test := range expectedActions(t).DiscoveryTests {
		t.Run(test.InputPath, func(t *testing.T) {
			obj := object(t, folder+"actions/"+test.InputPath)
			asInstalled, err := vm.GetResourceActionDiscovery(obj)
			require.NoError(t, err)
			for _, scripts := range [][]string{{script(t, "actions/discovery.lua")}, asInstalled} {
				found, err := vm.ExecuteResourceActionDiscovery(obj, scripts)
				require.NoError(t, err)
				assert.ElementsMatch(t, test.Result, found)
			}
		})
	}
}

func TestActions(t *testing.T) {
	for _, test := range expectedActions(t).ActionTests {
		for name, engine := range engines(t) {
			t.Run(test.Action+"/"+test.InputPath+"/"+name, func(t *testing.T) {
				vm, action := engine(test.Action)
				before := object(t, folder+"actions/"+test.InputPath)
				changed, err := vm.ExecuteResourceAction(before.DeepCopy(), action, nil)
				require.NoError(t, err)
				require.Len(t, changed, 1)
				assert.Equal(t, lua.PatchOperation, changed[0].K8SOperation)

				expected := object(t, folder+"actions/"+test.ExpectedOutputPath)
				// What Argo CD sends to the API server is this merge patch.
				assert.JSONEq(t, patch(t, before, expected), patch(t, before, steady(changed[0].UnstructuredObj)))
			})
		}
	}
}

// patch is what Argo CD's server sends after an action.
func patch(t *testing.T, before, after *unstructured.Unstructured) string {
	t.Helper()
	from, err := json.Marshal(before)
	require.NoError(t, err)
	to, err := json.Marshal(after)
	require.NoError(t, err)
	found, err := jsonpatch.CreateMergePatch(from, to)
	require.NoError(t, err)
	return string(found)
}

// steady replaces a token that is the time of now.
func steady(obj *unstructured.Unstructured) *unstructured.Unstructured {
	annotations := obj.GetAnnotations()
	if made, err := time.Parse(time.RFC3339, annotations[token]); err == nil && time.Since(made).Abs() < time.Minute {
		annotations[token] = "0001-01-01T00:00:00Z"
		obj.SetAnnotations(annotations)
	}
	return obj
}

func TestEveryActionIsDiscoveredAndTested(t *testing.T) {
	folders, err := os.ReadDir(folder + "actions")
	require.NoError(t, err)
	actions := []string{}
	for _, entry := range folders {
		if entry.IsDir() && entry.Name() != "testdata" {
			actions = append(actions, entry.Name())
		}
	}
	tests := expectedActions(t)
	for _, test := range tests.DiscoveryTests {
		discovered := []string{}
		for _, action := range test.Result {
			discovered = append(discovered, action.Name)
		}
		assert.ElementsMatch(t, actions, discovered)
	}
	tested := map[string]bool{}
	for _, test := range tests.ActionTests {
		tested[test.Action] = true
	}
	assert.Len(t, tested, len(actions))
}
