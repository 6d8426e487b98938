// Command walk takes PerfValidations through a real Argo CD on the lab: `just argocd`.
//
// Application controller and repo server run outside the cluster, in the lab's network; the repository is a folder.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

func main() {
	argocd := flag.String("argocd", "", "Argo CD's one binary")
	crds := flag.String("crds", "", "folder of Argo CD's CRDs")
	config := flag.String("config", "", "the project's config folder")
	work := flag.String("work", "", "an empty folder for the repository, logs and sockets")
	only := flag.String("only", "", "one story only")
	flag.Parse()

	began := time.Now()
	stack := &stack{binary: *argocd, work: *work}
	code := 0
	if err := run(stack, *crds, *config, *only); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		code = 1
	}
	stack.stop()
	if code != 0 {
		stack.showLogs()
	}
	fmt.Printf("\n%d s\n", int(time.Since(began).Seconds()))
	os.Exit(code)
}

func run(stack *stack, crds, config, only string) error {
	title("install the operator, and Argo CD with config/argocd")
	if err := installOperator(config); err != nil {
		return err
	}
	if err := stack.install(crds, config); err != nil {
		return err
	}
	if err := stack.start(); err != nil {
		return err
	}
	repository, err := newRepository(filepath.Join(stack.work, "repository"))
	if err != nil {
		return err
	}
	for _, story := range stories {
		if only != "" && only != story.name {
			continue
		}
		title(story.title)
		if err := story.run(repository); err != nil {
			return fmt.Errorf("%s: %w", story.name, err)
		}
	}
	return nil
}

func title(text string) {
	fmt.Printf("\n── %s\n", text)
}
