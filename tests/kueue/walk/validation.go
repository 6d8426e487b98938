package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// validation is the part of a PerfValidation that a story reads.
type validation struct {
	Status struct {
		Phase, Verdict, Reason, Message string
		Conditions                      []condition
	}
}

type condition struct{ Type, Status, Reason, Message string }

// find returns the condition of a type, or an empty one.
func find(conditions []condition, kind string) condition {
	for _, condition := range conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return condition{}
}

// create creates a run on one GPU whose Job belongs to a queue. `load` and `timeouts` are settings of the spec.
func create(name, queue, load, timeouts string) error {
	_, err := kubectl(fmt.Sprintf(`
apiVersion: perfvalidation.dev/v1alpha1
kind: PerfValidation
metadata: {name: %s, namespace: perf}
spec:
  model: {name: lab/tiny-qwen3}
  workload:
    dynamo:
      image: localhost/dynamo-lab:1.4.2
      worker:
        command: [lab-worker]
        args: [--max-num-seqs, "32"]
  podTemplate:
    metadata:
      labels: {kueue.x-k8s.io/queue-name: %s}
    spec:
      imagePullPolicy: Never
  placement: {maxGPUs: 1}
  benchmark:
    image: localhost/dynamo-lab:1.4.2
    concurrencyPerGPU: 16
    outputTokens: 16
    placement: WorkloadNode
    %s
  trials: {rule: Single, maxFailedRequestsPercent: "100"} # a busy machine
  gates: [{name: throughput, metric: OutputTokenThroughput, operator: ">=", threshold: "1"}]
  timeouts: {%s}
`, name, queue, load, timeouts), "create", "-f", "-")
	return err
}

func read(name string) (validation, error) {
	var found validation
	text, err := kubectl("", "get", "perfval", "-n", "perf", name, "-o", "json")
	if err != nil {
		return found, err
	}
	return found, json.Unmarshal([]byte(text), &found)
}

// line is the text that a user sees of the validation and of its Jobs.
func line(found validation) (string, error) {
	jobs, err := kubectl("", "get", "jobs", "-n", "perf", "-o",
		`jsonpath={range .items[*]}suspend {.spec.suspend}, active {.status.active} {end}`)
	if err != nil {
		return "", err
	}
	status := found.Status
	return fmt.Sprintf("%s %s %s: %s | Job: %s", status.Phase, status.Verdict, status.Reason, status.Message, strings.TrimSpace(jobs)), nil
}

// follow prints every change of a validation until it is as expected; `never` may object to a state on the way.
func follow(name string, limit time.Duration, expected, never func(validation) error) error {
	began, shown := time.Now(), ""
	return eventually(limit, name, func() error {
		found, err := read(name)
		if err != nil {
			return err
		}
		seen, err := line(found)
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
