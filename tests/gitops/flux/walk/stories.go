package main

import (
	"errors"
	"fmt"
	"strings"
)

type story struct {
	name, title string
	run         func(*flux) error
}

var stories = []story{
	{"fit", "a validation that passes: Ready only then, and what depends on it is applied only then; no drift", passes},
	{"slow", "a validation that fails: Ready False with its message, and what depends on it is not applied", fails},
	{"idle", "a validation that is skipped: Ready", skips},
}

const reachable, unreachable = "1", "1G"

// validation is a short run on one GPU of the lab that passes if it reaches `threshold` tok/s; without one it judges nothing.
func validation(name, threshold string) string {
	gates := "[]"
	if threshold != "" {
		gates = fmt.Sprintf("[{name: throughput, metric: OutputTokenThroughput, operator: '>=', threshold: %q}]", threshold)
	}
	return fmt.Sprintf(`apiVersion: perfvalidation.dev/v1alpha1
kind: PerfValidation
metadata: {name: %s}
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
  gates: %s
`, name, gates)
}

func server(name string) map[string]string {
	return map[string]string{"server.yaml": fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {may: start}\n", name)}
}

// begin publishes a validation and what may only come after it, and creates both Kustomizations.
func begin(f *flux, name, threshold string) error {
	if err := f.source.publish(name, map[string]string{"validation.yaml": validation(name, threshold)}); err != nil {
		return err
	}
	if err := f.source.publish("after-"+name, server("after-"+name)); err != nil {
		return err
	}
	return errors.Join(f.create(name, true), f.create("after-"+name, false, name))
}

func passes(f *flux) error {
	const name, object = "fit", "PerfValidation/perf/fit"
	if err := begin(f, name, reachable); err != nil {
		return err
	}
	if err := follow(name, is("True", "ReconciliationSucceeded"), soon(name, "Passed")); err != nil {
		return err
	}
	if err := follow("after-"+name, is("True", "ReconciliationSucceeded"), anything); err != nil {
		return err
	}

	title("Flux looks again: nothing to apply")
	before, err := f.stack.applied(object, "unchanged")
	if err != nil {
		return err
	}
	asked, err := reconcile(name)
	if err != nil {
		return err
	}
	handled := func(found kustomization) error {
		if found.Status.LastHandledReconcileAt != asked {
			return errors.New("it has not looked yet")
		}
		return is("True", "ReconciliationSucceeded")(found)
	}
	if err := follow(name, handled, anything); err != nil {
		return err
	}
	configured, err := f.stack.applied(object, "configured")
	if err != nil {
		return err
	}
	if configured > 0 {
		return fmt.Errorf("drift: applied %d times more", configured)
	}
	unchanged, err := f.stack.applied(object, "unchanged")
	if err == nil && unchanged <= before {
		err = errors.New("the second look is not in the controller's log")
	}
	return err
}

func fails(f *flux) error {
	const name = "slow"
	if err := begin(f, name, unreachable); err != nil {
		return err
	}
	if err := follow(name, is("False", "HealthCheckFailed"), neverReady); err != nil {
		return err
	}
	found, err := read(name)
	if err != nil {
		return err
	}
	if message := found.ready().Message; !strings.Contains(message, "PerfValidation/perf/slow") || !strings.Contains(message, "Failed") {
		return fmt.Errorf("the message is %q", message)
	}
	applied, err := kubectl("", "get", "configmap", "-n", "perf", "after-"+name, "--ignore-not-found", "-o", "name")
	if err == nil && applied != "" {
		err = errors.New("what depends on it was applied")
	}
	return err
}

func skips(f *flux) error {
	const name = "idle"
	if err := begin(f, name, ""); err != nil {
		return err
	}
	return follow(name, is("True", "ReconciliationSucceeded"), soon(name, "Skipped"))
}

func neverReady(found kustomization) error {
	if ready := found.ready(); ready.Status == "True" {
		return fmt.Errorf("it is Ready: %s", ready.Message)
	}
	return nil
}

// soon objects to a Kustomization that is Ready, or to what depends on it, before the verdict is there.
func soon(name, verdict string) func(kustomization) error {
	return func(found kustomization) error {
		applied, err := kubectl("", "get", "configmap", "-n", "perf", "after-"+name, "--ignore-not-found", "-o", "name")
		if err != nil {
			return err
		}
		if found.ready().Status != "True" && applied == "" {
			return nil
		}
		reached, err := kubectl("", "get", "perfval", "-n", "perf", name, "-o", "jsonpath={.status.verdict}")
		if err == nil && reached != verdict {
			err = fmt.Errorf("it is Ready, or %s applied, and the verdict is %q", applied, reached)
		}
		return err
	}
}
