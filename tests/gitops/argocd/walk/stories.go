package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

type story struct {
	name, title string
	run         func(*repository) error
}

var stories = []story{
	{"fit", "a validation that passes: Progressing, then Healthy; no drift with server-side apply", passes},
	{"slow", "a validation that fails: Degraded with its message; client-side apply", fails},
	{"wave", "a later wave waits for the validation, and is not applied when it fails", stopsTheNextWave},
	{"gate", "a PostSync hook fails the sync; a fresh run of the next commit passes it", gates},
}

// validation is a short run on one GPU of the lab that passes if it reaches `threshold` tok/s.
func validation(name, threshold, annotations string) string {
	return fmt.Sprintf(`apiVersion: perfvalidation.dev/v1alpha1
kind: PerfValidation
metadata:
  name: %s
  annotations: {%s}
spec:
  model: {name: lab/tiny-qwen3}
  workload:
    dynamo:
      image: localhost/dynamo-lab:1.4.2
      worker:
        command: [lab-worker]
        args: [--max-num-seqs, "32"]
  podTemplate:
    spec:
      imagePullPolicy: Never
  placement: {maxGPUs: 1}
  benchmark:
    image: localhost/dynamo-lab:1.4.2
    concurrencyPerGPU: 16
    outputTokens: 16
    requestsPerConcurrency: 4
    minRequests: 64
    placement: WorkloadNode
  trials: {rule: Single, maxFailedRequestsPercent: "100"} # a busy machine
  gates:
    - {name: throughput, metric: OutputTokenThroughput, operator: ">=", threshold: %q}
`, name, annotations, threshold)
}

const reachable, unreachable = "1", "1G"

func passes(r *repository) error {
	const name = "fit"
	if err := r.commit(name, "a validation", map[string]string{"validation.yaml": validation("fit", reachable, "")}); err != nil {
		return err
	}
	if err := create(r, name, "ServerSideApply=true"); err != nil {
		return err
	}
	progressed := false
	healthy := is("Synced", "Healthy", "Succeeded")
	if err := follow(name, func(found application) error {
		progressed = progressed || found.Status.Health.Status == "Progressing"
		return healthy(found)
	}, anything); err != nil {
		return err
	}
	if !progressed {
		return errors.New("it was never Progressing")
	}

	title("the action `rerun` (its annotation): Progressing again, and no drift")
	token := time.Now().UTC().Format(time.RFC3339)
	if _, err := kubectl("", "annotate", "perfval", "-n", "perf", "fit", "perfvalidation.dev/rerun="+token); err != nil {
		return err
	}
	if err := follow(name, progressing, drift); err != nil {
		return err
	}
	if err := follow(name, both(value("fit", "{.status.run.rerunToken}", token), healthy), drift); err != nil {
		return err
	}

	title("someone changes a gate by hand: self-heal takes it back, and the saved trials are judged again")
	generation, err := kubectl("", "get", "perfval", "-n", "perf", "fit", "-o", "jsonpath={.metadata.generation}")
	if err != nil {
		return err
	}
	if _, err := kubectl("", "patch", "perfval", "-n", "perf", "fit", "--type=json", "-p",
		`[{"op": "replace", "path": "/spec/gates/0/threshold", "value": "1G"}]`); err != nil {
		return err
	}
	// The edit is one generation, and its undoing another.
	edited, err := strconv.Atoi(generation)
	if err != nil {
		return err
	}
	undone := strconv.Itoa(edited + 2)
	seen := both(value("fit", "{.metadata.generation}", undone), value("fit", "{.status.observedGeneration}", undone))
	return follow(name, both(seen, value("fit", "{.spec.gates[0].threshold}", reachable), healthy), anything)
}

func progressing(found application) error {
	if found.Status.Health.Status != "Progressing" {
		return fmt.Errorf("not Progressing: %s", found.line())
	}
	return nil
}

// both expects everything.
func both(expected ...func(application) error) func(application) error {
	return func(found application) error {
		var wrong []error
		for _, one := range expected {
			wrong = append(wrong, one(found))
		}
		return errors.Join(wrong...)
	}
}

// value expects a value in a validation.
func value(name, path, expected string) func(application) error {
	return func(application) error {
		found, err := kubectl("", "get", "perfval", "-n", "perf", name, "-o", "jsonpath="+path)
		if err == nil && found != expected {
			err = fmt.Errorf("%s is %q, not %q", path, found, expected)
		}
		return err
	}
}

func fails(r *repository) error {
	const name = "slow"
	if err := r.commit(name, "a validation", map[string]string{"validation.yaml": validation("slow", unreachable, "")}); err != nil {
		return err
	}
	if err := create(r, name); err != nil {
		return err
	}
	degraded := is("Synced", "Degraded", "Succeeded")
	return follow(name, func(found application) error {
		if err := degraded(found); err != nil {
			return err
		}
		message := ""
		for _, resource := range found.Status.Resources {
			if resource.Health != nil && resource.Kind == "PerfValidation" {
				message = resource.Health.Message
			}
		}
		if !strings.HasPrefix(message, "Failed: throughput ") {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	}, anything)
}

const server = `apiVersion: v1
kind: ConfigMap
metadata:
  name: server
  annotations: {argocd.argoproj.io/sync-wave: "1"}
data: {may: start}
`

func stopsTheNextWave(r *repository) error {
	const name = "wave"
	files := map[string]string{
		"validation.yaml": validation("wave", unreachable, `argocd.argoproj.io/sync-wave: "0"`),
		"server.yaml":     server,
	}
	if err := r.commit(name, "a validation, then the server", files); err != nil {
		return err
	}
	if err := create(r, name, "ServerSideApply=true"); err != nil {
		return err
	}
	if err := follow(name, is("OutOfSync", "Degraded", "Failed"), absent("server")); err != nil {
		return err
	}

	title("the next commit asks for less: the validation is judged again, and the server is applied")
	files["validation.yaml"] = validation("wave", reachable, `argocd.argoproj.io/sync-wave: "0"`)
	if err := r.commit(name, "a gate that it meets", files); err != nil {
		return err
	}
	if err := refresh(name); err != nil {
		return err
	}
	return follow(name, is("Synced", "Healthy", "Succeeded"), anything)
}

// absent fails if a ConfigMap exists.
func absent(name string) func(application) error {
	return func(application) error {
		found, err := kubectl("", "get", "configmap", "-n", "perf", name, "--ignore-not-found", "-o", "name")
		if err == nil && found != "" {
			err = fmt.Errorf("%s was applied", name)
		}
		return err
	}
}

func gates(r *repository) error {
	const name, hook = "gate", "argocd.argoproj.io/hook: PostSync, argocd.argoproj.io/hook-delete-policy: BeforeHookCreation"
	files := map[string]string{
		"validation.yaml": validation("after-sync", unreachable, hook),
		"release.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: release}\ndata: {version: \"1\"}\n",
	}
	if err := r.commit(name, "release 1", files); err != nil {
		return err
	}
	if err := create(r, name); err != nil {
		return err
	}
	failed := is("Synced", "Healthy", "Failed")
	if err := follow(name, failed, anything); err != nil {
		return err
	}

	title("the next commit: the old hook is deleted, and its GPU is free, before the new one begins")
	files["validation.yaml"] = validation("after-sync", reachable, hook)
	files["release.yaml"] = strings.Replace(files["release.yaml"], `"1"`, `"2"`, 1)
	if err := r.commit(name, "release 2", files); err != nil {
		return err
	}
	if err := refresh(name); err != nil {
		return err
	}
	return follow(name, is("Synced", "Healthy", "Succeeded"), anything)
}
