# The one vocabulary of this project. `just` alone lists it.

set shell := ["bash", "-euo", "pipefail", "-c"]

cache := env("XDG_CACHE_HOME", home_directory() / ".cache") / "perfvalidation"
export CARGO_TARGET_DIR := env("CARGO_TARGET_DIR", cache / "target")
export CARGO_BUILD_JOBS := env("CARGO_BUILD_JOBS", "2")
export PATH := env("PATH") + ":" + cache / "tools" / "bin" + ":" + cache / "deny" / "bin"

# Where a static binary comes out: an explicit target keeps build scripts dynamic.
triple := "x86_64-unknown-linux-gnu"
release := CARGO_TARGET_DIR / triple / "release"
lab := CARGO_TARGET_DIR / "debug" / "lab"
stage := justfile_directory() / ".ci" / "stage"
deny_version := "0.20.2"

# List the recipes.
default:
    @just --list --unsorted

# Show a whole run on a real cluster on this machine, ending in a printed verdict. `just demo --keep` leaves it up.
demo *FLAGS: setup build-lab image
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --quiet -p perfval-e2e --bin demo
    began=$(date +%s)
    case " {{FLAGS}} " in *" --keep "*) ;; *) trap '{{lab}} down' EXIT ;; esac
    just fresh-lab
    code=0
    {{lab}} exec --network-only -- "$CARGO_TARGET_DIR/debug/demo" --lab {{lab}} --config "$PWD/config" {{FLAGS}} || code=$?
    echo "total since lab up: $(( $(date +%s) - began )) s"
    exit $code

# Pass every test: the quick checks, then the real cluster.
test: setup
    #!/usr/bin/env bash
    set -euo pipefail
    trap wait EXIT # a failure elsewhere must not leave the others behind
    {{stage}} check just check
    # Side by side: a build links on one core, and a lab waits half of its time. Beside the checks, fuzzing made them 120 s longer.
    {{stage}} fuzz just fuzz & fuzz=$!
    {{stage}} gitops just gitops & gitops=$!
    {{stage}} lab just lab-test & lab=$!
    {{stage}} image just build-lab image
    wait $fuzz
    wait $gitops
    wait $lab
    {{stage}} admission just admission
    {{stage}} e2e just e2e

# Format, lints, dependency rules, generated files, unit tests: under two minutes once built.
check: fmt-check lint deny unit

# Unit tests of every crate; no cluster, no root.
unit *ARGS:
    @env -u PERFVAL_FUZZ_SECONDS cargo test --quiet {{ARGS}}

# Feed broken results to the parsers and broken clusters to sizing, each for PERFVAL_FUZZ_SECONDS (default: a few seconds).
fuzz:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo test --quiet --test fuzz_result --test fuzz_sizing --no-run
    cargo test --quiet --test fuzz_result -- --nocapture & result=$!
    trap 'wait $result' EXIT
    cargo test --quiet --test fuzz_sizing -- --nocapture
    wait $result

# Format the code.
fmt:
    cargo fmt --all

[private]
fmt-check:
    cargo fmt --all --check

# What sizing costs with 500 to 5,000 nodes: CPU, memory, and how they grow. Release build; prints, and asserts nothing.
bench:
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --release --target {{triple}} -p perfval-e2e --bin scale
    {{release}}/scale

# The same on a real API server with nodes of kwok, and how long a run sizes there (minutes; a lab of its own).
bench-cluster nodes="1000": build-lab image
    #!/usr/bin/env bash
    set -euo pipefail
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --release --target {{triple}} -p perfval-e2e --bin scale
    export LAB={{lab}} PERFVAL_OPERATOR={{release}}/perfvalidation-operator
    trap '{{lab}} down' EXIT
    just fresh-lab --control-plane
    {{lab}} exec --network-only -- kubectl apply --server-side -f "$PWD/config/crd/perfvalidations.perfvalidation.dev.yaml"
    {{lab}} exec --network-only -- {{release}}/scale cluster {{nodes}}

# What a line of validations costs that all wait for one node, and what it does to the run at its head (half an hour; prints, and asserts nothing).
bench-line waiting="0,1,10,100,1000": build-lab image
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --quiet -p perfval-e2e --bin line
    trap '{{lab}} down' EXIT
    just fresh-lab
    {{lab}} exec --network-only -- "$CARGO_TARGET_DIR/debug/line" --lab {{lab}} --config "$PWD/config" --waiting {{waiting}}

# What Argo CD and Flux make of a PerfValidation, by their own engines, and the examples for them (seconds; six minutes of compiling the first time).
gitops:
    #!/usr/bin/env bash
    set -euo pipefail
    for module in argocd flux; do
      cd "{{justfile_directory()}}/tests/gitops/$module"
      go vet ./...
      go test ./...
    done

# PerfValidations under a real Argo CD on the lab: what docs/gitops.md shows (a quarter of an hour; not part of `just test`). `just argocd gate` tells one story.
argocd STORY="": setup build-lab image
    #!/usr/bin/env bash
    set -euo pipefail
    command -v redis-server >/dev/null || { echo "missing Debian package; run: sudo apt-get install redis-server" >&2; exit 1; }
    work=$(mktemp --directory)
    trap '{{lab}} down; rm -rf "$work"' EXIT
    cd tests/gitops/argocd
    go build -o {{cache}}/argocd/argocd github.com/argoproj/argo-cd/v3/cmd
    go build -o {{cache}}/argocd/walk ./walk
    crds=$(go list -m -f '{{{{.Dir}}' github.com/argoproj/argo-cd/v3)/manifests/crds
    just fresh-lab
    {{lab}} exec --network-only -- {{cache}}/argocd/walk --argocd {{cache}}/argocd/argocd --crds "$crds" \
      --config "{{justfile_directory()}}/config" --work "$work" --only "{{STORY}}"

# Lint everything, warnings denied.
lint:
    cargo clippy --quiet --workspace --all-targets --all-features -- -D warnings

# Licences, bans, sources and duplicates of all dependencies; advisories where their database can be reached.
deny:
    @command -v cargo-deny >/dev/null || cargo install --quiet --locked --root {{cache}}/deny cargo-deny@{{deny_version}}
    cargo deny --log-level error check bans licenses sources
    @cargo deny --log-level off check advisories >/dev/null 2>&1 && echo "advisories: ok" || echo "advisories: not checked or findings (cargo deny check advisories)"

# Write the generated files: CRD, RBAC, reference pages.
generate:
    cargo run --quiet -p perfval-operator -- crd > config/crd/perfvalidations.perfvalidation.dev.yaml
    cargo run --quiet -p perfval-operator -- rbac --directory config/rbac
    cargo run --quiet -p perfval-operator -- docs > docs/reference.md
    cargo run --quiet -p perfval-operator -- docs causes > docs/causes.md

# Build the operator's and the runner's static release binaries.
image:
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --target {{triple}} -p perfval-operator -p perfval-runner

# Build the lab.
build-lab:
    cargo build --quiet -p mock-nvml -p perfval-lab

# Bring the lab's cluster up and load the operator's image; `just lab-up --control-plane` for the control plane only.
lab-up *FLAGS: setup build-lab image
    @just fresh-lab {{FLAGS}}

# A lab with the operator's image and nothing of a lab that an interrupted run left behind.
[private]
fresh-lab *FLAGS:
    @{{lab}} down
    @{{lab}} up {{FLAGS}}
    @[ "{{FLAGS}}" = --control-plane ] || {{lab}} load-image "$({{lab}} image operator {{release}}/perfvalidation-operator {{release}}/perfval-runner)"

# End the lab and remove every trace of it.
lab-down:
    @[ -x {{lab}} ] || just build-lab
    {{lab}} down

# Tests of the lab itself: it comes up, reports deaths, and leaves nothing behind.
lab-test: build-lab
    cargo test --quiet --workspace --test lab --test driver_root -- --ignored --test-threads 1

# The stand-in for Dynamo's operator and the images, on their own (two to four minutes more).
lab-test-parts: build-lab
    cargo test --quiet --workspace --test dynamo --test images -- --ignored --test-threads 1

# Against a real API server: the CRD, what the fake API server of other tests claims about it, and a little of the oracle.
admission: build-lab
    #!/usr/bin/env bash
    set -euo pipefail
    cargo test --quiet --workspace --test admission --test api_server --no-run # and the package's programs: the oracle
    trap '{{lab}} down' EXIT
    just fresh-lab --control-plane
    for name in admission api_server; do
      {{lab}} exec -- "$(just test-binary $name)" --ignored
    done
    {{lab}} exec -- "$CARGO_TARGET_DIR/debug/oracle" --clusters 30 --seed 200

# Sizing against the real scheduler on random clusters (minutes); `just oracle --seed S --clusters 1` repeats the one of seed S.
oracle *FLAGS: build-lab
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --quiet -p perfval-e2e --bin oracle
    trap '{{lab}} down' EXIT
    just fresh-lab --control-plane
    {{lab}} exec -- "$CARGO_TARGET_DIR/debug/oracle" {{FLAGS}}

# Whole runs on the real cluster, in two labs side by side; `just e2e NAME` runs the tests whose name holds NAME.
e2e NAME="": build-lab image
    #!/usr/bin/env bash
    # A run waits half of its time: two labs take 330 s for what takes one 680 s. A test that fails is run once more, alone on
    # a fresh lab, and reported: two cores under load, and a simulated engine that may hang, are not the product.
    set -euo pipefail
    cargo test --quiet --workspace --test e2e --no-run
    export LAB={{lab}} PERFVAL_CONFIG="$PWD/config" PERFVAL_OPERATOR={{release}}/perfvalidation-operator
    export TESTS=$(just test-binary e2e) LABS=/var/lib/perfval-e2e PASSED=$(mktemp)
    trap 'for lab in 0 1; do PERFVAL_LAB_DIR=$LABS-$lab {{lab}} down; done; rm -f "$PASSED"' EXIT
    names=$("$TESTS" --list --format terse --ignored {{NAME}} | sed -n 's/: test$//p' | sort -r)
    [ -n "$names" ] || { echo "no test has {{NAME}} in its name" >&2; exit 1; }
    labs=$(( $(wc -l <<< "$names") > 1 ? 2 : 1 ))
    for lab in $(seq 0 $((labs - 1))); do PERFVAL_LAB_DIR=$LABS-$lab just fresh-lab; done
    xargs --max-procs=$labs --max-args=1 --process-slot-var=SLOT just e2e-test <<< "$names" || true
    left() { grep -vxFf "$PASSED" <<< "$names"; }
    again=$(left) || exit 0
    echo "FAILED ONCE, running again:" $again
    for lab in 0 1; do PERFVAL_LAB_DIR=$LABS-$lab {{lab}} down; done
    PERFVAL_LAB_DIR=$LABS-0 just fresh-lab
    SLOT=0 xargs --max-args=1 just e2e-test <<< "$again" || true
    ! left

[private]
e2e-test NAME:
    #!/usr/bin/env bash
    export PERFVAL_LAB_DIR=$LABS-$SLOT
    if output=$($LAB exec --network-only -- "$TESTS" --ignored --exact {{NAME}} --nocapture 2>&1); then
      echo {{NAME}} >> "$PASSED"
      echo "{{NAME}} ... ok, $SECONDS s"
    else
      echo "$output"
      echo "{{NAME}} ... FAILED, $SECONDS s"
    fi

# How often the verdict is right, into docs/fidelity.md: every router and fault on the lab (two hours in steps of 40 minutes; `--replay-only`: seconds).
fidelity *FLAGS:
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --quiet -p perfval-fidelity --bin fidelity
    fidelity=$CARGO_TARGET_DIR/debug/fidelity
    if [ "{{FLAGS}}" = --replay-only ]; then "$fidelity"; exit; fi
    just build-lab image
    record={{cache}}/fidelity.jsonl
    trap '{{lab}} down' EXIT
    just fresh-lab
    {{lab}} exec --network-only -- "$fidelity" --lab {{lab}} --config "$PWD/config" --record "$record" \
      --pack --runs "$PWD/tests/fidelity/recorded.jsonl.gz" --page "$PWD/docs/fidelity.md" {{FLAGS}}
    rm "$record"

# The same for the faults of the engines only, without a cluster and without root: `just fidelity-rig [ROUTER…]`.
fidelity-rig *ROUTERS: setup
    #!/usr/bin/env bash
    set -euo pipefail
    cargo build --quiet -p perfval-runner -p perfval-fidelity --bin perfval-runner --bin fidelity
    rig={{cache}}/rig
    for name in dynamo-1.4.2 aiperf-0.13.0; do
      [ -e "$rig/$name/installed" ] && continue
      uv venv --quiet --clear --python 3.11 "$rig/$name"
      uv pip install --quiet --python "$rig/$name/bin/python" -r tests/lab/images/$name.txt
      touch "$rig/$name/installed"
    done
    corpus=$(echo "$rig"/aiperf-0.13.0/lib/python*/site-packages/aiperf/dataset/generator/assets/shakespeare.txt)
    [ -d "$rig/model" ] || "$rig/dynamo-1.4.2/bin/python" tests/lab/images/tiny_qwen3.py "$corpus" "$rig/model"
    rm -f "$rig/recorded.jsonl"
    python3 tests/fidelity/rig.py --dynamo "$rig/dynamo-1.4.2" --aiperf "$rig/aiperf-0.13.0" --model-cache "$rig/model" \
      --runner "$CARGO_TARGET_DIR/debug/perfval-runner" --work "$rig/work" --record "$rig/recorded.jsonl" {{ROUTERS}}
    "$CARGO_TARGET_DIR/debug/fidelity" --rig "$rig/recorded.jsonl" --pack

# Ten validations at once on one node, one after the other in their order: five minutes, and not part of `just test`.
races: build-lab image
    #!/usr/bin/env bash
    set -euo pipefail
    cargo test --quiet --workspace --test races --no-run
    export LAB={{lab}} PERFVAL_CONFIG="$PWD/config"
    trap '{{lab}} down' EXIT
    just fresh-lab
    {{lab}} exec --network-only -- "$(just test-binary races)" --ignored --nocapture

[private]
test-binary NAME:
    @cargo test --quiet --workspace --test {{NAME}} --no-run --message-format json 2>/dev/null | python3 -c 'import json,sys; print([m["executable"] for m in map(json.loads, sys.stdin) if m.get("executable") and m["target"]["name"] == "{{NAME}}"][-1])'

# Install what is missing: Debian's packages (as root, or it prints the command) and uv.
setup:
    #!/usr/bin/env bash
    set -euo pipefail
    packages="build-essential ca-certificates git procps mount iproute2 iptables conntrack ethtool socat kmod runc containernetworking-plugins debootstrap busybox-static"
    missing=$(for package in $packages; do dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || echo "$package"; done)
    if [ -n "$missing" ]; then
      if [ "$(id -u)" -eq 0 ]; then
        echo "installing: $(echo $missing)"
        apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
      else
        echo "missing Debian packages; run: sudo apt-get install $(echo $missing)" >&2; exit 1
      fi
    fi
    for program in cargo go python3; do
      command -v $program >/dev/null || { echo "$program is missing: install Rust (rustup), Go 1.26.8 and Python 3.11 first" >&2; exit 1; }
    done
    go=$(GOTOOLCHAIN=local go env GOVERSION | sed 's/^go//')
    [ "$(printf '%s\n' 1.26.8 "$go" | sort -V | head -n 1)" = 1.26.8 ] || { echo "Go $go is too old: install 1.26.8 or newer" >&2; exit 1; }
    if ! command -v uv >/dev/null; then
      [ -x {{cache}}/tools/bin/pip ] || python3 -m venv {{cache}}/tools
      {{cache}}/tools/bin/pip install --quiet uv
    fi

# The lab's own command: `just lab status`, `just lab fault --help`, `just lab logs kubelet`.
lab *ARGS:
    @{{lab}} {{ARGS}}

# Run a command inside the lab: `just lab-exec kubectl get pods -A`.
lab-exec +COMMAND:
    @{{lab}} exec -- {{COMMAND}}
