package main

import (
	"encoding/base64"
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

const (
	redis      = "127.0.0.1:6379"
	repoServer = "127.0.0.1:8081"
)

// stack is what of Argo CD runs: no API server and no UI, which the stories do not need.
type stack struct {
	binary    string
	work      string
	processes []*exec.Cmd
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

func installOperator(config string) error {
	if _, err := kubectl("", "apply", "--server-side", "--force-conflicts", "-k", config+"/lab"); err != nil {
		return err
	}
	_, err := kubectl("", "rollout", "status", "-n", "perfvalidation-system", "deployment/perfvalidation-operator",
		"--timeout=180s")
	return err
}

func (s *stack) install(crds, config string) error {
	if _, err := kubectl("", "apply", "--server-side", "-k", crds); err != nil {
		return err
	}
	// `kubectl wait` fails on a definition that has no conditions yet.
	if err := eventually(time.Minute, "Argo CD's kinds", func() error {
		_, err := kubectl("", "get", "applications.argoproj.io,appprojects.argoproj.io", "-A")
		return err
	}); err != nil {
		return err
	}
	key := base64.StdEncoding.EncodeToString([]byte("of the lab alone"))
	settings := fmt.Sprintf(`
{apiVersion: v1, kind: Namespace, metadata: {name: argocd}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: perf}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: perfvalidation, namespace: perf}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: perfvalidation-operator-runs}
subjects: [{kind: ServiceAccount, name: perfvalidation-operator, namespace: perfvalidation-system}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: argocd-cm, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
data: {timeout.reconciliation: 10s}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-secret, namespace: argocd, labels: {app.kubernetes.io/part-of: argocd}}
data: {server.secretkey: %s}
---
apiVersion: argoproj.io/v1alpha1
kind: AppProject
metadata: {name: default, namespace: argocd}
spec:
  sourceRepos: ["*"]
  destinations: [{namespace: "*", server: "*"}]
  clusterResourceWhitelist: [{group: "*", kind: "*"}]
`, key)
	if _, err := kubectl(settings, "apply", "-f", "-"); err != nil {
		return err
	}
	// As a user does it: the keys that are there stay.
	if _, err := kubectl("", "patch", "configmap", "-n", "argocd", "argocd-cm", "--type", "merge",
		"--patch-file", config+"/argocd/argocd-cm.yaml"); err != nil {
		return err
	}
	kept, err := kubectl("", "get", "configmap", "-n", "argocd", "argocd-cm", "-o",
		`jsonpath={.data.timeout\.reconciliation}`)
	if err == nil && kept != "10s" {
		err = errors.New("config/argocd took a setting away that was there")
	}
	return err
}

func (s *stack) start() error {
	if err := os.MkdirAll(filepath.Join(s.work, "tmp"), 0o755); err != nil {
		return err
	}
	if err := s.run("redis", redis, "redis-server", "--bind", "127.0.0.1", "--save", "", "--dir", s.work); err != nil {
		return err
	}
	if err := s.run("argocd-repo-server", repoServer, s.binary, "--redis", redis, "--disable-tls",
		"--address", "127.0.0.1", "--metrics-address", "127.0.0.1"); err != nil {
		return err
	}
	return s.run("argocd-application-controller", "127.0.0.1:8082", s.binary, "--namespace", "argocd",
		"--redis", redis, "--repo-server", repoServer, "--repo-server-plaintext", "--persist-resource-health",
		"--app-resync", "10", "--app-resync-jitter", "0", "--self-heal-timeout-seconds", "5")
}

// run starts a process and waits until it listens.
func (s *stack) run(name, address, program string, arguments ...string) error {
	log, err := os.Create(filepath.Join(s.work, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = log, log
	command.Dir = s.work
	command.Env = append(os.Environ(), "ARGOCD_BINARY_NAME="+name, "ARGOCD_FAKE_IN_CLUSTER=true",
		"ARGOCD_GPG_ENABLED=false", "HOME="+s.work, "TMPDIR="+filepath.Join(s.work, "tmp"),
		"ARGOCD_REPO_SERVER_PLUGIN_SOCK_FILE_PATH="+s.work, "ARGOCD_TLS_DATA_PATH="+s.work,
		"ARGOCD_SSH_DATA_PATH="+s.work)
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := command.Start(); err != nil {
		return err
	}
	s.processes = append(s.processes, command)
	return eventually(time.Minute, name+" listens on "+address, func() error {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
}

func (s *stack) stop() {
	for _, process := range s.processes {
		_ = process.Process.Kill()
		_ = process.Wait()
	}
}

// showLogs prints the end of each log.
func (s *stack) showLogs() {
	const enough = 4000
	logs, _ := filepath.Glob(filepath.Join(s.work, "*.log"))
	for _, path := range logs {
		text, err := os.ReadFile(path)
		if err == nil {
			fmt.Fprintf(os.Stderr, "\n%s:\n%s\n", filepath.Base(path), text[max(0, len(text)-enough):])
		}
	}
}

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
