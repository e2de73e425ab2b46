/etc/containers/certs.d/10.0.0.1:5000/solutionctl-ca.crt:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        -----BEGIN CERTIFICATE-----
        MIIBATCBrqADAgECAgEBMAoGCCqGSM49BAMCMAAwHhcNMjYwMTAxMDAwMDAwWhcN
        -----END CERTIFICATE-----

/etc/containers/certs.d/10.0.0.2:5000/solutionctl-ca.crt:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        -----BEGIN CERTIFICATE-----
        MIIBATCBrqADAgECAgEBMAoGCCqGSM49BAMCMAAwHhcNMjYwMTAxMDAwMDAwWhcN
        -----END CERTIFICATE-----

/etc/containers/registries.conf.d/50-solutionctl.conf:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.

        [[registry]]
        prefix = "registry.solutionctl.invalid"
        location = "10.0.0.2:5000"

        [[registry.mirror]]
        location = "10.0.0.1:5000"

        [[registry]]
        prefix = "docker.io"
        location = "10.0.0.2:5000/docker.io"

        [[registry.mirror]]
        location = "10.0.0.1:5000/docker.io"

systemctl reload crio:
  cmd.run:
    - onchanges:
      - file: /etc/containers/certs.d/10.0.0.1:5000/solutionctl-ca.crt
      - file: /etc/containers/certs.d/10.0.0.2:5000/solutionctl-ca.crt
      - file: /etc/containers/registries.conf.d/50-solutionctl.conf
