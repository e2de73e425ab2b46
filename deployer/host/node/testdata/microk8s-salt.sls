/var/snap/microk8s/current/args/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        -----BEGIN CERTIFICATE-----
        MIIBATCBrqADAgECAgEBMAoGCCqGSM49BAMCMAAwHhcNMjYwMTAxMDAwMDAwWhcN
        -----END CERTIFICATE-----

/var/snap/microk8s/current/args/certs.d/registry.solutionctl.invalid/hosts.toml:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        server = "https://10.0.0.2:5000"
        capabilities = ["pull", "resolve"]
        ca = "/var/snap/microk8s/current/args/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
        dial_timeout = "1s"

        [host."https://10.0.0.1:5000"]
          capabilities = ["pull", "resolve"]
          ca = "/var/snap/microk8s/current/args/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
          dial_timeout = "1s"

/var/snap/microk8s/current/args/certs.d/docker.io/hosts.toml:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        server = "https://10.0.0.2:5000"
        capabilities = ["pull", "resolve"]
        ca = "/var/snap/microk8s/current/args/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
        dial_timeout = "1s"

        [host."https://10.0.0.1:5000"]
          capabilities = ["pull", "resolve"]
          ca = "/var/snap/microk8s/current/args/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
          dial_timeout = "1s"

