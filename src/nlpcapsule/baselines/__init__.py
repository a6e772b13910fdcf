"""The baselines that capsules are compared with; one small file each."""
