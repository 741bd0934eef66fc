#!/bin/sh
# perhop-router.sh CONFIG.toml [OPTION …]: waits for the interfaces of a configuration, turns off the offload that merges packets,
# and becomes perhop-router. Containers start before their interfaces are there. PERHOP_WAIT=60 waits so many seconds (30).
set -eu
config=${1:?CONFIG.toml is missing}

# A mistake in the configuration ends here, with exit code 2.
perhop-router --check "$config"

# The names after `device =`; those of TUN interfaces are the router's to make.
if ! sed 's/#.*//' "$config" | grep -q 'kind *= *"tun"'; then
    left=${PERHOP_WAIT:-30}
    for device in $(sed 's/#.*//' "$config" | grep -o 'device *= *"[^"]*"' | cut -d '"' -f 2); do
        until ip link show dev "$device" >/dev/null 2>&1; do
            if [ "$left" -le 0 ]; then
                echo "error: no interface $device within ${PERHOP_WAIT:-30} s; the topology must give the router one" >&2
                exit 1
            fi
            sleep 1
            left=$((left - 1))
        done
        ip link set dev "$device" up
        # Some drivers cannot change one of them: the router counts merged packets and says so.
        ethtool -K "$device" gro off lro off >/dev/null 2>&1 || true
        ethtool -K "$device" tso off gso off >/dev/null 2>&1 || true
    done
fi
exec perhop-router "$@"
