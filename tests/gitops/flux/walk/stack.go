package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const health = "127.0.0.1:9440"

// stack is what of Flux runs.
type stack struct {
	binary  string
	work    string
	process *exec.Cmd
}

// kubectl runs kubectl with a manifest as its input, if there is one; its output.
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

func (s *stack) install(crds, config string) error {
	if _, err := kubectl("", "apply", "--server-side", "--force-conflicts", "-k", config+"/lab"); err != nil {
		return err
	}
	if _, err := kubectl("", "rollout", "status", "-n", "perfvalidation-system", "deployment/perfvalidation-operator",
		"--timeout=180s"); err != nil {
		return err
	}
	for _, crd := range strings.Split(crds, ",") {
		if _, err := kubectl("", "apply", "--server-side", "-f", crd); err != nil {
			return err
		}
	}
	// `kubectl wait` fails on a definition that has no conditions yet.
	if err := eventually(time.Minute, "Flux's kinds", func() error {
		_, err := kubectl("", "get", "kustomizations.kustomize.toolkit.fluxcd.io,externalartifacts.source.toolkit.fluxcd.io", "-A")
		return err
	}); err != nil {
		return err
	}
	_, err := kubectl(`
{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}
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

func (s *stack) log() string { return filepath.Join(s.work, "kustomize-controller.log") }

// start runs the controller and waits until it listens.
func (s *stack) start() error {
	log, err := os.Create(s.log())
	if err != nil {
		return err
	}
	defer log.Close()
	s.process = exec.Command(s.binary, "--health-addr", health, "--metrics-addr", "127.0.0.1:0",
		"--feature-gates", "ExternalArtifact=true", "--requeue-dependency", "2s", "--log-level", "debug")
	s.process.Stdout, s.process.Stderr = log, log
	s.process.Dir = s.work
	s.process.Env = append(os.Environ(), "RUNTIME_NAMESPACE=flux-system", "HOME="+s.work, "TMPDIR="+s.work)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := s.process.Start(); err != nil {
		return err
	}
	return eventually(time.Minute, "kustomize-controller listens on "+health, func() error {
		connection, err := net.Dial("tcp", health)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

func (s *stack) stop() {
	if s.process != nil && s.process.Process != nil {
		_ = s.process.Process.Kill()
		_ = s.process.Wait()
	}
}

// applied counts how often the controller has written an object, by the log of its applies: `created` or `configured`.
func (s *stack) applied(object, what string) (int, error) {
	text, err := os.ReadFile(s.log())
	return strings.Count(string(text), fmt.Sprintf("%q:%q", object, what)), err
}

// showLog prints the end of the log.
func (s *stack) showLog() {
	const enough = 8000
	if text, err := os.ReadFile(s.log()); err == nil {
		fmt.Fprintf(os.Stderr, "\n%s\n", text[max(0, len(text)-enough):])
	}
}

// objection ends the waiting: what must not be was seen.
type objection struct{ error }

// eventually looks until there is nothing to complain about; the last complaint is the error.
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
