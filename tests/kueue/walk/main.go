// Command walk takes PerfValidations through a real Kueue on the lab: `just kueue`.
//
// Kueue's controller runs outside the cluster, in the lab's network. It acts as the lab's administrator, so the stories do
// not test Kueue's own roles.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"
)

func main() {
	controller := flag.String("controller", "", "Kueue's controller")
	module := flag.String("module", "", "folder of Kueue's module, which contains its CRDs and webhooks")
	config := flag.String("config", "", "the project's config folder")
	work := flag.String("work", "", "an empty folder for certificates and logs")
	only := flag.String("only", "", "one story only")
	flag.Parse()

	began := time.Now()
	stack := &stack{binary: *controller, module: *module, work: *work}
	code := 0
	if err := run(stack, *config, *only); err != nil {
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

func run(stack *stack, config, only string) error {
	title("install the operator and Kueue")
	if err := stack.install(config); err != nil {
		return err
	}
	if err := stack.start(); err != nil {
		return err
	}
	if err := createQueues(); err != nil {
		return err
	}
	for _, story := range stories {
		if only != "" && only != story.name {
			continue
		}
		title(story.title)
		began := time.Now()
		if err := story.run(); err != nil {
			return fmt.Errorf("%s: %w", story.name, err)
		}
		fmt.Printf("%s: %d s\n", story.name, int(time.Since(began).Seconds()))
	}
	return nil
}

func title(text string) {
	fmt.Printf("\n── %s\n", text)
}
