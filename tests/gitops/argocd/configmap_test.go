package argocd

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type settings struct {
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

func configMap(t *testing.T) settings {
	t.Helper()
	var found settings
	read(t, config+"argocd-cm.yaml", &found)
	return found
}

const header = `# Generated from resource_customizations: UPDATE_GOLDEN=1 just gitops
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
  labels:
    app.kubernetes.io/name: argocd-cm
    app.kubernetes.io/part-of: argocd
data:
`

// The order of the actions in Argo CD's menu.
var actions = []string{"rerun", "suspend", "resume", "clean-up"}

func indented(text string, by int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, line := range lines {
		if line != "" {
			lines[i] = strings.Repeat(" ", by) + line
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

func rendered(t *testing.T) string {
	t.Helper()
	definitions := "discovery.lua: |\n" + indented(script(t, "actions/discovery.lua"), 2) + "definitions:\n"
	for _, action := range actions {
		text := indented(script(t, "actions/"+action+"/action.lua"), 4)
		definitions += fmt.Sprintf("- name: %s\n  action.lua: |\n%s", action, text)
	}
	health := fmt.Sprintf("resource.customizations.health.%s: |\n%s", kind, indented(script(t, "health.lua"), 2))
	fleet := ""
	for _, name := range fleetKinds {
		fleet += fmt.Sprintf("%s: |\n%s", fleetKey(name), indented(fleetScript(t, name), 2))
	}
	return header + indented(health, 2) + indented(fleet, 2) +
		indented(fmt.Sprintf("resource.customizations.actions.%s: |\n%s", kind, indented(definitions, 2)), 2)
}

func TestConfigMapHoldsTheScripts(t *testing.T) {
	text := rendered(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		require.NoError(t, os.WriteFile(config+"argocd-cm.yaml", []byte(text), 0o644))
	}
	recorded, err := os.ReadFile(config + "argocd-cm.yaml")
	require.NoError(t, err)
	assert.Equal(t, text, string(recorded), "write it anew: UPDATE_GOLDEN=1 just gitops")

	data := configMap(t).Data
	assert.Equal(t, script(t, "health.lua"), data["resource.customizations.health."+kind])
	for _, name := range fleetKinds {
		assert.Equal(t, fleetScript(t, name), data[fleetKey(name)])
	}
	assert.Len(t, data, 2+len(fleetKinds))
}
