# The one vocabulary of this project. `just` alone lists it.

set shell := ["bash", "-euo", "pipefail", "-c"]

cache := env("XDG_CACHE_HOME", home_directory() / ".cache") / "perfvalidation"
export CARGO_TARGET_DIR := env("CARGO_TARGET_DIR", cache / "target")
export CARGO_BUILD_JOBS := env("CARGO_BUILD_JOBS", "2")
export PATH := env("PATH") + ":" + cache / "tools" / "bin" + ":" + cache / "deny" / "bin" + ":" + cache / "mdbook" / "bin" + ":" + cache / "release-tools" / "bin" + ":" + product

# Where a static binary comes out: an explicit target keeps build scripts dynamic.
triple := "x86_64-unknown-linux-gnu"
release := CARGO_TARGET_DIR / triple / "release"
debug := CARGO_TARGET_DIR / "debug"
lab := debug / "lab"
# The product's programs as the last recipe built them: optimised ones by `binaries`, debug builds for the demo.
product := cache / "product"
suite := debug / "suite --debug " + debug + " --release " + product
prepare := "python3 -B " + justfile_directory() / "tests/lab/prepare/prepare.py --cache " + cache + " --target " + CARGO_TARGET_DIR
# Lints, tests and the lab's programs come from one build.
one_build := "RUSTC_WORKSPACE_WRAPPER=" + quote(justfile_directory() / "tests/lab/prepare/lint-and-build")
tests := one_build + " cargo test --workspace"
stage := justfile_directory() / ".ci" / "stage"
deny_version := "0.20.2"
mdbook_version := "0.5.4"
cyclonedx_version := "0.5.9"
about_version := "0.9.3"
check_jsonschema_version := "0.39.0"
actionlint_version := "v1.7.7"
argo_workflows_version := "v3.7.3"
tekton_version := "v1.5.0"
jobset_version := "v0.10.1"

# List the recipes.
default:
    @just --list --unsorted

# Show a whole run on a real cluster on this machine, ending in a printed verdict. `just demo --keep` leaves it up.
[no-exit-message]
demo *FLAGS:
    @{{prepare}}
    @{{suite}} demo {{FLAGS}}

# Pass every test: lints, then the real cluster beside the unit tests.
test: setup (test-stage "check" "fmt-check" "lint" "deny") debug-product test-built test-beside

[private]
test-stage NAME +ARGS:
    @{{stage}} {{NAME}} just {{ARGS}}

# The library of the simulated driver has one name in two builds, so nothing is built beside its users.
[private]
test-built:
    @{{tests}} --quiet --no-run

# Labs and whole runs pass with one of two cores kept busy. The unit tests stay on one and give way. Four run at once,
# because many wait.
[private]
[parallel]
test-beside: test-cluster test-unit

# One lab at a time. After it the unit tests get every core.
[private]
test-cluster: test-together (test-stage "e2e" "--no-deps" "e2e") test-spread

[private]
test-spread:
    @.ci/spread {{just_pid()}}

# A lab waits half of its time.
[private]
[parallel]
test-together: (test-stage "fuzz" "fuzz") (test-stage "gitops" "gitops") (test-stage "alerts" "alerts") test-labs

[private]
test-labs: (test-stage "lab" "--no-deps" "lab-test") (test-stage "admission" "--no-deps" "admission")

[private]
test-unit:
    @RUST_TEST_THREADS=4 nice -n 19 taskset --cpu-list "$(python3 -c 'import os; print(max(os.sched_getaffinity(0)))')" {{stage}} unit just unit

# Format, lints, dependency rules, generated files, unit tests.
check: fmt-check lint deny unit

# Unit tests of every crate; no cluster, no root.
unit *ARGS:
    @env -u PERFVAL_FUZZ_SECONDS {{ if ARGS == "" { tests + " --quiet" } else { "cargo test --quiet " + ARGS } }}

# Unit tests as programs for arm64, under qemu-user: of the crates that decide and judge, and start no other program (not part of `just test`).
arm64 *CRATES="api sizing verdict run fleet report":
    #!/usr/bin/env bash
    set -euo pipefail
    for program in qemu-aarch64 aarch64-linux-gnu-gcc; do
        command -v "$program" >/dev/null || { echo "missing Debian packages; run: sudo apt-get install qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross" >&2; exit 1; }
    done
    target=aarch64-unknown-linux-gnu
    rustup --quiet target add "$target"
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
    export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu"
    packages=(); for crate in {{CRATES}}; do packages+=(--package "perfval-$crate"); done
    cargo test --quiet --target "$target" "${packages[@]}"

# Worlds in full: the operator stopped at every write of every scenario, every call wrong in every way, two operators, a thousand random worlds (a quarter of an hour on four cores, and six minutes of building the first time; `just check` plays a sample, always the same). What fails prints the PERFVAL_SEED that plays it again.
worlds COUNT="1000":
    PERFVAL_WORLDS={{COUNT}} cargo test --quiet --profile worlds -p perfval-operator --test worlds -- --nocapture

# Feed broken results to the parsers and broken clusters to sizing, each for PERFVAL_FUZZ_SECONDS (default: a fixed number of inputs). The same ones each time: PERFVAL_FUZZ_SEED=$RANDOM tries others.
[parallel]
fuzz: (fuzz-test "fuzz_result") (fuzz-test "fuzz_sizing")

# Fuzz the parsers by coverage with libFuzzer (Debian's g++), so many seconds for each target; what reaches something new joins tests/fuzz/corpus, and an input that breaks a promise is left in the folder that is named.
fuzz-coverage SECONDS="600" TARGETS="export frame exposition quantity saved log trial":
    #!/usr/bin/env bash
    set -euo pipefail
    export RUSTFLAGS="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
    target={{CARGO_TARGET_DIR}}/fuzz work={{cache}}/fuzz corpus={{justfile_directory()}}/tests/fuzz/corpus
    env -u RUSTFLAGS cargo run --quiet -p perfval-fuzz --example seeds -- "$work/seeds"
    # With a target of its own, build scripts and macros stay without coverage.
    cargo build --quiet --release --manifest-path tests/fuzz/coverage/Cargo.toml --target-dir "$target" --target {{triple}}
    for name in {{TARGETS}}; do
      export PERFVAL_FUZZ_TARGET=$name
      mkdir -p "$work/found/$name" "$work/broken" "$work/small" "$corpus/$name"
      fuzz() { "$target/{{triple}}/release/perfval-fuzz-coverage" -timeout=5 -rss_limit_mb=1024 -max_len=65536 -artifact_prefix="$work/broken/$name-" "$@"; }
      if ! fuzz -max_total_time={{SECONDS}} -print_final_stats=1 "$work/found/$name" "$corpus/$name" "$work/seeds/$name" >"$work/$name.log" 2>&1; then
        tail -n 40 "$work/$name.log"
        exit 1
      fi
      echo "$name: $(sed -n 's/^stat::number_of_executed_units: *//p' "$work/$name.log") inputs tried"
      # The fewest inputs that together reach everything.
      rm -rf "$work/small/$name" && mkdir "$work/small/$name"
      fuzz -set_cover_merge=1 -use_counters=0 -max_len=4096 "$work/small/$name" "$corpus/$name" "$work/found/$name" "$work/seeds/$name" 2>"$work/$name-merge.log"
      rm -rf "${corpus:?}/$name" && cp -r "$work/small/$name" "$corpus/$name"
    done

[private]
fuzz-test NAME:
    @{{tests}} --quiet --test {{NAME}} -- --nocapture

# Format the code.
fmt:
    cargo fmt --all

[private]
fmt-check:
    cargo fmt --all --check

[private]
scale-program:
    RUSTFLAGS="-C target-feature=+crt-static" cargo build --quiet --release --target {{triple}} -p perfval-e2e --bin scale

# What sizing costs with 500 to 5,000 nodes: CPU, memory, and how they grow. Release build; prints, and asserts nothing.
bench: scale-program
    {{release}}/scale

# What 5,000 validations on 5,000 nodes cost the operator's program in the memory of its pod, 50 of them at once: a stub of the API server, as root (minutes; prints a table, and asserts nothing). `just bench-crowd 1000 1000 256` for other numbers of nodes and validations, and MiB.
bench-crowd *SIZE: binaries scale-program
    {{release}}/scale crowd {{product}}/perfvalidation-operator {{SIZE}}

# One policy over so many nodes whose runs are played, with faults: coverage, requests, memory, CPU and outliers beside the goals; the same stub, as root (5,000 take an hour; fails if a node is measured twice at a time or a validation stays). Ctrl-C prints the table so far. `just fleet 5000 1 100`: at the usual speed, until 100 nodes have a verdict; `just fleet 5000 0.33 100`: with runs of eight minutes.
fleet nodes="5000" speedup="20" enough=nodes: binaries scale-program
    {{release}}/scale fleet {{product}}/perfvalidation-operator {{nodes}} {{speedup}} {{enough}}

# The same on a control plane of the lab: etcd, API server, controllers and scheduler are real, and kwok has the nodes (1,000 take three quarters of an hour on two cores, most of it the control plane's).
fleet-lab nodes="1000" speedup="8" enough=nodes: build-lab binaries scale-program
    @{{suite}} fleet {{nodes}} {{speedup}} {{enough}}

# A tenant who writes the worst that it may, for so many minutes, beside a run of another tenant; the same stub.
bench-tenant minutes="30": binaries scale-program
    {{release}}/scale tenant {{product}}/perfvalidation-operator {{minutes}}

# What `just bench` shows, on a real API server with nodes of kwok, and how long a run sizes there (minutes; a lab of its own).
bench-cluster nodes="1000": build-lab binaries scale-program
    @{{suite}} scale {{nodes}}

# What a line of validations costs that all wait for one node, and what it does to the run at its head (half an hour; prints, and asserts nothing).
bench-line waiting="0,1,10,100,1000": build-lab binaries
    @{{suite}} line {{waiting}}

# The operator beside AIPerf's own (kopf) and a bare one on controller-runtime, one after the other on one lab: reaction, API calls, memory, CPU, size, restart (half an hour; prints a table, and asserts nothing).
bench-peers objects="100": setup build-lab binaries
    #!/usr/bin/env bash
    set -euo pipefail
    export PATH="{{cache}}/tools/bin:$PATH"
    peers="{{cache}}/peers"
    if ! [ -x "$peers/aiperf/bin/kopf" ]; then
      uv venv --quiet --clear --python 3.11 "$peers/aiperf"
      uv pip install --quiet --python "$peers/aiperf" --no-deps --require-hashes --requirement deploy/images/aiperf-0.13.0.txt
    fi
    (cd tests/peers/bare && go vet . && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$peers/bare" .)
    jobset=$(GOFLAGS=-mod=mod go mod download -json sigs.k8s.io/jobset@{{jobset_version}} | sed -n 's/^\s*"Dir": "\(.*\)",$/\1/p')
    {{suite}} peers --files "$peers" --jobset "$jobset/config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml" {{objects}}

# What Argo CD and Flux make of a PerfValidation, by their own engines, and the examples for them (seconds; six minutes of compiling the first time).
gitops:
    #!/usr/bin/env bash
    set -euo pipefail
    for module in argocd flux; do
      cd "{{justfile_directory()}}/tests/gitops/$module"
      go vet ./...
      # A cached result of Go does not notice a change under config/.
      go test -count=1 ./...
    done

# PerfValidations under a real Argo CD on the lab: what docs/evidence/gitops.md shows (a quarter of an hour; not part of `just test`). `just argocd gate` runs one story.
argocd STORY="": setup build-lab binaries
    #!/usr/bin/env bash
    set -euo pipefail
    command -v redis-server >/dev/null || { echo "missing Debian package; run: sudo apt-get install redis-server" >&2; exit 1; }
    work=$(mktemp --directory)
    trap 'rm -rf "$work"' EXIT
    cd tests/gitops/argocd
    go build -o {{cache}}/argocd/argocd github.com/argoproj/argo-cd/v3/cmd
    go build -o {{cache}}/argocd/walk ./walk
    crds=$(go list -m -f '{{{{.Dir}}' github.com/argoproj/argo-cd/v3)/manifests/crds
    {{suite}} up
    trap '{{lab}} down; rm -rf "$work"' EXIT
    {{lab}} exec --network-only -- {{cache}}/argocd/walk --argocd {{cache}}/argocd/argocd --crds "$crds" \
      --config "{{justfile_directory()}}/config" --work "$work" --only "{{STORY}}"

# PerfValidations under a real kustomize-controller of Flux on the lab: what docs/evidence/gitops.md shows (five minutes; not part of `just test`). `just flux fit` runs one story.
flux STORY="": setup build-lab binaries
    #!/usr/bin/env bash
    set -euo pipefail
    work=$(mktemp --directory)
    trap 'rm -rf "$work"' EXIT
    (cd tests/gitops/kustomize-controller && go build -trimpath -ldflags "-s -w" -o {{cache}}/flux/kustomize-controller github.com/fluxcd/kustomize-controller)
    cd tests/gitops/flux
    go build -o {{cache}}/flux/walk ./walk
    folder() { go mod download -json "$1" | sed -n 's/^\s*"Dir": "\(.*\)",$/\1/p'; }
    crds="$(folder github.com/fluxcd/kustomize-controller@v1.9.5)/config/crd/bases/kustomize.toolkit.fluxcd.io_kustomizations.yaml"
    # It watches every kind of source, used or not.
    for kind in externalartifacts gitrepositories ocirepositories buckets; do
        crds="$crds,$(folder github.com/fluxcd/source-controller@v1.9.6)/config/crd/bases/source.toolkit.fluxcd.io_$kind.yaml"
    done
    {{suite}} up
    trap '{{lab}} down; rm -rf "$work"' EXIT
    {{lab}} exec --network-only -- {{cache}}/flux/walk --controller {{cache}}/flux/kustomize-controller --crds "$crds" \
      --config "{{justfile_directory()}}/config" --work "$work" --only "{{STORY}}"

# PerfValidations whose Jobs wait in a queue of a real Kueue on the lab: queued, drained during a trial, and in a queue that does not exist (three minutes, and eight more for the first build of Kueue; not part of `just test`). `just kueue queued` runs one story.
kueue STORY="": setup build-lab binaries
    #!/usr/bin/env bash
    set -euo pipefail
    work=$(mktemp --directory)
    trap 'rm -rf "$work"' EXIT
    cd tests/kueue
    go vet ./...
    go build -trimpath -ldflags "-s -w" -o {{cache}}/kueue/kueue sigs.k8s.io/kueue/cmd/kueue
    go build -o {{cache}}/kueue/walk ./walk
    module=$(go list -m -f '{{{{.Dir}}' sigs.k8s.io/kueue)
    {{suite}} up
    trap '{{lab}} down; rm -rf "$work"' EXIT
    {{lab}} exec --network-only -- {{cache}}/kueue/walk --controller {{cache}}/kueue/kueue --module "$module" \
      --config "{{justfile_directory()}}/config" --work "$work" --only "{{STORY}}"

# Lint everything, warnings denied.
lint:
    #!/usr/bin/env bash
    set -euo pipefail
    # Cargo shows the warnings of earlier builds again.
    shown=$(CARGO_TERM_COLOR=never {{tests}} --quiet --no-run 2>&1 >/dev/null | tee /dev/stderr)
    ! grep -q '^warning' <<<"$shown"

# Licences, bans, sources, duplicates and advisories of all dependencies. Advisories are skipped only where their database cannot be reached, and never in a workflow.
deny:
    #!/usr/bin/env bash
    set -euo pipefail
    command -v cargo-deny >/dev/null || cargo install --quiet --locked --root {{cache}}/deny cargo-deny@{{deny_version}}
    cargo deny --log-level error check bans licenses sources
    if cargo deny --log-level off fetch db >/dev/null 2>&1; then
      cargo deny --offline --log-level error check advisories
    elif [ "${GITHUB_ACTIONS:-}" = true ]; then
      echo "advisories: their database cannot be reached" >&2
      exit 1
    else
      echo "advisories: not checked, because their database cannot be reached"
    fi

# The chart and the folders under config/: rendered, linted, compared with each other. Part of `just check`.
chart:
    cargo test --quiet -p perfval-chart

# Every alert fires when it should and only then, by promtool.
alerts: prometheus
    {{tests}} --quiet --test alerts -- --ignored

# Prometheus and promtool out of Debian's package: installing it would start a Prometheus.
[private]
prometheus:
    #!/usr/bin/env bash
    set -euo pipefail
    bin={{cache}}/tools/bin
    [ -x "$bin/prometheus" ] && [ -x "$bin/promtool" ] && exit
    mkdir -p "$bin" && cd "$(mktemp -d)"
    apt-get download -qq -o APT::Sandbox::User=root prometheus || { apt-get update -qq && apt-get download -qq -o APT::Sandbox::User=root prometheus; }
    dpkg -x prometheus_*.deb . && cp usr/bin/prometheus usr/bin/promtool "$bin/"

# The report's page in a real Chromium: quiet, readable, light and dark, 400 px wide, on paper (half a minute; not part of `just test`: Debian's chromium has 300 MB). `just report-browser FOLDER` keeps pictures of it.
report-browser FOLDER="":
    #!/usr/bin/env bash
    set -euo pipefail
    if ! command -v chromium >/dev/null; then
      [ "$(id -u)" -eq 0 ] || { echo "missing Debian packages; run: sudo apt-get install chromium fonts-dejavu-core" >&2; exit 1; }
      apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null
    fi
    REPORT_SCREENSHOTS="{{FOLDER}}" cargo test --quiet -p perfval-report --test report -- --ignored --test-threads 1 browser

# The sessions of docs/evidence/sessions.md, taken anew on a fresh lab into FOLDER: healthy, with a slow GPU, broken (eight minutes; not part of `just test`).
sessions FOLDER: setup build-lab binaries
    #!/usr/bin/env bash
    set -euo pipefail
    mkdir -p "{{FOLDER}}"
    export PERFVAL_SESSIONS=$(realpath "{{FOLDER}}")
    cargo test --quiet -p perfval-cli --test cli --no-run
    trap '{{lab}} down' EXIT
    {{suite}} up
    take() { {{lab}} exec --network-only -- cargo test --quiet -p perfval-cli --test cli -- --ignored --exact "cli::sessions::$1"; }
    take without_an_operator
    {{lab}} exec --network-only -- kubectl apply --server-side -k config/lab
    {{lab}} exec --network-only -- kubectl rollout status -n perfvalidation-system deployment/perfvalidation-operator --timeout=120s
    {{lab}} exec --network-only -- kubectl create namespace perf
    {{lab}} exec --network-only -- kubectl create rolebinding perfvalidation -n perf --clusterrole perfvalidation-operator-runs --serviceaccount perfvalidation-system:perfvalidation-operator
    take healthy
    gpu=$({{lab}} exec --network-only -- kubectl get perfval small -n perf -o "jsonpath={.status.placement.devices[0].name}")
    {{lab}} fault slow-gpu "${gpu#gpu-}" 0.4
    take slow
    {{lab}} fault clear
    take broken

# The reports of recorded runs, healthy, slow and broken, in a folder: what the page looks like.
report-samples FOLDER:
    cargo run --quiet -p perfval-report --example recorded -- "{{FOLDER}}"

# The examples under config/pipelines against the schemas that their tools publish (a minute; not part of `just test`: it asks two registries).
pipelines: setup
    #!/usr/bin/env bash
    set -euo pipefail
    export PATH="{{cache}}/tools/bin:$PATH" PIPELINE_SCHEMAS="$(mktemp --directory)"
    trap 'rm -rf "$PIPELINE_SCHEMAS"' EXIT
    go run github.com/rhysd/actionlint/cmd/actionlint@{{actionlint_version}} -ignore 'label "cluster" is unknown' .github/workflows/*.yaml config/pipelines/github-actions.yaml
    uv venv --quiet "$PIPELINE_SCHEMAS/venv"
    uv pip install --quiet --python "$PIPELINE_SCHEMAS/venv" check-jsonschema=={{check_jsonschema_version}}
    cp "$PIPELINE_SCHEMAS"/venv/lib/python3*/site-packages/check_jsonschema/builtin_schemas/vendor/{github-workflows,gitlab-ci}.json "$PIPELINE_SCHEMAS"
    module() { GOFLAGS=-mod=mod go mod download -json "$1" | sed -n 's/^\s*"Dir": "\(.*\)",$/\1/p'; }
    cp "$(module github.com/argoproj/argo-workflows/v3@{{argo_workflows_version}})/manifests/base/crds/full/argoproj.io_workflowtemplates.yaml" "$PIPELINE_SCHEMAS"
    tekton="$(module github.com/tektoncd/pipeline@{{tekton_version}})"
    cp "$tekton/config/300-crds/300-task.yaml" "$tekton/config/300-crds/300-pipeline.yaml" "$PIPELINE_SCHEMAS"
    cargo test --quiet -p perfval-report --test report -- --ignored schemas_of_their_tools

# Write the generated files: CRD, RBAC, reference pages, and the chart's copies.
generate:
    cargo run --quiet -p perfval-generate

# Build the documentation as a book: target/book/index.html.
book:
    @command -v mdbook >/dev/null || cargo install --quiet --locked --root {{cache}}/mdbook --no-default-features --features search mdbook@{{mdbook_version}}
    mdbook build

# Write a version into every file that has one: `just version 0.1.0` before a release, `just version 0.2.0-dev` after it.
version VERSION:
    cargo run --quiet -p perfval-release -- {{VERSION}} --write

# Write a release into dist/: chart, manifests, CRD, programs, what they are made of, licences, checksums.
release version *FLAGS:
    @command -v cargo-cyclonedx >/dev/null || cargo install --quiet --locked --root {{cache}}/release-tools cargo-cyclonedx@{{cyclonedx_version}}
    @command -v cargo-about >/dev/null || cargo install --quiet --locked --root {{cache}}/release-tools --features cli cargo-about@{{about_version}}
    cargo run --quiet -p perfval-release -- {{version}} {{FLAGS}}

# Build the static release binaries: the operator, the runner, the kubectl plug-in.
binaries:
    PERFVAL_REVISION="${PERFVAL_REVISION:-$(git rev-parse --short=12 HEAD 2>/dev/null || true)}" RUSTFLAGS="-C target-feature=+crt-static" cargo build --release --target {{triple}} -p perfval-operator -p perfval-runner -p perfval-cli
    @ln -sfn {{release}} {{product}}

# Build the lab, and what runs programs and tests on fresh ones.
build-lab:
    @[ -x {{lab}} ] || echo "building tests and the lab's programs: silent, and some minutes the first time"
    @{{tests}} --quiet --no-run
    @{{one_build}} cargo build --quiet -p mock-nvml --lib

# The product's programs as tests use them: a release build took five minutes more.
[private]
debug-product: build-lab
    @ln -sfn {{debug}} {{product}}

# Bring the lab's cluster up and load the operator's image; `just lab-up --control-plane` for the control plane only, and other flags of `just lab up --help`.
lab-up *FLAGS:
    @{{prepare}} {{FLAGS}}
    @{{suite}} up {{FLAGS}}

# End the lab and remove every trace of it.
lab-down:
    @[ -x {{lab}} ] || just build-lab
    {{lab}} down

# Tests of the lab itself: it comes up, reports deaths, and leaves nothing behind.
lab-test: build-lab
    {{tests}} --quiet --test lab --test driver_root -- --ignored --test-threads 1

# The stand-in for Dynamo's operator and the images, on their own (two to four minutes more).
lab-test-parts: build-lab
    {{tests}} --quiet --test dynamo --test images -- --ignored --test-threads 1

# Against a real API server: the CRD, what the fake API server of other tests claims about it, and a little of the oracle.
admission: build-lab
    @{{suite}} admission

# Sizing against the real scheduler on random clusters (minutes); `just oracle --seed S --clusters 1` repeats the one of seed S.
oracle *FLAGS: build-lab
    @{{suite}} oracle -- {{FLAGS}}

# Whole runs on the real cluster; `just e2e NAME` runs the tests whose name holds NAME.
e2e NAME="": debug-product
    @{{suite}} runs {{NAME}}

# All whole runs, also those that take long (an hour on two cores, not part of `just test`).
e2e-all: build-lab binaries
    @{{suite}} runs --all

# How often the verdict is right, into docs/evidence/fidelity.md: every router and fault on the lab (two hours in steps of 40 minutes; `--replay-only`: seconds).
fidelity *FLAGS:
    @just {{ if FLAGS == "--replay-only" { "fidelity-replay" } else { "fidelity-record " + FLAGS } }}

[private]
fidelity-replay:
    @cargo run --quiet -p perfval-fidelity --bin fidelity

[private]
fidelity-record *FLAGS: build-lab binaries
    @{{suite}} fidelity --record {{cache}}/fidelity.jsonl -- {{FLAGS}}

# The same for the faults of the engines only, without a cluster and without root: `just fidelity-rig [ROUTER…]`.
fidelity-rig *ROUTERS: setup
    cargo build --quiet -p perfval-runner -p perfval-fidelity --bin perfval-runner --bin fidelity
    @python3 tests/fidelity/rig/simulated.py --cache {{cache}}/rig --runner {{debug}}/perfval-runner {{ROUTERS}}
    @{{debug}}/fidelity --add {{cache}}/rig/work/records.jsonl --pack

# The rig on a machine with 1 to 8 NVIDIA GPUs (Python 3.12 with torch): `just silicon start`, `just silicon trials healthy:3 slow:0.15`, `just silicon stop`; docs/evidence/fidelity.md.
silicon *ARGS:
    @python3 tests/fidelity/rig/silicon.py {{ARGS}}

# Pack that rig for a machine without a network, in portions of 60 MB with their sums; `unpack.py` in each takes it over there.
silicon-pack FOLDER: binaries
    @python3 tests/fidelity/rig/pack.py {{FOLDER}} --runner {{release}}/perfval-runner

# The same with the lab and the operator (needs patchelf, and a lab that was up once): the whole product on real GPUs, docs/evidence/silicon.md.
silicon-pack-cluster FOLDER: build-lab binaries
    @python3 tests/fidelity/rig/pack.py {{FOLDER}} --runner {{release}}/perfval-runner --cluster {{debug}}

# Add records that were brought back from there to those that docs/evidence/fidelity.md is written from.
silicon-add +RECORDS:
    @cargo run --quiet -p perfval-fidelity --bin fidelity -- --add {{RECORDS}} --pack

# Helm on the real cluster: install, upgrade and roll back with runs in flight, uninstall; one watched namespace only; kustomize, and a namespace that is not allowed. Eight minutes.
chart-lab: build-lab binaries
    @{{suite}} chart

# What a new user does, by the commands of README, docs/install.md and docs/first-run.md: install, apply, watch, read the verdict, ask a real Prometheus for every panel of the dashboard, uninstall; with Helm, then with kustomize (seven minutes, not part of `just test`).
walk WAY="": setup build-lab binaries prometheus
    @{{suite}} walk --prometheus {{cache}}/tools/bin {{ if WAY == "" { "" } else { "--only " + WAY } }}

# The shipped roles against what the operator used: `just rbac` reads the running lab's audit log, `just rbac FOLDER` those that labs left in PERFVAL_AUDIT_KEEP.
rbac *LOGS: build-lab
    #!/usr/bin/env bash
    set -euo pipefail
    logs="{{LOGS}}"
    cargo run --quiet -p perfval-e2e --bin rbac -- --roles config/rbac ${logs:-$({{lab}} audit-log)}

# Ten validations at once on one node, one after the other in their order: five minutes, and not part of `just test`.
races: build-lab binaries
    @{{suite}} races

# Random worlds on the lab: users, faults, and an operator, an API server and an etcd that end in the middle of it; then laws that hold in all of them (a hundred take about three quarters of an hour; not part of `just test`). `just worlds-lab --worlds 1 --seed S` plays the one of seed S again.
worlds-lab *FLAGS: build-lab binaries
    @{{suite}} worlds -- {{FLAGS}}

# Run after run on one lab: memory and descriptors of the operator, etcd, and what is left (200 take about an hour and a half; `just e2e-all` has ten).
soak RUNS="200": build-lab binaries
    @{{suite}} soak {{RUNS}}

# A policy over three real nodes of the lab, each with two GPUs, until so many validations have ended: one GPU is slow, and one node leaves during its run and comes back (half an hour; fails if a node is measured twice at a time, the slow GPU is not reported, or something is left).
policy VALIDATIONS="20": debug-product
    @{{suite}} policy {{VALIDATIONS}}

# Every failure that a run has to name, on one lab, and what does not want to be removed (half an hour, not part of `just test`). `just failures NAME` has the rows or tests whose name holds NAME.
failures NAME="": build-lab binaries
    @{{suite}} failures {{NAME}}

# Whole runs on Dynamo 1.2.1, 1.4.2 and 1.6.1, from 1.5 on with its canary health checks (ten minutes, not part of `just test`).
dynamo-versions: build-lab binaries
    @{{suite}} versions

# Install what is missing: Debian's packages (as root, or it prints the command) and uv.
setup:
    @bash .ci/setup {{cache}}/tools

# The lab's own command: `just lab status`, `just lab fault --help`, `just lab logs kubelet`.
[positional-arguments]
lab *ARGS:
    @{{lab}} "$@"

# Run a command inside the lab: `just lab-exec kubectl get pods -A`.
[no-exit-message]
[positional-arguments]
lab-exec +COMMAND:
    @{{lab}} exec -- "$@"
