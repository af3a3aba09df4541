"""A Ray cluster on this machine: a head, a machine with one CPU, and a machine with two.

Prints its address and the process of the first machine's daemon, whose children are its workers.
Then it obeys the lines of its input: ``kill`` ends the first machine as a power cut would; the end
of the input ends the cluster.
"""

import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}

from ray.cluster_utils import Cluster

SETTINGS = {"object_store_memory": 80_000_000, "include_dashboard": False}


def daemon_of(node):
    (daemon,) = node.all_processes["raylet"]
    return daemon.process.pid


def power_cut(cluster, node):
    """End the machine's daemon and all its workers in the same moment."""
    children = Path(f"/proc/{daemon_of(node)}/task").glob("*/children")
    workers = [int(pid) for file in children for pid in file.read_text().split()]
    cluster.remove_node(node, allow_graceful=False)
    for pid in workers:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def main():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SETTINGS})
    fragile = cluster.add_node(num_cpus=1, **SETTINGS)
    cluster.add_node(num_cpus=2, **SETTINGS)
    cluster.wait_for_nodes()
    print(cluster.address, daemon_of(fragile), flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            power_cut(cluster, fragile)
            print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
