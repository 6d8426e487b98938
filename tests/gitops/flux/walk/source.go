package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// source serves artifacts, as source-controller does.
type source struct{ folder, url string }

func newSource(work string) (*source, error) {
	folder := filepath.Join(work, "artifacts")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = http.Serve(listener, http.FileServer(http.Dir(folder))) }()
	return &source{folder, "http://" + listener.Addr().String()}, nil
}

// publish makes files the newest revision of an ExternalArtifact.
func (s *source) publish(name string, files map[string]string) error {
	packed, err := pack(files)
	if err != nil {
		return err
	}
	digest := fmt.Sprintf("%x", sha256.Sum256(packed))
	if err := os.WriteFile(filepath.Join(s.folder, digest+".tar.gz"), packed, 0o644); err != nil {
		return err
	}
	object := fmt.Sprintf(`
apiVersion: source.toolkit.fluxcd.io/v1
kind: ExternalArtifact
metadata: {name: %s, namespace: flux-system}
`, name)
	if _, err := kubectl(object, "apply", "--server-side", "-f", "-"); err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	status := fmt.Sprintf(`
status:
  artifact:
    path: %[1]s.tar.gz
    url: %[2]s/%[1]s.tar.gz
    revision: main@sha256:%[1]s
    digest: sha256:%[1]s
    size: %[3]d
    lastUpdateTime: %[4]s
  conditions:
    - {type: Ready, status: "True", reason: Succeeded, message: stored, lastTransitionTime: %[4]s}
`, digest, s.url, len(packed), now)
	_, err = kubectl(object+status, "apply", "--server-side", "--subresource", "status", "--field-manager", "source", "-f", "-")
	return err
}

func pack(files map[string]string) ([]byte, error) {
	var packed bytes.Buffer
	zipped := gzip.NewWriter(&packed)
	archive := tar.NewWriter(zipped)
	for name, text := range files {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return packed.Bytes(), err
}
