set -eu
work=$1
shift
cat >"$work/config.toml" <<TOML
version = 3
root = "$work/root"
state = "$work/state"
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.nri.v1.nri"]
[grpc]
address = "$work/sock"
[plugins."io.containerd.internal.v1.opt"]
path = "$work/opt"
TOML
containerd --config "$work/config.toml" --log-level warn >"$work/log" 2>&1 &
until ctr --address "$work/sock" version >/dev/null 2>&1; do
  kill -0 $! || { cat "$work/log" >&2; exit 1; }
  sleep 0.1
done
for archive; do
  ctr --address "$work/sock" --namespace k8s.io images import "$archive"
done
kill $!
wait $! || true
