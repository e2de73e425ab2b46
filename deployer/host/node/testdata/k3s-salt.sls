# After a change: systemctl restart k3s # on agents: k3s-agent
/etc/rancher/k3s/solutionctl-ca.crt:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        -----BEGIN CERTIFICATE-----
        MIIBATCBrqADAgECAgEBMAoGCCqGSM49BAMCMAAwHhcNMjYwMTAxMDAwMDAwWhcN
        -----END CERTIFICATE-----

/etc/rancher/k3s/registries.yaml:
  file.managed:
    - makedirs: true
    - dir_mode: '0755'
    - mode: '0644'
    - contents: |
        # Written by 'solutionctl deploy node config', which replaces or removes it. Do not edit.
        configs:
          10.0.0.1:5000:
            tls:
              ca_file: /etc/rancher/k3s/solutionctl-ca.crt
          10.0.0.2:5000:
            tls:
              ca_file: /etc/rancher/k3s/solutionctl-ca.crt
        mirrors:
          docker.io:
            endpoint:
            - https://10.0.0.1:5000
            - https://10.0.0.2:5000
          registry.solutionctl.invalid:
            endpoint:
            - https://10.0.0.1:5000
            - https://10.0.0.2:5000

