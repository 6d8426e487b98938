package flux

import (
	"testing"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
)

// Where the expressions say something else than Argo CD's health check.
var otherwiseByExpression = map[string]string{
	// Flux knows nothing of a deletion by another client; the object is gone soon.
	"deleted-running": "InProgress",
	"deleted-passed":  "InProgress",
	"deleted-failed":  "InProgress",
}

func TestExpressionsAgreeWithArgoCDsHealth(t *testing.T) {
	var checks []kustomize.CustomHealthCheck
	fromYAML(t, "../../../config/flux/healthcheck.yaml", &checks)
	if len(checks) != 1 {
		t.Fatal("one check is meant for one kind, found", len(checks))
	}
	evaluator, err := cel.NewStatusEvaluator(&checks[0].HealthCheckExpressions)
	if err != nil {
		t.Fatal(err)
	}
	haveObjects(t, otherwiseByExpression)
	health := argoHealth(t)
	for name, object := range saved(t) {
		t.Run(name, func(t *testing.T) {
			result, err := evaluator.Evaluate(t.Context(), object)
			if name == "without-status" {
				// CEL cannot ask whether a field at the top exists; the CRD's default makes it exist.
				if err == nil {
					t.Errorf("expected an error, found %s", result.Status)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			expected, differs := otherwiseByExpression[name]
			if !differs {
				expected = words[health[name]]
			}
			if result.Status.String() != expected {
				t.Errorf("Flux reports %s, Argo CD %s", result.Status, health[name])
			}
			if differs && expected == words[health[name]] {
				t.Errorf("both report %s: no longer an exception", expected)
			}
		})
	}
}
