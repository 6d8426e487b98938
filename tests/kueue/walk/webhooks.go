package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	"sigs.k8s.io/yaml"
)

const webhookServer = "https://127.0.0.1:9443"

// writeCertificates writes tls.crt and tls.key into a folder, and returns the certificate. It signs itself.
func writeCertificates(folder string) ([]byte, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "kueue on the lab"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})
	secret := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	return authority, errors.Join(
		os.WriteFile(filepath.Join(folder, "tls.crt"), authority, 0o600),
		os.WriteFile(filepath.Join(folder, "tls.key"), secret, 0o600),
	)
}

// readWebhooks returns Kueue's webhooks for Jobs and for its own kinds, with the address of the process. The others are for
// integrations that are not enabled.
func readWebhooks(module string, authority []byte) (string, error) {
	text, err := os.ReadFile(module + "/config/components/webhook/manifests.yaml")
	if err != nil {
		return "", err
	}
	var manifests []string
	found := 0
	for _, document := range strings.Split(string(text), "\n---\n") {
		// Both kinds have the same fields, except for reinvocationPolicy.
		var configuration admission.MutatingWebhookConfiguration
		if err := yaml.UnmarshalStrict([]byte(document), &configuration); err != nil {
			return "", err
		}
		configuration.Name = "kueue-" + configuration.Name
		var kept []admission.MutatingWebhook
		for _, webhook := range configuration.Webhooks {
			path := *webhook.ClientConfig.Service.Path
			if !strings.Contains(path, "-batch-v1-job") && !strings.Contains(path, "-kueue-x-k8s-io-") {
				continue
			}
			url := webhookServer + path
			webhook.ClientConfig = admission.WebhookClientConfig{URL: &url, CABundle: authority}
			kept = append(kept, webhook)
		}
		found += len(kept)
		configuration.Webhooks = kept
		manifest, err := yaml.Marshal(configuration)
		if err != nil {
			return "", err
		}
		manifests = append(manifests, string(manifest))
	}
	if found == 0 {
		return "", fmt.Errorf("%s contains no webhook for Jobs", module)
	}
	return strings.Join(manifests, "\n---\n"), nil
}
