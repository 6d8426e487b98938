package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// queue is the LocalQueue of the namespace, and clusterQueue contains its quota.
const queue, clusterQueue = "benchmarks", "benchmarks"

// createQueues creates a queue without CPU. It has much memory, so only its CPU decides.
func createQueues() error {
	manifest := fmt.Sprintf(`
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: any-node}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: %[1]s}
spec:
  stopPolicy: None
  namespaceSelector: {}
  resourceGroups:
    - coveredResources: [cpu, memory]
      flavors:
        - name: any-node
          resources: [{name: cpu, nominalQuota: "0"}, {name: memory, nominalQuota: 64Gi}]
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: %[2]s, namespace: perf}
spec: {clusterQueue: %[1]s}
`, clusterQueue, queue)
	if _, err := kubectl(manifest, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		return err
	}
	return eventually(time.Minute, "the ClusterQueue is active", func() error {
		active, err := kubectl("", "get", "clusterqueue", clusterQueue, "-o", `jsonpath={.status.conditions[?(@.type=="Active")].status}`)
		if err == nil && active != "True" {
			err = fmt.Errorf("Active is %q", active)
		}
		return err
	})
}

// setCPU sets the quota of CPU.
func setCPU(cores string) error {
	patch := fmt.Sprintf(`[{"op": "replace", "path": "/spec/resourceGroups/0/flavors/0/resources/0/nominalQuota", "value": %q}]`, cores)
	_, err := kubectl("", "patch", "clusterqueue", clusterQueue, "--type", "json", "--patch", patch)
	return err
}

// setStopPolicy drains the queue, or opens it again.
func setStopPolicy(policy string) error {
	_, err := kubectl("", "patch", "clusterqueue", clusterQueue, "--type", "merge", "--patch",
		fmt.Sprintf(`{"spec": {"stopPolicy": %q}}`, policy))
	return err
}

// workload is Kueue's object for a Job.
type workload struct {
	Status struct{ Conditions []condition }
}

// readWorkload reads the only workload of the namespace.
func readWorkload() (workload, error) {
	text, err := kubectl("", "get", "workloads.kueue.x-k8s.io", "-n", "perf", "-o", "json")
	if err != nil {
		return workload{}, err
	}
	var list struct{ Items []workload }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return workload{}, err
	}
	if len(list.Items) != 1 {
		return workload{}, fmt.Errorf("the namespace has %d workloads, not 1", len(list.Items))
	}
	return list.Items[0], nil
}

// isHeldFor expects that Kueue does not admit the workload, with a message that contains these words.
func isHeldFor(words string) error {
	found, err := readWorkload()
	if err != nil {
		return err
	}
	reserved := find(found.Status.Conditions, "QuotaReserved")
	if reserved.Status != "False" || !strings.Contains(reserved.Message, words) {
		return fmt.Errorf("QuotaReserved is %s (%s: %s), not False with %q", reserved.Status, reserved.Reason, reserved.Message, words)
	}
	fmt.Printf("          Kueue: %s: %s\n", reserved.Reason, reserved.Message)
	return nil
}

// isEmpty expects that the run left no object, and that all GPUs are free.
func isEmpty() error {
	kinds := "dynamographdeployments.nvidia.com,jobs,workloads.kueue.x-k8s.io,pods,resourceclaims,resourceclaimtemplates,persistentvolumeclaims,services,networkpolicies,deployments"
	left, err := kubectl("", "get", kinds, "-n", "perf", "-o", "name")
	if err != nil {
		return err
	}
	if left != "" {
		return fmt.Errorf("left: %s", strings.Join(strings.Fields(left), ", "))
	}
	devices, err := kubectl("", "get", "resourceslices", "-o", `jsonpath={range .items[?(@.spec.driver=="gpu.nvidia.com")].spec.devices[*]}{.name}{"\n"}{end}`)
	if err != nil {
		return err
	}
	taken, err := kubectl("", "get", "resourceclaims", "-A", "-o", `jsonpath={range .items[*].status.allocation.devices.results[*]}{.device}{"\n"}{end}`)
	if err != nil {
		return err
	}
	all, used := len(strings.Fields(devices)), len(strings.Fields(taken))
	if all != 8 || used != 0 {
		return fmt.Errorf("%d of %d GPUs are free", all-used, all)
	}
	fmt.Println("          no Job, Workload, pod or claim is left; 8 of 8 GPUs are free")
	return nil
}
