package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// flux is what a story acts on.
type flux struct {
	stack  *stack
	source *source
	// checks are the health check expressions of config/flux.
	checks string
}

// kustomization is what a story reads of a Kustomization.
type kustomization struct {
	Metadata struct{ Generation int64 }
	Status   struct {
		LastAppliedRevision    string
		LastHandledReconcileAt string
		Conditions             []condition
	}
}

type condition struct {
	Type, Status, Reason, Message string
	ObservedGeneration            int64
}

func read(name string) (kustomization, error) {
	var found kustomization
	text, err := kubectl("", "get", "kustomization", "-n", "flux-system", name, "-o", "json")
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal([]byte(text), &found)
}

func (k kustomization) ready() condition {
	for _, condition := range k.Status.Conditions {
		if condition.Type == "Ready" {
			return condition
		}
	}
	return condition{}
}

// create makes a Kustomization of an artifact, with a health check on the validation of its name, if there is one.
func (f *flux) create(name string, validates bool, after ...string) error {
	spec := ""
	if validates {
		expressions := "    " + strings.ReplaceAll(strings.TrimSpace(f.checks), "\n", "\n    ")
		spec = fmt.Sprintf(`
  healthChecks:
    - {apiVersion: perfvalidation.dev/v1alpha1, kind: PerfValidation, name: %s, namespace: perf}
  healthCheckExprs:
%s`, name, expressions)
	}
	for _, dependency := range after {
		spec += fmt.Sprintf("\n  dependsOn: [{name: %s}]", dependency)
	}
	_, err := kubectl(fmt.Sprintf(`
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: %[1]s, namespace: flux-system}
spec:
  interval: 1h
  timeout: 8m
  targetNamespace: perf
  prune: true
  sourceRef: {kind: ExternalArtifact, name: %[1]s}%[2]s
`, name, spec), "apply", "-f", "-")
	return err
}

// reconcile asks for another look, as `flux reconcile` does; what it asked with.
func reconcile(name string) (string, error) {
	asked := time.Now().UTC().Format(time.RFC3339Nano)
	_, err := kubectl("", "annotate", "kustomization", "-n", "flux-system", name, "reconcile.fluxcd.io/requestedAt="+asked, "--overwrite")
	return asked, err
}

// line is what a user sees of the Kustomization and of its validation.
func line(name string, found kustomization) (string, error) {
	ready := found.ready()
	phase, err := kubectl("", "get", "perfval", "-n", "perf", name, "--ignore-not-found", "-o", "jsonpath={.status.phase} {.status.verdict}")
	return strings.TrimSpace(fmt.Sprintf("Ready %-7s %-17s %s | %s: %s", ready.Status, ready.Reason, ready.Message, name, phase)), err
}

// follow prints every change of a Kustomization until it is as expected; `never` may object to what it sees on the way.
func follow(name string, expected, never func(kustomization) error) error {
	began, shown := time.Now(), ""
	return eventually(8*time.Minute, name, func() error {
		found, err := read(name)
		if err != nil {
			return err
		}
		seen, err := line(name, found)
		if err != nil {
			return err
		}
		if seen != shown {
			fmt.Printf("%6.1f s  %s\n", time.Since(began).Seconds(), seen)
			shown = seen
		}
		if err := never(found); err != nil {
			return &objection{err}
		}
		return expected(found)
	})
}

// is expects a status of Ready with one of the words in its reason.
func is(status, reason string) func(kustomization) error {
	return func(found kustomization) error {
		// Flux writes the generation of the whole status only where it succeeded or gave up; the condition always has its own.
		is := found.ready()
		if is.ObservedGeneration != found.Metadata.Generation || is.Status != status || is.Reason != reason {
			return fmt.Errorf("Ready is %s (%s: %s), not %s (%s)", is.Status, is.Reason, is.Message, status, reason)
		}
		return nil
	}
}

func anything(kustomization) error { return nil }
