package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// repository is a local git repository, with a folder for each Application.
type repository struct{ folder string }

func newRepository(folder string) (*repository, error) {
	r := &repository{folder}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for _, arguments := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"config", "user.name", "walk"},
		{"config", "user.email", "walk@example.com"},
	} {
		if err := r.git(arguments...); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (r *repository) url() string { return "file://" + r.folder }

func (r *repository) git(arguments ...string) error {
	command := exec.Command("git", arguments...)
	command.Dir = r.folder
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("git %v: %s", arguments, output)
	}
	return nil
}

// commit writes files of an Application and commits them.
func (r *repository) commit(application, message string, files map[string]string) error {
	folder := filepath.Join(r.folder, application)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	if err := r.git("add", "--all"); err != nil {
		return err
	}
	return r.git("commit", "--quiet", "--message", message)
}
