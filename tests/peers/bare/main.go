// A bare operator on controller-runtime, for `just bench-peers`: for each new object it writes what it is asked to write, and
// then waits. It decides nothing, so what it costs is what the framework costs.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Kind is what it watches; its definition is in crd.yaml.
var Kind = schema.GroupVersionKind{Group: "peers.perfvalidation.dev", Version: "v1", Kind: "Bare"}

const finalizer = "peers.perfvalidation.dev/bare"

// Bare writes as often as it is told to.
type Bare struct {
	client.Client
	recorder events.EventRecorder
	// Statuses and events of each new object.
	statuses, events int
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bare:", err)
		os.Exit(1)
	}
}

func run() error {
	bare := &Bare{}
	metrics := flag.String("metrics-addr", "127.0.0.1:0", "address of /metrics")
	probes := flag.String("health-addr", "127.0.0.1:0", "address of /readyz")
	flag.IntVar(&bare.statuses, "statuses", 1, "writes of the status for each new object")
	flag.IntVar(&bare.events, "events", 0, "events for each new object")
	flag.Parse()
	ctrl.SetLogger(zap.New())

	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), manager.Options{
		Metrics:                server.Options{BindAddress: *metrics},
		HealthProbeBindAddress: *probes,
	})
	if err != nil {
		return err
	}
	bare.Client = manager.GetClient()
	bare.recorder = manager.GetEventRecorder("bare")
	if err := ctrl.NewControllerManagedBy(manager).For(object()).Named("bare").Complete(bare); err != nil {
		return err
	}
	// Ready, as the other two, once its cache is filled.
	if err := manager.AddReadyzCheck("cache", filled(manager)); err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// filled says no until the informer's first list is there.
func filled(manager manager.Manager) healthz.Checker {
	return func(request *http.Request) error {
		soon, cancel := context.WithTimeout(request.Context(), 100*time.Millisecond)
		defer cancel()
		if !manager.GetCache().WaitForCacheSync(soon) {
			return errors.New("the cache is being filled")
		}
		return nil
	}
}

// Reconcile writes once for each object that it has not seen: the finalizer, the statuses, the events.
func (bare *Bare) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	seen := object()
	if err := bare.Get(ctx, request.NamespacedName, seen); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if seen.GetDeletionTimestamp() != nil {
		before := seen.DeepCopy()
		controllerutil.RemoveFinalizer(seen, finalizer)
		return ctrl.Result{}, client.IgnoreNotFound(bare.Patch(ctx, seen, client.MergeFrom(before)))
	}
	done, _, err := unstructured.NestedInt64(seen.Object, "status", "writes")
	if err != nil || int(done) >= bare.statuses {
		return ctrl.Result{}, err
	}
	if done == 0 && !controllerutil.ContainsFinalizer(seen, finalizer) {
		before := seen.DeepCopy()
		controllerutil.AddFinalizer(seen, finalizer)
		if err := bare.Patch(ctx, seen, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, err
		}
	}
	for number := int(done); number < bare.statuses; number++ {
		before := seen.DeepCopy()
		if err := unstructured.SetNestedField(seen.Object, int64(number+1), "status", "writes"); err != nil {
			return ctrl.Result{}, err
		}
		if err := bare.Status().Patch(ctx, seen, client.MergeFrom(before)); err != nil {
			return ctrl.Result{}, err
		}
	}
	for number := 0; number < bare.events; number++ {
		bare.recorder.Eventf(seen, nil, corev1.EventTypeNormal, fmt.Sprintf("Wrote%d", number), "Write", "event %d", number)
	}
	return ctrl.Result{}, nil
}

func object() *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(Kind)
	return object
}
