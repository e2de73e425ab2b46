# After a change: systemctl restart k0scontroller # on workers: k0sworker
/etc/k0s/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        -----BEGIN CERTIFICATE-----
        MIIBATCBrqADAgECAgEBMAoGCCqGSM49BAMCMAAwHhcNMjYwMTAxMDAwMDAwWhcN
        -----END CERTIFICATE-----

/etc/k0s/certs.d/registry.solutionctl.invalid/hosts.toml:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        server = "https://10.0.0.2:5000"
        capabilities = ["pull", "resolve"]
        ca = "/etc/k0s/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
        dial_timeout = "1s"

        [host."https://10.0.0.1:5000"]
          capabilities = ["pull", "resolve"]
          ca = "/etc/k0s/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
          dial_timeout = "1s"

/etc/k0s/certs.d/docker.io/hosts.toml:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        server = "https://10.0.0.2:5000"
        capabilities = ["pull", "resolve"]
        ca = "/etc/k0s/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
        dial_timeout = "1s"

        [host."https://10.0.0.1:5000"]
          capabilities = ["pull", "resolve"]
          ca = "/etc/k0s/certs.d/registry.solutionctl.invalid/solutionctl-ca.crt"
          dial_timeout = "1s"

/etc/k0s/containerd.d/solutionctl.toml:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        # k0s before 1.36 needs version 2 and the section io.containerd.grpc.v1.cri.
        version = 3

        [plugins."io.containerd.cri.v1.images".registry]
        config_path = "/etc/k0s/certs.d"

