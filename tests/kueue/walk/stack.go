package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const health = "127.0.0.1:9441"

// settings enable Kueue for Jobs only, because the stories are about Jobs. Kueue's default also includes pods.
const settings = `
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
namespace: kueue-system
health: {healthProbeBindAddress: %q}
metrics: {bindAddress: "0"}
webhook: {port: 9443, certDir: %q}
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
featureGates: {VisibilityOnDemand: false}
manageJobsWithoutQueueName: false
integrations: {frameworks: [batch/job]}
`

// isolated starts Kueue in a mount namespace of its own, because it reads one certificate at a path that no setting changes.
const isolated = `mount -t tmpfs tmpfs /etc
mkdir -p /etc/kueue/metrics
cp -r "$1" /etc/kueue/metrics/certs
exec "$2" --config "$3" --zap-log-level 2`

// stack is the part of Kueue that runs.
type stack struct {
	binary  string
	module  string
	work    string
	process *exec.Cmd
}

// kubectl runs kubectl with a manifest as its input, if there is one, and returns its output.
func kubectl(manifest string, arguments ...string) (string, error) {
	command := exec.Command("kubectl", arguments...)
	command.Stdin = strings.NewReader(manifest)
	output, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("kubectl %s: %s", strings.Join(arguments, " "), failed.Stderr)
	}
	return string(output), err
}

func (s *stack) install(config string) error {
	if _, err := kubectl("", "apply", "--server-side", "--force-conflicts", "-k", config+"/lab"); err != nil {
		return err
	}
	if _, err := kubectl("", "rollout", "status", "-n", "perfvalidation-system", "deployment/perfvalidation-operator",
		"--timeout=180s"); err != nil {
		return err
	}
	if _, err := kubectl("", "apply", "--server-side", "-f", s.module+"/config/components/crd/bases"); err != nil {
		return err
	}
	// `kubectl wait` fails on a definition that has no conditions yet.
	if err := eventually(time.Minute, "Kueue's kinds", func() error {
		_, err := kubectl("", "get", "clusterqueues.kueue.x-k8s.io,localqueues.kueue.x-k8s.io,workloads.kueue.x-k8s.io", "-A")
		return err
	}); err != nil {
		return err
	}
	_, err := kubectl(`
{apiVersion: v1, kind: Namespace, metadata: {name: kueue-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: perf}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: perfvalidation, namespace: perf}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: perfvalidation-operator-runs}
subjects: [{kind: ServiceAccount, name: perfvalidation-operator, namespace: perfvalidation-system}]
`, "apply", "-f", "-")
	return err
}

func (s *stack) log() string { return filepath.Join(s.work, "kueue.log") }

// start runs the controller. It creates the webhooks last, because an absent server would block all Jobs.
func (s *stack) start() error {
	certificates := filepath.Join(s.work, "certificates")
	authority, err := writeCertificates(certificates)
	if err != nil {
		return err
	}
	configuration := filepath.Join(s.work, "kueue.yaml")
	if err := os.WriteFile(configuration, fmt.Appendf(nil, settings, health, certificates), 0o600); err != nil {
		return err
	}
	log, err := os.Create(s.log())
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = exec.Command("unshare", "--mount", "sh", "-ec", isolated, "sh", certificates, s.binary, configuration)
	s.process.Stdout, s.process.Stderr = log, log
	s.process.Dir = s.work
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := s.process.Start(); err != nil {
		return err
	}
	if err := eventually(time.Minute, "Kueue is ready", func() error {
		answer, err := http.Get("http://" + health + "/readyz")
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusOK {
			err = errors.New(answer.Status)
		}
		return errors.Join(err, answer.Body.Close())
	}); err != nil {
		return err
	}
	webhooks, err := readWebhooks(s.module, authority)
	if err != nil {
		return err
	}
	_, err = kubectl(webhooks, "apply", "--server-side", "-f", "-")
	return err
}

func (s *stack) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

// showLog prints the end of the log.
func (s *stack) showLog() {
	const enough = 8000
	if text, err := os.ReadFile(s.log()); err == nil {
		fmt.Fprintf(os.Stderr, "\n%s\n", text[max(0, len(text)-enough):])
	}
}

// objection ends the waiting, because a forbidden state was seen.
type objection struct{ error }

// eventually looks until there is no complaint. After the limit it returns the last complaint.
func eventually(limit time.Duration, what string, look func() error) error {
	deadline := time.Now().Add(limit)
	for {
		err := look()
		if err == nil {
			return nil
		}
		var objects *objection
		if errors.As(err, &objects) {
			return fmt.Errorf("%s: %w", what, err)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s: not within %s: %w", what, limit, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}
