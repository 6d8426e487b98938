package main

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

type story struct {
	name, title string
	run         func() error
}

var stories = []story{
	{"queued", "no quota: the run is queued and not blamed; once the quota is raised, it passes", queued},
	{"evicted", "the queue is drained seconds after the start of a trial: the run ends in an Error, and nothing is measured again", evicted},
	{"unmanaged", "a queue that does not exist: the run is queued until its time-out, and the message contains the queue", unmanaged},
}

// A short benchmark takes some seconds, a long one outlasts a story.
const short, long = `requestsPerConcurrency: 4
    minRequests: 64`, "duration: 2m"

func queued() error {
	const name = "queued"
	if err := errors.Join(setCPU("0"), create(name, queue, short, "")); err != nil {
		return err
	}
	if err := follow(name, 3*time.Minute, isQueued(queue), isUndecided); err != nil {
		return err
	}
	if err := eventually(time.Minute, "Kueue holds the Job", func() error { return isHeldFor("insufficient quota for cpu") }); err != nil {
		return err
	}
	if err := staysQueued(name, 5*time.Second); err != nil {
		return err
	}
	fmt.Println("          the administrator raises the quota")
	if err := setCPU("4"); err != nil {
		return err
	}
	if err := follow(name, 3*time.Minute, hasVerdict("Passed"), anything); err != nil {
		return err
	}
	return eventually(time.Minute, "clean-up", isEmpty)
}

func evicted() error {
	const name = "evicted"
	if err := errors.Join(setCPU("4"), create(name, queue, long, "")); err != nil {
		return err
	}
	if err := follow(name, 3*time.Minute, hasStarted, isUndecided); err != nil {
		return err
	}
	fmt.Println("          the administrator drains the queue")
	if err := setStopPolicy("HoldAndDrain"); err != nil {
		return err
	}
	if err := follow(name, 3*time.Minute, hasVerdict("Error"), neverFails); err != nil {
		return err
	}
	if err := hasEnd(name, "BenchmarkFailed", "is suspended in queue "+queue+" after it had started"); err != nil {
		return err
	}
	if err := eventually(time.Minute, "clean-up", isEmpty); err != nil {
		return err
	}
	return setStopPolicy("None")
}

func unmanaged() error {
	const name, missing = "unmanaged", "nowhere"
	if err := create(name, missing, short, "total: 60s"); err != nil {
		return err
	}
	if err := follow(name, 2*time.Minute, isQueued(missing), isUndecided); err != nil {
		return err
	}
	if err := eventually(time.Minute, "Kueue holds the Job", func() error { return isHeldFor("LocalQueue " + missing + " doesn't exist") }); err != nil {
		return err
	}
	if err := follow(name, 3*time.Minute, hasVerdict("Error"), neverFails); err != nil {
		return err
	}
	if err := hasEnd(name, "DeadlineExceeded", "in queue "+missing); err != nil {
		return err
	}
	return eventually(time.Minute, "clean-up", isEmpty)
}

// isQueued expects a run that waits for a queue and is not blamed for it.
func isQueued(queue string) func(validation) error {
	return func(found validation) error {
		status := found.Status
		if status.Phase != "Benchmarking" || status.Reason != "InLine" || !strings.Contains(status.Message, "is suspended in queue "+queue) {
			return fmt.Errorf("it is %s (%s: %s)", status.Phase, status.Reason, status.Message)
		}
		if is := find(status.Conditions, "Reconciling"); is.Status != "True" || !strings.Contains(is.Message, status.Message) {
			return fmt.Errorf("Reconciling is %s (%s)", is.Status, is.Message)
		}
		if is := find(status.Conditions, "Stalled"); is.Status == "True" {
			return fmt.Errorf("Stalled is True (%s: %s)", is.Reason, is.Message)
		}
		return nil
	}
}

// staysQueued looks at a run that must wait.
func staysQueued(name string, span time.Duration) error {
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(time.Second) {
		found, err := read(name)
		if err == nil {
			err = errors.Join(isUndecided(found), isQueued(queue)(found))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hasStarted expects a Job whose pod is ready. No progress was read by then: the next pass must know of the start anyway.
func hasStarted(validation) error {
	ready, err := kubectl("", "get", "jobs", "-n", "perf", "-o", "jsonpath={.items[*].status.ready}")
	if err == nil && ready != "1" {
		err = fmt.Errorf("ready pods of Jobs: %q", ready)
	}
	return err
}

func hasVerdict(verdict string) func(validation) error {
	return func(found validation) error {
		if found.Status.Phase != "Completed" || found.Status.Verdict != verdict {
			return fmt.Errorf("it is %s %s (%s)", found.Status.Phase, found.Status.Verdict, found.Status.Message)
		}
		return nil
	}
}

// hasEnd expects a reason, and a message that contains these words.
func hasEnd(name, reason, words string) error {
	found, err := read(name)
	if err == nil && (found.Status.Reason != reason || !strings.Contains(found.Status.Message, words)) {
		err = fmt.Errorf("it ended with %s: %s", found.Status.Reason, found.Status.Message)
	}
	return err
}

func isUndecided(found validation) error {
	if found.Status.Verdict != "" {
		return fmt.Errorf("it has the verdict %s: %s", found.Status.Verdict, found.Status.Message)
	}
	return nil
}

// neverFails objects to a verdict that blames the deployment.
func neverFails(found validation) error {
	if verdict := found.Status.Verdict; verdict == "Failed" || verdict == "Inconclusive" {
		return fmt.Errorf("it is %s: %s", verdict, found.Status.Message)
	}
	return nil
}

func anything(validation) error { return nil }
