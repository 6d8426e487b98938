package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// application is what a story reads of an Application.
type application struct {
	Status struct {
		Sync   struct{ Status, Revision string }
		Health struct{ Status string }
		// What was applied, with the health that Argo CD gave it.
		Resources []struct {
			Kind, Name, Status string
			Health             *struct{ Status, Message string }
		}
		History        []struct{ Revision string }
		OperationState *struct {
			Phase, Message string
			SyncResult     struct {
				Revision  string
				Resources []struct{ Kind, Name, HookPhase, HookType, Message string }
			}
		}
	}
}

func read(name string) (application, error) {
	var found application
	text, err := kubectl("", "get", "application", "-n", "argocd", name, "-o", "json")
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal([]byte(text), &found)
}

// create makes an Application of a folder of the repository, synced by Argo CD itself.
func create(r *repository, name string, options ...string) error {
	_, err := kubectl(fmt.Sprintf(`
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: %s, namespace: argocd, finalizers: [resources-finalizer.argocd.argoproj.io]}
spec:
  project: default
  source: {repoURL: %q, targetRevision: main, path: %s}
  destination: {server: "https://kubernetes.default.svc", namespace: perf}
  syncPolicy: {automated: {selfHeal: true}, retry: {limit: 0}, syncOptions: [%s]}
`, name, r.url(), name, strings.Join(options, ", ")), "apply", "-f", "-")
	return err
}

// refresh notifies Argo CD of a new commit, as a webhook would.
func refresh(name string) error {
	_, err := kubectl("", "annotate", "application", "-n", "argocd", name, "argocd.argoproj.io/refresh=hard", "--overwrite")
	return err
}

// line is what a user sees of the Application.
func (a application) line() string {
	line := fmt.Sprintf("%-9s %-11s", a.Status.Sync.Status, a.Status.Health.Status)
	if a.Status.OperationState != nil {
		line += fmt.Sprintf(" sync %-9s", a.Status.OperationState.Phase)
	}
	for _, resource := range a.Status.Resources {
		if resource.Health != nil && resource.Kind == "PerfValidation" {
			line += fmt.Sprintf(" %s %s: %s", resource.Name, resource.Health.Status, resource.Health.Message)
		}
	}
	if a.Status.OperationState != nil {
		for _, hook := range a.Status.OperationState.SyncResult.Resources {
			if hook.HookType != "" && hook.HookType != "Sync" {
				line += fmt.Sprintf(" | %s %s %s: %s", hook.HookType, hook.Name, hook.HookPhase, hook.Message)
			}
		}
	}
	return strings.TrimSpace(line)
}

// follow prints every change of an Application until it is as expected; `never` may object to what it sees on the way.
func follow(name string, expected func(application) error, never func(application) error) error {
	began, shown := time.Now(), ""
	return eventually(8*time.Minute, name, func() error {
		found, err := read(name)
		if err != nil {
			return err
		}
		if line := found.line(); line != shown {
			fmt.Printf("%6.1f s  %s\n", time.Since(began).Seconds(), line)
			shown = line
		}
		if err := never(found); err != nil {
			return &objection{err}
		}
		return expected(found)
	})
}

// objection ends the waiting: what must not be was seen.
type objection struct{ error }

func anything(application) error { return nil }

// is expects the words of sync and health, and a sync that has ended in `operation`.
func is(sync, health, operation string) func(application) error {
	return func(found application) error {
		ended := found.Status.OperationState
		switch {
		case ended == nil || ended.Phase != operation:
			return fmt.Errorf("the sync is not %s: %s", operation, found.line())
		case found.Status.Sync.Status != sync || found.Status.Health.Status != health:
			return fmt.Errorf("not %s and %s: %s", sync, health, found.line())
		}
		return nil
	}
}

// drift objects to an Application that is not what git says.
func drift(found application) error {
	if found.Status.Sync.Status == "OutOfSync" {
		return fmt.Errorf("drift: %s", found.line())
	}
	return nil
}
