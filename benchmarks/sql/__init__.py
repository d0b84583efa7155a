"""SQL beside its peers: the workloads of benchmarks.streams as statements."""
