"""The answer rankers that capsules are compared with on TREC QA; one small file each."""
