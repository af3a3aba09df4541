"""Many runs: a plan, executed in parallel and resumable, and what is done of it."""
