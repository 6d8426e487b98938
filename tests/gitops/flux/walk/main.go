// Command walk takes PerfValidations through a real kustomize-controller on the lab: `just flux`.
//
// The controller runs outside the cluster, in the lab's network. Its source is an ExternalArtifact, Flux's interface for
// sources of others: source-controller does not build from the Go module proxy (github.com/fluxcd/pkg/artifact is not there).
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	controller := flag.String("controller", "", "kustomize-controller")
	crds := flag.String("crds", "", "CRDs of Flux, separated by commas")
	config := flag.String("config", "", "the project's config folder")
	work := flag.String("work", "", "an empty folder for artifacts and logs")
	only := flag.String("only", "", "one story only")
	flag.Parse()

	began := time.Now()
	stack := &stack{binary: *controller, work: *work}
	code := 0
	if err := run(stack, *crds, *config, *only); err != nil {
		fmt.Fprintln(os.Stderr, "FAILED:", err)
		code = 1
	}
	stack.stop()
	if code != 0 {
		stack.showLog()
	}
	fmt.Printf("\n%d s\n", int(time.Since(began).Seconds()))
	os.Exit(code)
}

func run(stack *stack, crds, config, only string) error {
	title("install the operator, and Flux's CRDs")
	if err := stack.install(crds, config); err != nil {
		return err
	}
	if err := stack.start(); err != nil {
		return err
	}
	source, err := newSource(stack.work)
	if err != nil {
		return err
	}
	checks, err := os.ReadFile(config + "/flux/healthcheck.yaml")
	if err != nil {
		return err
	}
	for _, story := range stories {
		if only != "" && only != story.name {
			continue
		}
		title(story.title)
		if err := story.run(&flux{stack, source, string(checks)}); err != nil {
			return fmt.Errorf("%s: %w", story.name, err)
		}
	}
	return nil
}

func title(text string) {
	fmt.Printf("\n── %s\n", text)
}
