"""A Ray cluster on this machine: a head, a machine with one CPU, and a machine with two.

Prints its address, then obeys the lines of its input: ``kill`` ends the first machine as a power
cut would; the end of the input ends the cluster.
"""

import os
import sys

os.environ |= {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}

from ray.cluster_utils import Cluster

SETTINGS = {"object_store_memory": 80_000_000, "include_dashboard": False}


def main():
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, **SETTINGS})
    fragile = cluster.add_node(num_cpus=1, **SETTINGS)
    cluster.add_node(num_cpus=2, **SETTINGS)
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            cluster.remove_node(fragile, allow_graceful=False)
            print("killed", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
