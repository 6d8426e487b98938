package flux

import (
	"testing"

	flux "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	upstream "sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// What Argo CD's words are in kstatus.
var words = map[string]string{
	"Healthy":     "Current",
	"Degraded":    "Failed",
	"Progressing": "InProgress",
	"Suspended":   "InProgress",
}

// Where kstatus says something else than the health check, which knows more.
var otherwise = map[string]string{
	// What the default of status.observedGeneration in the CRD prevents.
	"without-status": "Current",
	// kstatus does not look at annotations.
	"passed-rerun-asked":     "Current",
	"passed-rerun-held-back": "Current",
	// Argo CD's engine says so itself and asks the script about hooks only.
	"deleting":        "Terminating",
	"deleting-passed": "Terminating",
	"deleted-running": "Terminating",
	"deleted-passed":  "Terminating",
	"deleted-failed":  "Terminating",
}

func libraries() map[string]func(*unstructured.Unstructured) (string, error) {
	return map[string]func(*unstructured.Unstructured) (string, error){
		"kubernetes-sigs": func(object *unstructured.Unstructured) (string, error) {
			result, err := upstream.Compute(object)
			if err != nil {
				return "", err
			}
			return result.Status.String(), nil
		},
		"fluxcd": func(object *unstructured.Unstructured) (string, error) {
			result, err := flux.Compute(object)
			if err != nil {
				return "", err
			}
			return result.Status.String(), nil
		},
	}
}

// haveObjects fails for an exception that names no saved object.
func haveObjects(t *testing.T, exceptions map[string]string) {
	t.Helper()
	objects := saved(t)
	for name := range exceptions {
		if _, found := objects[name]; !found {
			t.Errorf("there is no object %s: remove the exception", name)
		}
	}
}

func TestKstatusAgreesWithArgoCDsHealth(t *testing.T) {
	haveObjects(t, otherwise)
	health := argoHealth(t)
	for library, compute := range libraries() {
		for name, object := range saved(t) {
			t.Run(library+"/"+name, func(t *testing.T) {
				expected, differs := otherwise[name]
				if !differs {
					expected = words[health[name]]
				}
				found, err := compute(object)
				if err != nil {
					t.Fatal(err)
				}
				if found != expected {
					t.Errorf("kstatus reports %s, Argo CD %s", found, health[name])
				}
				if differs && found == words[health[name]] {
					t.Errorf("both report %s: no longer an exception", found)
				}
			})
		}
	}
}
