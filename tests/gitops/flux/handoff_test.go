package flux

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const handoff = "../../../config/handoff/"

// What becomes of a run whose object is saved under the name: it goes on, or it ends well or badly.
func outcome(t *testing.T, name string) string {
	t.Helper()
	return map[string]string{"Current": "good", "Failed": "bad", "InProgress": ""}[words[argoHealth(t)[name]]]
}

// fresh are the objects as a system sees them that creates one and waits: never edited, annotated, suspended or deleted.
func fresh(t *testing.T) map[string]*unstructured.Unstructured {
	t.Helper()
	objects := saved(t)
	for name, object := range objects {
		odd := slices.ContainsFunc([]string{"edited", "rerun-", "suspend", "held-back", "delet", "without", "later"},
			func(word string) bool { return strings.Contains(name, word) })
		if odd || object.GetGeneration() != 1 {
			delete(objects, name)
		}
	}
	if len(objects) < 15 {
		t.Fatal("too few objects:", len(objects))
	}
	return objects
}

// conditionFields answers Argo Workflows, which reads fields of an object as if they were labels (workflow/executor).
type conditionFields struct{ text []byte }

func (f conditionFields) Has(path string) bool              { return gjson.GetBytes(f.text, path).Exists() }
func (f conditionFields) Get(path string) string            { return gjson.GetBytes(f.text, path).String() }
func (f conditionFields) Lookup(path string) (string, bool) { return f.Get(path), f.Has(path) }

func requirements(t *testing.T, condition string) labels.Requirements {
	t.Helper()
	selector, err := labels.Parse(condition)
	if err != nil {
		t.Fatal(err)
	}
	found, _ := selector.Requirements()
	return found
}

func TestArgoWorkflowsConditions(t *testing.T) {
	var workflow struct {
		Spec struct {
			Templates []struct {
				Resource struct{ SuccessCondition, FailureCondition, Manifest string }
			}
		}
	}
	fromYAML(t, handoff+"argo-workflows.yaml", &workflow)
	resource := workflow.Spec.Templates[0].Resource
	success, failure := requirements(t, resource.SuccessCondition), requirements(t, resource.FailureCondition)
	for name, object := range fresh(t) {
		// It cannot read conditions: the step goes on until the run ends by its own time-out.
		if name == "benchmarking-blocked-for-long" {
			continue
		}
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		matches := func(one labels.Requirement) bool { return one.Matches(conditionFields{text}) }
		found := ""
		// Any requirement of a failure will do, a success needs all: matchConditions.
		if slices.ContainsFunc(failure, matches) {
			found = "bad"
		} else if !slices.ContainsFunc(success, func(one labels.Requirement) bool { return !matches(one) }) {
			found = "good"
		}
		if expected := outcome(t, name); found != expected {
			t.Errorf("%s: expected %q, found %q", name, expected, found)
		}
	}
}

type nvsentinel struct {
	LifecycleManager struct {
		Config struct {
			Providers map[string]struct {
				APIGroup, Version, Kind, Resource, TemplateFile string
				SuccessfulCondition, FailedCondition            struct{ Type, Status string }
			}
			Templates map[string]string
		}
	} `json:"lifecycle-manager"`
}

func TestNVSentinelConditions(t *testing.T) {
	var values nvsentinel
	fromYAML(t, handoff+"nvsentinel-values.yaml", &values)
	provider := values.LifecycleManager.Config.Providers["perfvalidation-provider"]
	for name, object := range fresh(t) {
		found := ""
		conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
		for _, entry := range conditions {
			condition := entry.(map[string]any)
			switch fmt.Sprint(condition["type"], condition["status"]) {
			case provider.SuccessfulCondition.Type + provider.SuccessfulCondition.Status:
				found += "good"
			case provider.FailedCondition.Type + provider.FailedCondition.Status:
				found += "bad"
			}
		}
		if expected := outcome(t, name); found != expected {
			t.Errorf("%s: expected %q, found %q", name, expected, found)
		}
	}
}

// The template renders with NVSentinel's data (lifecycle-manager, TemplateContext).
func nvsentinelObject(t *testing.T) []byte {
	t.Helper()
	var values nvsentinel
	fromYAML(t, handoff+"nvsentinel-values.yaml", &values)
	config := values.LifecycleManager.Config
	text := config.Templates[config.Providers["perfvalidation-provider"].TemplateFile]
	parsed, err := template.New("").Funcs(template.FuncMap{"quote": strconv.Quote}).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var rendered bytes.Buffer
	err = parsed.Execute(&rendered, map[string]any{
		"ValidationRequestName": "validation-1790643391763878321",
		"TestGroupName":         "inference-group-1",
		"Namespace":             "nvsentinel",
		"Image":                 "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1",
		"Nodes":                 []map[string]string{{"NodeName": "node-a"}},
		"Tolerations": []map[string]string{
			{"Key": "example.com/validating", "Value": "true", "Operator": "Equal", "Effect": "NoSchedule"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return rendered.Bytes()
}

func workflowObject(t *testing.T) []byte {
	t.Helper()
	var workflow struct {
		Spec struct {
			Templates []struct{ Resource struct{ Manifest string } }
		}
	}
	fromYAML(t, handoff+"argo-workflows.yaml", &workflow)
	object := map[string]any{}
	if err := yaml.Unmarshal([]byte(workflow.Spec.Templates[0].Resource.Manifest), &object); err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
